package socketio_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xabar/gateway/engineio"
	"xabar/gateway/socketio"
	"xabar/gateway/socketio/socketiotest"
)

func TestConnect(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	admin := io.Of("admin") // the slash is added
	for _, ns := range []*socketio.Namespace{io.Namespace, admin} {
		ns.OnConnection(func(s *socketio.Socket) {
			if !s.Connected() {
				t.Error("not connected in OnConnection")
			}
			must(t, s.Emit("auth", s.Auth()))
		})
	}
	c := dial(t, url)
	id := c.Connect("/", "")
	c.Expect(`2["auth",{}]`)
	if id == "" || id == c.Open.SID {
		t.Errorf("socket id %q must differ from the session id %q", id, c.Open.SID)
	}
	id2 := c.Connect("/admin", `{"token":"x"}`)
	c.Expect(`2/admin,["auth",{"token":"x"}]`)
	if id2 == id {
		t.Error("two namespaces, one id")
	}
	if io.Socket(id) == nil || admin.Socket(id2) == nil || io.Len() != 1 || admin.Len() != 1 || len(io.Sockets()) != 1 {
		t.Error("the sockets are not listed")
	}
	c.Send(`0/nope,{"a":1}`)
	c.Expect(`4/nope,{"message":"Invalid namespace"}`)
	c.Sync()
}

func TestMiddleware(t *testing.T) {
	t.Parallel()
	refused := make(chan string, 10)
	io, url := start(t, socketio.Options{Hooks: socketio.Hooks{
		ConnectRefused: func(ns string, err error) { refused <- ns + " " + err.Error() },
	}})
	var order []string
	io.Use(func(s *socketio.Socket) error {
		order = append(order, "first")
		if s.Connected() {
			t.Error("connected in a middleware")
		}
		var auth struct{ Token string }
		must(t, json.Unmarshal(s.Auth(), &auth))
		switch auth.Token {
		case "data":
			return &socketio.ConnectError{Message: "no", Data: map[string]any{"code": 1}}
		case "wrapped":
			return errors.Join(&socketio.ConnectError{Message: "wrapped"})
		case "plain":
			return errors.New("plain \"error\"")
		}
		s.SetData("seen")
		return s.Join("early")
	})
	io.Use(func(s *socketio.Socket) error {
		order = append(order, "second")
		return nil
	})
	c := dial(t, url)
	for token, want := range map[string]string{
		"data":    `4{"message":"no","data":{"code":1}}`,
		"wrapped": `4{"message":"wrapped"}`,
		"plain":   `4{"message":"plain \"error\""}`,
	} {
		c.Send(`0{"token":"` + token + `"}`)
		c.Expect(want)
		recv(t, refused)
	}
	order = nil
	id := c.Connect("/", `{"token":"good"}`)
	c.Sync()
	if strings.Join(order, " ") != "first second" {
		t.Errorf("middlewares ran as %v", order)
	}
	s := io.Socket(id)
	if s.Data() != "seen" {
		t.Errorf("data is %v", s.Data())
	}
	must(t, io.To("early").Emit("hello"))
	c.Expect(`2["hello"]`)
}

// A middleware that blocks holds up its own connection, and packets behind CONNECT keep their order.
func TestMiddlewareBlocks(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	release := make(chan struct{})
	io.Use(func(s *socketio.Socket) error {
		if string(s.Auth()) == `{"slow":true}` {
			<-release
		}
		return nil
	})
	slow, fast := dial(t, url), dial(t, url)
	slow.Send(`0{"slow":true}`)
	slow.Send(`21["sync"]`)
	fast.Connect("/", "")
	fast.Sync()
	close(release)
	if got := slow.Next(); !strings.HasPrefix(got, `40{"sid":`) {
		t.Fatalf("got %q, want CONNECT", got)
	}
	slow.Expect(`31[]`)
}

