package socketio_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"xabar/gateway/engineio"
	"xabar/gateway/socketio"
	"xabar/internal/testkit"
)

// officials is a server for the official JavaScript clients.
type officials struct {
	url   string
	io    *socketio.Server
	heard atomic.Int64 // volatile events of clients
}

func newOfficials(t *testing.T) *officials {
	o := &officials{}
	o.io, o.url = start(t, socketio.Options{Options: engineio.Options{
		AllowEIO3: true, PingInterval: 200 * time.Millisecond, PingTimeout: socketTimeout,
		CloseTimeout: time.Second, // what is queued for a polling client that was cut is nobody's
	}})
	for _, ns := range []*socketio.Namespace{o.io.Namespace, o.io.Of("/members")} {
		ns.Use(admitToken)
		o.handle(ns)
	}
	return o
}

// socketTimeout leaves busy machines the time that they need.
const socketTimeout = 10 * time.Second

// admitToken refuses two tokens: with a message, and with data too.
func admitToken(s *socketio.Socket) error {
	var auth struct{ Token string }
	if err := json.Unmarshal(s.Auth(), &auth); err != nil {
		return err
	}
	if auth.Token == "" {
		auth.Token = s.Handshake().Query["token"] // where clients of version 2 have it
	}
	switch auth.Token {
	case "bad":
		return errors.New("bad token")
	case "worse":
		return &socketio.ConnectError{Message: "worse token", Data: map[string]int{"code": 7}}
	}
	return nil
}

func (o *officials) handle(ns *socketio.Namespace) {
	ns.Handle("echo", func(ev *socketio.Event) { _ = ev.Ack(ev.Args().Values()...) })
	ns.Handle("join", func(ev *socketio.Event) {
		var room string
		if ev.Arg(0).Decode(&room) == nil && ev.Socket().Join(room) == nil {
			_ = ev.Ack(ns.Name())
		}
	})
	ns.Handle("say", func(ev *socketio.Event) { _ = ev.Socket().To("room").Emit("said", ev.Arg(0)) })
	ns.Handle("shout", func(ev *socketio.Event) { _ = ev.Socket().Broadcast().Emit("shouted", ev.Arg(0)) })
	ns.Handle("ask", func(ev *socketio.Event) {
		_ = ev.Socket().EmitAck("question", func(args socketio.Args, err error) {
			if err == nil {
				_ = ev.Socket().Emit("answered", args.Arg(0))
			}
		}, ev.Arg(0))
	})
	ns.Handle("volatile", func(*socketio.Event) { o.heard.Add(1) })
	ns.Handle("whisper", func(ev *socketio.Event) { _ = ev.Socket().Volatile().Emit("whispered", ev.Arg(0)) })
	ns.Handle("dismiss", func(ev *socketio.Event) {
		_ = ev.Socket().Emit("last words")
		ev.Socket().Disconnect(false)
	})
	ns.Handle("hang up", func(ev *socketio.Event) { ev.Socket().Conn().Close() })
}

// official is one client version over one way to connect.
type official struct {
	*testing.T
	*officials
	js      *testkit.JS
	ctx     context.Context
	options testkit.ClientOptions
}

// The clients 2.5, 3.1 and 4.8, each over polling, WebSocket and the upgrade from one to the other, do all
// that they can do.
func TestOfficialClients(t *testing.T) {
	server, js := newOfficials(t), testkit.NewJS(t)
	ways := map[string][]string{"polling": {"polling"}, "websocket": {"websocket"}, "upgrade": nil}
	for _, version := range []int{2, 3, 4} {
		for name, transports := range ways {
			t.Run(fmt.Sprintf("%d/%s", version, name), func(t *testing.T) {
				o := &official{t, server, js, testkit.Context(t), testkit.ClientOptions{URL: server.url, Version: version, Transports: transports}}
				o.testOrder()
				o.testAuthErrors()
				o.testNamespaces()
				o.testBinary()
				o.testAcks()
				o.testRooms()
				o.testVolatile()
				o.testServerDisconnect()
				o.testReconnect()
			})
		}
	}
}

