package socketio_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"xabar/gateway/engineio"
	"xabar/gateway/socketio"
	"xabar/gateway/socketio/socketiotest"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	io.OnConnection(func(s *socketio.Socket) {
		s.On("message", func(ev *socketio.Event) {
			must(t, s.Emit("message-back", ev.Args().Values()...))
		})
		s.On("message-with-ack", func(ev *socketio.Event) { must(t, ev.Ack(ev.Args().Values()...)) })
	})
	c, _ := join(t, url, "/")
	c.Send(`2["message",1,"2",{"3":[true]}]`)
	c.Expect(`2["message-back",1,"2",{"3":[true]}]`)
	c.Send(`2456["message-with-ack",1,"2",{"3":[false]}]`)
	c.Expect(`3456[1,"2",{"3":[false]}]`)
	c.Send(`52-["message",{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]`)
	c.SendBinary([]byte{1, 2, 3})
	c.SendBinary([]byte{4, 5, 6})
	c.Expect(`52-["message-back",{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]`)
	c.ExpectBinary([]byte{1, 2, 3})
	c.ExpectBinary([]byte{4, 5, 6})
	c.Send(`51-789["message-with-ack",{"a":{"_placeholder":true,"num":0}}]`)
	c.SendBinary([]byte{7})
	c.Expect(`61-789[{"a":{"_placeholder":true,"num":0}}]`)
	c.ExpectBinary([]byte{7})
}

func TestHandlers(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	var got []string // touched by the reader only
	note := func(who string) func(*socketio.Event) {
		return func(ev *socketio.Event) { got = append(got, who+":"+ev.Name()) }
	}
	io.Handle("a", note("shared"))
	io.HandleUnknown(note("unknown"))
	io.OnConnection(func(s *socketio.Socket) {
		s.OnAny(note("any"))
		s.PrependAny(note("first"))
		s.Use(func(ev *socketio.Event) error {
			if ev.Name() == "blocked" {
				return errors.New("blocked it")
			}
			return nil
		})
		s.OnError(func(err error) { got = append(got, "error:"+err.Error()) })
		s.On("a", note("own"))
		s.On("a", note("own2"))
		s.Once("b", note("once"))
		s.On("offany", func(*socketio.Event) { s.OffAny(); s.Off("a") })
		s.On("5", note("number"))
		s.On("é\"", note("escaped"))
	})
	c, _ := join(t, url, "/")
	expect := func(packet, want string) {
		t.Helper()
		c.Send(packet)
		c.Sync()
		list := strings.Join(got, " ")
		list, _, _ = strings.Cut(list, "first:sync")
		if strings.TrimSpace(list) != want {
			t.Errorf("%s: %q, want %q", packet, list, want)
		}
		got = nil
	}
	expect(`2["a"]`, "first:a any:a shared:a own:a own2:a")
	expect(`2["b"]`, "first:b any:b once:b")
	expect(`2["b"]`, "first:b any:b unknown:b")
	expect(`2["blocked"]`, "first:blocked any:blocked error:blocked it")
	expect(`2[5]`, "first:5 any:5 number:5")
	expect(`2["\u00e9\""]`, `first:é" any:é" escaped:é"`)
	expect(`2`, "")
	expect(`212`, "")
	c.Send(`2["offany"]`)
	c.Sync()
	got = nil
	expect(`2["a"]`, "shared:a")
	expect(`2["c"]`, "unknown:c")
}