func TestMiddlewareRefusalLeavesNothing(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	sockets := make(chan *socketio.Socket, 1)
	io.Use(func(s *socketio.Socket) error {
		must(t, s.Join("ghosts"))
		sockets <- s
		return errors.New("no")
	})
	c := dial(t, url)
	c.Send("0")
	c.Expect(`4{"message":"no"}`)
	s := recv(t, sockets)
	if err := s.Join("ghosts"); !errors.Is(err, socketio.ErrDisconnected) {
		t.Errorf("Join of a refused socket: %v", err)
	}
	if err := s.Emit("x"); !errors.Is(err, socketio.ErrDisconnected) {
		t.Errorf("Emit to a refused socket: %v", err)
	}
	if ids, err := io.AllSockets(t.Context()); len(ids) != 0 || err != nil {
		t.Errorf("sockets %v, %v", ids, err)
	}
	if n := len(io.Adapter().(*socketio.MemoryAdapter).Rooms()); n != 0 {
		t.Errorf("%d rooms are left", n)
	}
}

func TestPanicInMiddleware(t *testing.T) {
	t.Parallel()
	panics := make(chan *socketio.PanicError, 1)
	io, url := start(t, socketio.Options{Hooks: socketio.Hooks{
		Panic: func(where string, err *socketio.PanicError) { panics <- err },
	}})
	io.Use(func(s *socketio.Socket) error {
		if string(s.Auth()) != "{}" {
			panic("secret")
		}
		return nil
	})
	bystander, _ := join(t, url, "/")
	c := dial(t, url)
	c.Send(`0{"a":1}`)
	c.Expect(`4{"message":"internal error","data":{"code":"internal","message":"internal error"}}`)
	c.ExpectClose()
	if err := recv(t, panics); err.Value != "secret" || !strings.Contains(string(err.Stack), "TestPanicInMiddleware") {
		t.Errorf("panic %v with stack %s", err, err.Stack)
	}
	bystander.Sync()
}

func TestPanicInConnectionHandler(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	reason := make(chan string, 1)
	io.OnConnection(func(s *socketio.Socket) {
		s.OnDisconnect(func(r string) { reason <- r })
		panic("boom")
	})
	c, _ := join(t, url, "/")
	c.ExpectClose()
	if r := recv(t, reason); r != "forced server close" {
		t.Errorf("reason %q", r)
	}
}

// A socket that is disconnected while its OnConnection handler runs: the handlers of disconnection are
// called, after it, although they were registered later.
func TestDisconnectDuringConnectionHandler(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	entered, release, events := make(chan *socketio.Socket), make(chan struct{}), make(chan string, 10)
	io.OnConnection(func(s *socketio.Socket) {
		entered <- s
		<-release
		s.OnDisconnecting(func(string) { events <- "disconnecting" })
		s.OnDisconnect(func(string) { events <- "disconnect" })
		must(t, s.Join("late"))
		events <- "connected"
	})
	for i, end := range []func(s *socketio.Socket){
		func(s *socketio.Socket) { s.Disconnect(false) },
		func(s *socketio.Socket) { s.Disconnect(true) },
		func(s *socketio.Socket) { must(t, io.DisconnectSockets(true)) },
	} {
		c := dial(t, url)
		c.Send("0")
		s := recv(t, entered)
		end(s)
		recv(t, s.Context().Done())
		if s.Connected() {
			t.Error("it is still connected")
		}
		release <- struct{}{}
		for _, want := range []string{"connected", "disconnecting", "disconnect"} {
			if got := recv(t, events); got != want {
				t.Errorf("%d: %s, want %s", i, got, want)
			}
		}
		if io.Len() != 0 || len(s.Rooms()) != 0 {
			t.Errorf("%d: it is still there", i)
		}
	}
}

