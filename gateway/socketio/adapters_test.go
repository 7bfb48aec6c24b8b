package socketio_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"xabar/gateway/socketio"
)

// What an adapter for several servers does with what it gets from another one.
func TestForeignBroadcast(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	c, s := joinSocket(t, io.Namespace, url)
	opts := &socketio.BroadcastOptions{Rooms: []string{s.ID()}}
	data := json.RawMessage(`["file",{"_placeholder":true,"num":0}]`)
	p, err := io.PrepareData("file", data, [][]byte{{1}}, &opts.Flags)
	must(t, err)
	if p.Packet().HasID || string(p.Packet().Data) != string(data) {
		t.Errorf("packet %+v", p.Packet())
	}
	must(t, io.Memory().Broadcast(p, opts))
	c.Expect(`51-["file",{"_placeholder":true,"num":0}]`)
	c.ExpectBinary([]byte{1})

	p, err = io.PrepareForAck("q", []byte(`["q"]`), nil, &opts.Flags)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	servers, answers := make(chan int, 1), make(chan string, 1)
	must(t, io.Memory().BroadcastWithAck(ctx, p, opts,
		func(n int) { servers <- n },
		func(a socketio.Args) { answers <- string(a.Arg(0).Raw()) }))
	c.Expect(`20["q"]`)
	c.Send(`30["yes"]`)
	if n, a := recv(t, servers), recv(t, answers); n != 1 || a != `"yes"` {
		t.Errorf("%d sockets, answer %s", n, a)
	}
	must(t, io.Memory().BroadcastWithAck(ctx, p, opts, func(int) {}, func(socketio.Args) {}))
	cancel()
	eventually(t, "nothing is pending", func() bool { return s.PendingAcks() == 0 })

	args, err := io.EncodeArgs("x", []byte{2})
	must(t, err)
	if args.Len() != 2 || string(args.Attachments()[0]) != "\x02" || string(args.Arg(0).Raw()) != `"x"` {
		t.Errorf("args %v", args)
	}
	if io.Memory().RoomLen("nobody") != 0 {
		t.Error("an empty room has members")
	}
	must(t, s.Join("room"))
	if io.Memory().RoomLen("room") != 1 {
		t.Error("the room has no member")
	}
}

func TestServerSideHandlers(t *testing.T) {
	t.Parallel()
	panics := make(chan string, 1)
	io, url := start(t, socketio.Options{Hooks: socketio.Hooks{
		Panic: func(where string, _ *socketio.PanicError) { panics <- where },
	}})
	heard := make(chan string, 10)
	io.OnServerSide("hello", func(a socketio.Args, ack func(...any) error) {
		heard <- string(a.Arg(0).Raw())
		if ack != nil {
			must(t, ack("answer"))
		}
	})
	io.OnServerSide("panic", func(socketio.Args, func(...any) error) { panic("p") })
	args := socketio.NewArgs([]json.RawMessage{json.RawMessage(`7`)}, nil)
	io.HandleServerSide("hello", args, nil)
	io.HandleServerSide("hello", args, func(a ...any) error { heard <- a[0].(string); return nil })
	io.HandleServerSide("panic", args, nil)
	io.HandleServerSide("unknown", args, nil)
	for _, want := range []string{"7", "7", "answer"} {
		if got := recv(t, heard); got != want {
			t.Errorf("heard %s, want %s", got, want)
		}
	}
	if p := recv(t, panics); p != "server side handler" {
		t.Errorf("panic in a %s", p)
	}
	for _, name := range []string{"connect", "connection", "new_namespace"} {
		if err := io.ServerSideEmit(name); !errors.Is(err, socketio.ErrReservedEvent) {
			t.Errorf("%s: %v, want ErrReservedEvent", name, err)
		}
		if _, err := io.ServerSideEmitWithAck(t.Context(), name); !errors.Is(err, socketio.ErrReservedEvent) {
			t.Errorf("%s: %v, want ErrReservedEvent", name, err)
		}
	}
	c, _ := join(t, url, "/")
	c.Sync()
}

func TestFetchSocketsFails(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	_, s := joinSocket(t, io.Namespace, url)
	s.SetData(make(chan int))
	if found, err := io.FetchSockets(t.Context()); err == nil {
		t.Errorf("data that is no JSON: %v", found)
	}
	s.SetData(nil)
	found, err := io.In(s.ID()).FetchSockets(t.Context())
	must(t, err)
	must(t, found[0].Disconnect(true))
	eventually(t, "it is gone", func() bool { return io.Len() == 0 })
}

// Every way to send to others, from a socket and from a namespace.
func TestOperators(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	c, s := joinSocket(t, io.Namespace, url)
	other, o := joinSocket(t, io.Namespace, url)
	must(t, o.Join("r"))
	must(t, s.In("r").Emit("in"))
	must(t, s.Except("r").Emit("nobody"))
	must(t, s.Local().Emit("local"))
	must(t, io.In("r").Emit("in namespace"))
	must(t, io.Timeout(1).In("r").Emit("timeout means nothing to it"))
	must(t, io.SocketsLeave("r"))
	must(t, io.To("r").Emit("nobody"))
	for _, want := range []string{`2["in"]`, `2["local"]`, `2["in namespace"]`, `2["timeout means nothing to it"]`} {
		other.Expect(want)
	}
	other.Sync()
	c.Sync()
	if io.Namespace.Server() != io {
		t.Error("the namespace has another server")
	}
}

func TestPanicInNamespaceFunction(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	left := make(chan string, 1)
	parent := io.OfFunc(func(name string, _ json.RawMessage) (bool, error) {
		if name == "/panic" {
			panic("p")
		}
		return true, nil
	})
	parent.OnDisconnect(func(s *socketio.Socket, reason string) { left <- s.Namespace().Name() + " " + reason })
	c := dial(t, url)
	c.Connect("/fine", "")
	c.Send("0/panic,")
	c.Expect(`4/panic,{"message":"internal error","data":{"code":"internal","message":"internal error"}}`)
	c.ExpectClose()
	if got := recv(t, left); got != "/fine forced server close" {
		t.Errorf("got %s", got)
	}
}