// A handler answers later, from elsewhere, with arguments it has kept, while the next events are handled.
func TestAckLater(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	kept := make(chan *socketio.Event, 10)
	io.Handle("later", func(ev *socketio.Event) { kept <- ev.Retain() })
	c, _ := join(t, url, "/")
	c.Send(`21["later","first",{"n":1}]`)
	c.Send(`22["later","second"]`)
	c.Send(`2["later","without"]`)
	c.Sync()
	first, second, without := recv(t, kept), recv(t, kept), recv(t, kept)
	must(t, second.Ack(second.Arg(0)))
	c.Expect(`32["second"]`)
	must(t, first.Ack(first.Args().Values()...))
	c.Expect(`31["first",{"n":1}]`)
	if err := first.Ack(); !errors.Is(err, socketio.ErrAlreadyAcked) {
		t.Errorf("second Ack: %v", err)
	}
	if err := without.Ack(); !errors.Is(err, socketio.ErrNoAck) || without.HasAck() || !first.HasAck() {
		t.Errorf("Ack of an event without: %v", err)
	}
	c.Send(`23["later"]`)
	late := recv(t, kept)
	late.Socket().Disconnect(false)
	if err := late.Ack(); !errors.Is(err, socketio.ErrDisconnected) {
		t.Errorf("Ack after the end: %v", err)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	const n = 2000
	io.Handle("n", func(ev *socketio.Event) {
		must(t, ev.Socket().Emit("echo", ev.Arg(0)))
		must(t, ev.Ack(ev.Arg(0)))
	})
	c, _ := join(t, url, "/")
	go func() {
		for i := range n {
			c.Send(fmt.Sprintf(`2%d["n",%d]`, i, i))
		}
	}()
	for i := range n {
		c.Expect(fmt.Sprintf(`2["echo",%d]`, i))
		c.Expect(fmt.Sprintf(`3%d[%d]`, i, i))
	}
}

func TestPanicInHandler(t *testing.T) {
	t.Parallel()
	panics := make(chan string, 5)
	io, url := start(t, socketio.Options{Hooks: socketio.Hooks{
		Panic: func(where string, err *socketio.PanicError) { panics <- fmt.Sprint(where, ": ", err.Value) },
	}})
	reasons := make(chan string, 1)
	io.Handle("panic", func(ev *socketio.Event) { panic("p") })
	io.Handle("acked", func(ev *socketio.Event) { must(t, ev.Ack("mine")); panic("p") })
	io.OnDisconnect(func(s *socketio.Socket, reason string) { reasons <- reason })
	bystander, _ := join(t, url, "/")
	for packet, want := range map[string]string{
		`27["panic"]`: `37[{"error":{"code":"internal","message":"internal error"}}]`,
		`27["acked"]`: `37["mine"]`,
	} {
		c, _ := join(t, url, "/")
		c.Send(packet)
		c.Expect(want)
		if rest := c.Rest(); len(rest) != 0 {
			t.Errorf("%s: then came %q", packet, rest)
		}
		if r := recv(t, reasons); r != "forced server close" {
			t.Errorf("reason %q", r)
		}
		if p := recv(t, panics); p != "handler: p" {
			t.Errorf("panic %q", p)
		}
	}
	bystander.Sync()
}

func TestPanicsElsewhere(t *testing.T) {
	t.Parallel()
	tests := map[string]func(s *socketio.Socket){
		"ack": func(s *socketio.Socket) {
			must(t, s.EmitAck("q", func(socketio.Args, error) { panic("p") }))
		},
		"prepared ack": func(s *socketio.Socket) {
			p, err := s.Namespace().Prepare("q", sinkFunc(func(*socketio.Socket, socketio.Args) { panic("p") }))
			must(t, err)
			_, err = s.EmitPrepared(p)
			must(t, err)
		},
		"any":      func(s *socketio.Socket) { s.OnAny(func(*socketio.Event) { panic("p") }) },
		"use":      func(s *socketio.Socket) { s.Use(func(*socketio.Event) error { panic("p") }) },
		"outgoing": func(s *socketio.Socket) { s.OnAnyOutgoing(func(string, socketio.Args) { panic("p") }); _ = s.Emit("q") },
		"error handler": func(s *socketio.Socket) {
			s.Use(func(*socketio.Event) error { return errors.New("e") })
			s.OnError(func(error) { panic("p") })
		},
	}
	for name, f := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			io, url := start(t, socketio.Options{})
			c, s := joinSocket(t, io.Namespace, url)
			f(s)
			c.Send(`30[]`)
			c.Send(`2["x"]`)
			c.ExpectClose()
			eventually(t, "the socket is gone", func() bool { return io.Len() == 0 })
		})
	}
}

type sinkFunc func(*socketio.Socket, socketio.Args)

func (f sinkFunc) Ack(s *socketio.Socket, args socketio.Args) { f(s, args) }

func TestOnAnyOutgoing(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	c, s := joinSocket(t, io.Namespace, url)
	var mu sync.Mutex
	var got []string
	s.OnAnyOutgoing(func(event string, args socketio.Args) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprintf("%s%s", event, args.Arg(0).Raw()))
	})
	must(t, s.Emit("direct", 1))
	must(t, io.Emit("all", 2))
	must(t, s.EmitAck("ack", func(socketio.Args, error) {}, 3))
	p, err := io.Prepare("prepared", nil, 4)
	must(t, err)
	_, err = s.EmitPrepared(p)
	must(t, err)
	_, err = s.QueuePrepared(p)
	must(t, err)
	s.OffAnyOutgoing()
	must(t, s.Emit("unseen", 5))
	want := "direct1 all2 ack3 prepared4 prepared4"
	mu.Lock()
	defer mu.Unlock()
	if strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, packet := range []string{`2["direct",1]`, `2["all",2]`, `20["ack",3]`, `2["prepared",4]`, `2["prepared",4]`, `2["unseen",5]`} {
		c.Expect(packet)
	}
}