func TestDynamicNamespaces(t *testing.T) {
	t.Parallel()
	events := make(chan string, 10)
	io, url := start(t, socketio.Options{Hooks: socketio.Hooks{
		Namespace: func(name string, created bool) {
			if created {
				events <- "+" + name
			} else {
				events <- "-" + name
			}
		},
	}})
	pattern := io.OfPattern(regexp.MustCompile(`^/shop-\d+$`))
	pattern.Use(func(s *socketio.Socket) error {
		if s.Namespace().Name() == "/shop-13" {
			return errors.New("unlucky")
		}
		return nil
	})
	pattern.Handle("where", func(ev *socketio.Event) { must(t, ev.Ack(ev.Socket().Namespace().Name())) })
	io.OfFunc(func(name string, auth json.RawMessage) (bool, error) {
		if name == "/error" {
			return true, errors.New("an error is a no")
		}
		return string(auth) == `{"key":"k"}`, nil
	})
	c := dial(t, url)
	c.Connect("/shop-1", "")
	c.Send(`2/shop-1,1["where"]`)
	c.Expect(`3/shop-1,1["/shop-1"]`)
	c.Send(`0/shop-x,`)
	c.Expect(`4/shop-x,{"message":"Invalid namespace"}`)
	c.Send(`0/error,{"key":"k"}`)
	c.Expect(`4/error,{"message":"Invalid namespace"}`)
	c.Connect("/any", `{"key":"k"}`)
	c.Send(`0/shop-13,`)
	c.Expect(`4/shop-13,{"message":"unlucky"}`)
	if n := len(pattern.Children()); n != 1 {
		t.Errorf("%d children, want 1", n)
	}
	must(t, pattern.Emit("all", 1))
	c.Expect(`2/shop-1,["all",1]`)
	c.Send(`1/shop-1,`)
	c.Connect("/", "")
	c.Sync()
	want := []string{"+/shop-1", "+/any", "+/shop-13", "-/shop-13", "-/shop-1"}
	for _, w := range want {
		if got := recv(t, events); got != w {
			t.Errorf("namespace event %q, want %q", got, w)
		}
	}
	if n := len(pattern.Children()); n != 0 {
		t.Errorf("%d children are left", n)
	}
}

// What is added to a child is its own; what is added to the parent reaches all children.
func TestChildHandlers(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	p := io.OfPattern(regexp.MustCompile(`^/c`))
	c := dial(t, url)
	c.Connect("/c1", "")
	c.Connect("/c2", "")
	answer := func(with string) func(*socketio.Event) {
		return func(ev *socketio.Event) { must(t, ev.Ack(with)) }
	}
	io.Of("/c1").Handle("own", answer("c1"))
	p.Handle("common", answer("parent"))
	p.HandleUnknown(answer("unknown"))
	c.Connect("/c3", "")
	for packet, want := range map[string]string{
		`2/c1,1["own"]`: `3/c1,1["c1"]`, `2/c2,1["own"]`: `3/c2,1["unknown"]`, `2/c3,1["own"]`: `3/c3,1["unknown"]`,
		`2/c1,1["common"]`: `3/c1,1["parent"]`, `2/c3,1["common"]`: `3/c3,1["parent"]`,
	} {
		c.Send(packet)
		c.Expect(want)
	}
	// Of has given away c1, so it stays; the others go with their last sockets
	c.Send("1/c1,")
	c.Send("1/c2,")
	c.Send("1/c3,")
	c.Connect("/", "")
	if ch := p.Children(); len(ch) != 1 || ch[0] != io.Of("/c1") {
		t.Errorf("children %v", ch)
	}
	c.Connect("/c1", "")
	c.Send(`2/c1,1["own"]`)
	c.Expect(`3/c1,1["c1"]`)
}

func TestKeepEmptyNamespacesAndBound(t *testing.T) {
	t.Parallel()
	bounds := make(chan string, 10)
	io, url := start(t, socketio.Options{
		KeepEmptyNamespaces: true, MaxChildNamespaces: 2,
		Hooks: socketio.Hooks{Bound: func(b string) { bounds <- b }},
	})
	p := io.OfPattern(regexp.MustCompile(`^/c`))
	c := dial(t, url)
	c.Connect("/c1", "")
	c.Connect("/c2", "")
	c.Send(`0/c3,`)
	c.Expect(`4/c3,{"message":"too many namespaces"}`)
	if b := recv(t, bounds); b != "MaxChildNamespaces" {
		t.Errorf("bound %q", b)
	}
	c.Send(`1/c1,`)
	c.Connect("/", "")
	c.Sync()
	if n := len(p.Children()); n != 2 {
		t.Errorf("%d children, want 2", n)
	}
}

func TestMaxNamespaces(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{MaxNamespaces: 2})
	for _, n := range []string{"/a", "/b", "/c"} {
		io.Of(n)
	}
	c := dial(t, url)
	c.Connect("/a", "")
	c.Connect("/b", "")
	c.Send("0/c,")
	c.Expect(`4/c,{"message":"too many namespaces"}`)
	c.Send("1/a,")
	c.Connect("/c", "")
}