func (o *official) check(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

// client connects. It is closed when the test ends.
func (o *official) client(change func(*testkit.ClientOptions)) *testkit.Client {
	o.Helper()
	options := o.options
	if change != nil {
		change(&options)
	}
	return o.js.Connected(o.T, options)
}

func (o *official) wait(c *testkit.Client, mark int, event string) testkit.Heard {
	o.Helper()
	h, err := c.WaitAfter(o.ctx, mark, event, nil)
	o.check(err)
	return h
}

func (o *official) emit(c *testkit.Client, event string, args ...any) string {
	o.Helper()
	answer, err := c.Emit(o.ctx, event, args...)
	o.check(err)
	return string(answer)
}

// Nothing is lost or reordered, not by the upgrade either, which is under way meanwhile; heartbeats go on.
func (o *official) testOrder() {
	c := o.client(nil)
	payloads := make([]any, 100)
	for i := range payloads {
		payloads[i] = i
	}
	for range 3 {
		answers, err := c.EmitAll(o.ctx, "echo", payloads...)
		o.check(err)
		for i, a := range answers {
			if a.Err != nil || string(a.Value) != fmt.Sprint(i) {
				o.Fatalf("answer %d: %s %v", i, a.Value, a.Err)
			}
		}
	}
	want := "websocket"
	if o.options.Transports == nil {
		o.wait(c, 0, "$upgrade")
	} else {
		want = o.options.Transports[0]
	}
	// Each one is sent after the answer to the one before.
	_, err := c.WaitCount(o.ctx, "$heartbeat", 3)
	o.check(err)
	state, err := c.State(o.ctx)
	o.check(err)
	if state.Transport != want || !state.Connected || len(c.Events("disconnect")) > 0 {
		o.Errorf("state %+v, want a connection by %s", state, want)
	}
	o.check(c.Close(o.ctx))
}

func (o *official) testAuthErrors() {
	for _, namespace := range []string{"", "/members"} {
		refuse := func(token string) *testkit.Refused {
			options := o.options
			options.Namespace, options.Token = namespace, token
			c := o.js.Client(o.T, options)
			var refused *testkit.Refused
			if err := c.Connect(o.ctx); !errors.As(err, &refused) {
				o.Fatalf("%q with the token %q: %v, want a refusal", namespace, token, err)
			}
			o.check(c.Close(o.ctx))
			return refused
		}
		if r := refuse("bad"); r.Message != "bad token" {
			o.Errorf("refusal %+v", r)
		}
		if o.options.Version == 2 {
			continue // its refusals are one value
		}
		if r := refuse("worse"); r.Message != "worse token" || string(r.Data) != `{"code":7}` {
			o.Errorf("refusal %+v with data %s", r, r.Data)
		}
	}
}

// Two namespaces on one connection: each has its own rooms and end; one that does not exist is refused.
func (o *official) testNamespaces() {
	c := o.client(nil)
	members := o.client(func(options *testkit.ClientOptions) { options.Share, options.Namespace = c, "/members" })
	if a, b := o.emit(c, "join", "shared"), o.emit(members, "join", "shared"); a != `"/"` || b != `"/members"` {
		o.Errorf("joined in %s and %s", a, b)
	}
	first, err := c.State(o.ctx)
	o.check(err)
	second, err := members.State(o.ctx)
	o.check(err)
	if first.EngineID == "" || first.EngineID != second.EngineID {
		o.Errorf("%+v and %+v are not one connection", first, second)
	}
	o.check(o.io.Of("/members").To("shared").Emit("news", 1))
	o.wait(members, 0, "news")
	o.check(members.Disconnect(o.ctx))
	o.wait(members, 0, "disconnect")
	if got := o.emit(c, "echo", "still here"); got != `"still here"` || len(c.Events("news")) > 0 {
		o.Errorf("the other namespace answers %s and has heard %v", got, c.Events("news"))
	}
	options := o.options
	options.Namespace = "/nowhere"
	nowhere := o.js.Client(o.T, options)
	var refused *testkit.Refused
	if err := nowhere.Connect(o.ctx); !errors.As(err, &refused) || refused.Message != "Invalid namespace" {
		o.Errorf("a namespace that is not there: %v", err)
	}
	o.check(nowhere.Close(o.ctx))
	o.check(c.Close(o.ctx))
}

// Binary goes both ways in events and acknowledgements, nested, several in a packet, empty and large.
func (o *official) testBinary() {
	c := o.client(func(options *testkit.ClientOptions) {
		options.Acks = map[string]testkit.AckRule{"question": testkit.AckByHand}
	})
	large := bytes.Repeat([]byte{0, 1, 0xfe, 0xff}, 20_000)
	for _, payload := range []any{
		binary([]byte{1, 2, 3}), binary(nil), binary(large),
		map[string]any{"a": []any{binary([]byte("x")), "text", binary([]byte("y"))}, "n": 1},
	} {
		want, err := json.Marshal(payload)
		o.check(err)
		if got := o.emit(c, "echo", payload); got != string(want) {
			o.Fatalf("%.100s came back as %.100s", want, got)
		}
		mark := c.Mark()
		o.check(c.Send(o.ctx, "ask", payload))
		question := o.wait(c, mark, "question")
		if string(question.Args[0]) != string(want) {
			o.Fatalf("%.100s came as %.100s", want, question.Args[0])
		}
		o.check(c.Ack(o.ctx, question, payload))
		if answered := o.wait(c, mark, "answered"); string(answered.Args[0]) != string(want) {
			o.Fatalf("%.100s was answered as %.100s", want, answered.Args[0])
		}
	}
	o.check(c.Close(o.ctx))
}

// binary is how the driver spells it.
func binary(b []byte) map[string][]byte {
	if b == nil {
		b = []byte{}
	}
	return map[string][]byte{"$binary": b}
}

// Acknowledgements go both ways, with any number of arguments, and wait for whoever gives them.
func (o *official) testAcks() {
	c := o.client(func(options *testkit.ClientOptions) {
		options.Acks = map[string]testkit.AckRule{"question": testkit.AckAfter(20 * time.Millisecond)}
	})
	for _, args := range [][]any{{}, {nil}, {"дом ☃ 🎈", 1.5, true}, {map[string]any{"k": []int{1}}}} {
		want := "null"
		if len(args) > 0 {
			text, err := json.Marshal(args[0])
			o.check(err)
			want = string(text)
		}
		if got := o.emit(c, "echo", args...); got != want {
			o.Errorf("%v came back as %s", args, got)
		}
	}
	o.check(c.Send(o.ctx, "ask", 1, 2, 3))
	_, err := c.WaitCount(o.ctx, "answered", 3)
	o.check(err)
	o.check(c.Close(o.ctx))
}

func (o *official) testRooms() {
	inside, outside, speaker := o.client(nil), o.client(nil), o.client(nil)
	o.emit(inside, "join", "room")
	o.emit(speaker, "join", "room")
	o.check(speaker.Send(o.ctx, "say", "to the room"))
	o.check(speaker.Send(o.ctx, "shout", "to all"))
	for _, c := range []*testkit.Client{inside, outside} {
		if h := o.wait(c, 0, "shouted"); testkit.Decode[string](h) != "to all" {
			o.Errorf("heard %s", h.Args)
		}
	}
	o.emit(speaker, "echo") // its own would have come before the answer
	if in, out, own := len(inside.Events("said")), len(outside.Events("said")), len(speaker.Events("said"))+len(speaker.Events("shouted")); in != 1 || out != 0 || own != 0 {
		o.Errorf("heard inside %d, outside %d, by the speaker %d", in, out, own)
	}
	for _, c := range []*testkit.Client{inside, outside, speaker} {
		o.check(c.Close(o.ctx))
	}
}

// A volatile event of a connection that is ready arrives.
func (o *official) testVolatile() {
	c := o.client(nil)
	before := o.heard.Load()
	deadline := time.Now().Add(socketTimeout)
	for o.heard.Load() == before || len(c.Events("whispered")) == 0 { // either may be dropped, but not for ever
		if time.Now().After(deadline) {
			o.Fatalf("%d volatile events came, %d went", o.heard.Load()-before, len(c.Events("whispered")))
		}
		o.check(c.SendVolatile(o.ctx, "volatile", 1))
		o.check(c.Send(o.ctx, "whisper", 1))
		o.emit(c, "echo")
	}
	o.check(c.Close(o.ctx))
}

// Whom the server disconnects hears what was sent before, and stays away; whose connection it closes
// comes back.
func (o *official) testServerDisconnect() {
	c := o.client(nil)
	o.check(c.Send(o.ctx, "hang up", nil))
	if gone := o.wait(c, 0, "disconnect"); testkit.Decode[string](gone) != "transport close" {
		o.Errorf("reason %s", gone.Args)
	}
	mark := c.Mark()
	if _, err := c.WaitCount(o.ctx, "connect", 2); err != nil {
		o.Fatal(err)
	}
	o.check(c.Send(o.ctx, "dismiss", nil))
	gone := o.wait(c, mark, "disconnect")
	last := o.wait(c, mark, "last words")
	if testkit.Decode[string](gone) != "io server disconnect" || last.N > gone.N {
		o.Errorf("disconnected at %d by %s, last words at %d", gone.N, gone.Args, last.N)
	}
	state, err := c.State(o.ctx)
	o.check(err)
	if state.Connected || state.Active {
		o.Errorf("it does not stay away: %+v", state)
	}
	o.check(c.Close(o.ctx))
}

// A cut connection comes back as a new socket, and works.
func (o *official) testReconnect() {
	c := o.client(nil)
	before, err := c.State(o.ctx)
	o.check(err)
	mark := c.Mark()
	o.check(c.Kill(o.ctx))
	gone := o.wait(c, mark, "disconnect")
	o.wait(c, gone.N, "connect")
	after, err := c.State(o.ctx)
	o.check(err)
	if after.ID == before.ID || after.EngineID == before.EngineID {
		o.Errorf("%+v is not new after %+v", after, before)
	}
	if got := o.emit(c, "echo", "again"); got != `"again"` {
		o.Errorf("it answers %s", got)
	}
	o.check(c.Close(o.ctx))
}