func TestEmitRefuses(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{MaxAttachments: 1})
	c, s := joinSocket(t, io.Namespace, url)
	two := []any{[]byte{1}, []byte{2}}
	for _, name := range []string{"connect", "connect_error", "disconnect", "disconnecting", "newListener", "removeListener"} {
		_, prepareErr := io.Prepare(name, nil)
		_, rawErr := io.PrepareRaw(name, nil, nil)
		_, ackErr := io.EmitWithAck(t.Context(), name)
		for _, err := range []error{s.Emit(name), io.Emit(name), s.EmitAck(name, nil), prepareErr, rawErr, ackErr} {
			if !errors.Is(err, socketio.ErrReservedEvent) {
				t.Errorf("%s: %v, want ErrReservedEvent", name, err)
			}
		}
	}
	_, err := io.PrepareRaw("x", nil, nil, []byte{1}, []byte{2})
	for _, err := range []error{err, s.Emit("x", two...), io.Emit("x", two...), s.EmitAck("x", nil, two...)} {
		if !errors.Is(err, socketio.ErrTooManyAttachments) {
			t.Errorf("%v, want ErrTooManyAttachments", err)
		}
	}
	if err := s.Emit("x", make(chan int)); err == nil {
		t.Error("a channel was encoded")
	}
	if n := s.PendingAcks(); n != 0 {
		t.Errorf("%d acknowledgements are pending", n)
	}
	c.Sync()
}

func TestMsgpackEndToEnd(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{Parser: socketio.MsgpackParser{}})
	io.Handle("echo", func(ev *socketio.Event) { must(t, ev.Ack(ev.Args().Values()...)) })
	c := dial(t, url)
	send := func(p *socketio.Packet) {
		b, err := socketio.MarshalMsgpack(p)
		must(t, err)
		c.SendBinary(b)
	}
	next := func() *socketio.Packet {
		var p socketio.Packet
		data, ok := strings.CutPrefix(c.Next(), "binary:")
		if !ok {
			t.Fatalf("got text")
		}
		must(t, socketio.UnmarshalMsgpack([]byte(data), socketio.Limits{MaxAttachments: 9, MaxDepth: 9}, &p))
		return &p
	}
	send(&socketio.Packet{Type: socketio.PacketConnect, Namespace: "/"})
	if p := next(); p.Type != socketio.PacketConnect || !strings.Contains(string(p.Data), "sid") {
		t.Fatalf("got %+v, want CONNECT", p)
	}
	send(&socketio.Packet{Type: socketio.PacketEvent, Namespace: "/", ID: 3, HasID: true,
		Data: json.RawMessage(`["echo",{"f":{"_placeholder":true,"num":0}}]`), Attachments: [][]byte{{1, 2}}})
	p := next()
	if p.Type != socketio.PacketAck || p.ID != 3 || string(p.Data) != `[{"f":{"_placeholder":true,"num":0}}]` || string(p.Attachments[0]) != "\x01\x02" {
		t.Errorf("got %+v", p)
	}
	must(t, io.Emit("all", "é"))
	if p := next(); string(p.Data) != `["all","é"]` {
		t.Errorf("got %s", p.Data)
	}
	c.SendBinary([]byte{0xc1})
	c.ExpectClose()
}

func TestSendBudget(t *testing.T) {
	t.Parallel()
	reasons := make(chan string, 1)
	io, url := start(t, socketio.Options{Options: engineio.Options{SendBudget: 64 << 10}})
	io.OnDisconnect(func(_ *socketio.Socket, reason string) { reasons <- reason })
	c := socketiotest.DialStalled(t, url)
	eventually(t, "it is connected", func() bool { return io.Len() == 1 })
	big := strings.Repeat("x", 16<<10)
	for io.Len() == 1 {
		must(t, io.Emit("flood", big))
	}
	if r := recv(t, reasons); r != "slow consumer" {
		t.Errorf("reason %q", r)
	}
	_ = c
}