func TestConnectTimeout(t *testing.T) {
	t.Parallel()
	bounds := make(chan string, 4)
	io, url := start(t, socketio.Options{ConnectTimeout: 100 * time.Millisecond, Hooks: socketio.Hooks{Bound: func(b string) { bounds <- b }}})
	silent := dial(t, url)
	refused := dial(t, url)
	refused.Send("0/nope,")
	refused.Expect(`4/nope,{"message":"Invalid namespace"}`)
	joined, _ := join(t, url, "/")
	silent.ExpectClose()
	refused.ExpectClose()
	for range 2 {
		if b := recv(t, bounds); b != "ConnectTimeout" {
			t.Errorf("bound %q", b)
		}
	}
	joined.Sync()
	eventually(t, "only the joined one is left", func() bool { return io.Engine().Sockets() == 1 })
}

func TestHandshake(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{Options: engineio.Options{Origins: []string{"https://page.example"}}})
	c := socketiotest.Dial(t, url, dialer{
		Query:  "a=1&b=x%20y&a=2",
		Header: http.Header{"X-Custom": {"v"}, "Origin": {"https://page.example"}, "Cookie": {"k=v"}},
	})
	s := io.Socket(c.Connect("/", `{"token":"t"}`))
	h := s.Handshake()
	if h.Headers["x-custom"] != "v" || h.Headers["cookie"] != "k=v" {
		t.Errorf("headers %v", h.Headers)
	}
	if h.Query["a"] != "2" || h.Query["b"] != "x y" || h.Query["EIO"] != "4" || h.Query["transport"] != "websocket" {
		t.Errorf("query %v", h.Query)
	}
	if string(h.Auth) != `{"token":"t"}` || h.Address != "127.0.0.1" || !h.XDomain || h.Secure {
		t.Errorf("handshake %+v", h)
	}
	if time.Since(time.UnixMilli(h.Issued)) > time.Minute || !strings.HasPrefix(h.URL, "/socket.io/?EIO=4&transport=websocket&a=1") {
		t.Errorf("handshake %+v", h)
	}
	if s.Conn().ID() != c.Open.SID {
		t.Errorf("Conn has the id %q, want %q", s.Conn().ID(), c.Open.SID)
	}
}

// The v2 client's dialect: protocol 3 joins "/" by itself, and CONNECT_ERROR is one value.
func TestProtocol3(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{Options: engineio.Options{AllowEIO3: true}})
	io.Of("/chat").Use(func(s *socketio.Socket) error {
		var auth struct{ Token string }
		must(t, json.Unmarshal(s.Auth(), &auth))
		switch auth.Token {
		case "data":
			return &socketio.ConnectError{Message: "no", Data: 7}
		case "":
			return errors.New("no token")
		}
		return nil
	})
	c := socketiotest.Dial(t, url, dialer{Protocol: 3})
	c.Expect(`0`)
	if io.Socket(c.Open.SID) == nil {
		t.Error("the socket's id is not the session's")
	}
	c.Sync()
	c.Send(`0/chat,`)
	c.Expect(`4/chat,"no token"`)
	c.Send(`0/chat?token=data,`)
	c.Expect(`4/chat,7`)
	c.Send(`0/chat?token=good,`)
	c.Expect(`0/chat,`)
	if io.Of("/chat").Socket("/chat#"+c.Open.SID) == nil {
		t.Error("the socket's id has not the form that clients compute")
	}
	c.Send(`0/nope,`)
	c.Expect(`4/nope,"Invalid namespace"`)
	must(t, io.Of("/chat").Emit("hi", []byte{1}))
	c.Expect(`51-/chat,["hi",{"_placeholder":true,"num":0}]`)
}

func TestProtocol3MiddlewareBlocks(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{Options: engineio.Options{AllowEIO3: true}})
	release := make(chan struct{})
	var ran atomic.Int32
	io.Use(func(*socketio.Socket) error {
		<-release
		ran.Add(1)
		return nil
	})
	c := socketiotest.Dial(t, url, dialer{Protocol: 3}) // the open packet does not wait
	c.Send(`21["sync"]`)
	dropped := socketiotest.Dial(t, url, dialer{Protocol: 3})
	dropped.Drop()
	close(release)
	c.Expect(`0`)
	c.Expect(`31[]`)
	eventually(t, "the dropped one is gone", func() bool { return ran.Load() == 2 && io.Len() == 1 })
}
