package socketio_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"xabar/gateway/engineio"
	"xabar/gateway/socketio"
	"xabar/gateway/socketio/socketiotest"
)

// watch records the disconnection of all sockets of a namespace.
func watch(ns *socketio.Namespace) <-chan string {
	ch := make(chan string, 100)
	ns.OnConnection(func(s *socketio.Socket) {
		s.OnDisconnecting(func(reason string) {
			ch <- fmt.Sprintf("disconnecting %s in %d rooms", reason, len(s.Rooms()))
		})
		s.OnDisconnect(func(reason string) {
			ch <- fmt.Sprintf("disconnect %s in %d rooms", reason, len(s.Rooms()))
		})
	})
	return ch
}

func expectEnd(t *testing.T, ch <-chan string, reason string) {
	t.Helper()
	if got := recv(t, ch); got != "disconnecting "+reason+" in 2 rooms" {
		t.Errorf("got %q, want disconnecting: %s", got, reason)
	}
	if got := recv(t, ch); got != "disconnect "+reason+" in 0 rooms" {
		t.Errorf("got %q, want disconnect: %s", got, reason)
	}
}

func TestDisconnectReasons(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, reason string
		end          func(c *client, s *socketio.Socket)
	}{
		{"client leaves", "client namespace disconnect", func(c *client, _ *socketio.Socket) { c.Send("1") }},
		{"server disconnects", "server namespace disconnect", func(_ *client, s *socketio.Socket) { s.Disconnect(false) }},
		{"server closes", "server namespace disconnect", func(_ *client, s *socketio.Socket) { s.Disconnect(true) }},
		{"connection cut", "transport close", func(c *client, _ *socketio.Socket) { c.Drop() }},
		{"engine close", "transport close", func(c *client, _ *socketio.Socket) { c.Raw("1") }},
		{"session closed here", "forced close", func(_ *client, s *socketio.Socket) { s.Conn().Close() }},
		{"malformed packet", "forced close", func(c *client, _ *socketio.Socket) { c.Send("2{}") }},
		{"second CONNECT", "forced close", func(c *client, _ *socketio.Socket) { c.Send("0") }},
		{"unknown engine packet", "parse error", func(c *client, _ *socketio.Socket) { c.Raw("9") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			hooked := make(chan string, 2)
			io, url := start(t, socketio.Options{Hooks: socketio.Hooks{
				Disconnect: func(ns, reason string) { hooked <- ns + " " + reason },
			}})
			ends := watch(io.Namespace)
			c, s := joinSocket(t, io.Namespace, url)
			must(t, s.Join("r"))
			ctx := s.Context()
			must(t, ctx.Err())
			tt.end(c, s)
			expectEnd(t, ends, tt.reason)
			if h := recv(t, hooked); h != "/ "+tt.reason {
				t.Errorf("the hook says %q", h)
			}
			recv(t, ctx.Done())
			recv(t, s.Context().Done())
			if s.Connected() || io.Len() != 0 {
				t.Error("the socket is still there")
			}
			s.Disconnect(true) // nothing more happens
			if len(ends) != 0 {
				t.Errorf("one more end: %s", recv(t, ends))
			}
		})
	}
}

func TestPingTimeout(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{Options: engineio.Options{PingInterval: 50 * time.Millisecond, PingTimeout: 50 * time.Millisecond}})
	ends := watch(io.Namespace)
	io.OnConnection(func(s *socketio.Socket) { must(t, s.Join("r")) })
	socketiotest.DialStalled(t, url)
	expectEnd(t, ends, "ping timeout")
}

// What was emitted before a disconnection arrives before it.
func TestDisconnectFlushes(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	other := io.Of("/other")
	ends := watch(other)
	c, s := joinSocket(t, io.Namespace, url)
	id := c.Connect("/other", "")
	must(t, other.Socket(id).Join("r"))
	const n = 500
	for i := range n {
		if i%2 == 0 {
			must(t, s.Emit("n", i))
		} else {
			must(t, io.Emit("n", i))
		}
	}
	s.Disconnect(true)
	rest := c.Rest()
	if len(rest) != n+2 {
		t.Fatalf("%d messages, want %d", len(rest), n+2)
	}
	for i := range n {
		if want := fmt.Sprintf(`42["n",%d]`, i); rest[i] != want {
			t.Fatalf("message %d is %q, want %q", i, rest[i], want)
		}
	}
	if rest[n] != "41" || rest[n+1] != "41/other," {
		t.Errorf("the end is %q, want DISCONNECT of both namespaces", rest[n:])
	}
	expectEnd(t, ends, "server namespace disconnect")
	if err := s.Emit("late"); !errors.Is(err, socketio.ErrDisconnected) {
		t.Errorf("Emit after the end: %v", err)
	}
	if err := s.Join("late"); !errors.Is(err, socketio.ErrDisconnected) {
		t.Errorf("Join after the end: %v", err)
	}
}

func TestLeaveNamespaceAndComeBack(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	io.Of("/a")
	c, s := joinSocket(t, io.Namespace, url)
	c.Connect("/a", "")
	c.Send("1")
	c.Send(`0`)
	if got := c.Next(); !strings.HasPrefix(got, `40{"sid":`) || strings.Contains(got, s.ID()) {
		t.Errorf("got %q, want a CONNECT with a new id", got)
	}
	c.Sync()
	io.Sockets()[0].Disconnect(false)
	c.Expect("1")
	c.Connect("/", "")
	c.Sync()
	c.Send("1/a,")
	c.Send("1/a,") // not joined any more: the protocol's order is broken
	c.ExpectClose()
}

// Disconnecting in a handler and in OnDisconnecting.
func TestDisconnectInHandlers(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	farewell, _ := join(t, url, "/")
	io.OnConnection(func(s *socketio.Socket) {
		s.OnDisconnecting(func(string) {
			s.Disconnect(true)
			must(t, s.Broadcast().Emit("leaving", len(s.Rooms())))
		})
	})
	io.Handle("bye", func(ev *socketio.Event) {
		must(t, ev.Ack("bye"))
		ev.Socket().Disconnect(false)
		if err := ev.Socket().Emit("late"); !errors.Is(err, socketio.ErrDisconnected) {
			t.Errorf("Emit: %v", err)
		}
	})
	c, _ := join(t, url, "/")
	c.Send(`21["bye"]`)
	c.Expect(`31["bye"]`)
	c.Expect("1")
	farewell.Expect(`2["leaving",1]`)
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	io := socketio.NewServer(socketio.Options{Options: engineio.Options{Logger: quiet}})
	url := socketiotest.Start(t, io)
	ends := watch(io.Namespace)
	io.OnConnection(func(s *socketio.Socket) { must(t, s.Join("r")) })
	block := make(chan struct{})
	io.Handle("block", func(*socketio.Event) { <-block })
	c, s := joinSocket(t, io.Namespace, url)
	must(t, s.Emit("last"))
	must(t, s.Timeout(time.Hour).EmitAck("q", func(socketio.Args, error) {}))
	dial(t, url) // not in any namespace
	done := make(chan error, 1)
	go func() { done <- io.Shutdown(t.Context()) }()
	expectEnd(t, ends, "server shutting down")
	close(block)
	must(t, recv(t, done))
	if rest := c.Rest(); len(rest) != 2 || rest[0] != `42["last"]` || rest[1] != `420["q"]` {
		t.Errorf("got %q: want what was emitted, and no DISCONNECT, so that clients come back", rest)
	}
	if err := io.Shutdown(t.Context()); !errors.Is(err, socketio.ErrServerClosed) {
		t.Errorf("second Shutdown: %v", err)
	}
}

func TestShutdownInTime(t *testing.T) {
	t.Parallel()
	io := socketio.NewServer(socketio.Options{Options: engineio.Options{Logger: quiet}})
	url := socketiotest.Start(t, io)
	release := make(chan struct{})
	defer close(release)
	entered := make(chan struct{})
	io.Handle("block", func(*socketio.Event) { close(entered); <-release })
	c, _ := join(t, url, "/")
	c.Send(`2["block"]`)
	recv(t, entered)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := io.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown with a handler that blocks: %v", err)
	}
}

// Sockets are closed while they join rooms: none stays in one.
func TestNoGhosts(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	adapter := io.Adapter().(*socketio.MemoryAdapter)
	for i := range 60 {
		c, s := joinSocket(t, io.Namespace, url)
		var wg sync.WaitGroup
		for k := range 3 {
			wg.Go(func() {
				for j := range 50 {
					if err := s.Join(fmt.Sprintf("room-%d-%d", k, j), "common"); err != nil && !errors.Is(err, socketio.ErrDisconnected) {
						t.Errorf("join: %v", err)
					}
				}
			})
		}
		wg.Go(func() {
			switch i % 4 {
			case 0:
				c.Drop()
			case 1:
				c.Send("1")
			case 2:
				s.Disconnect(false)
			case 3:
				must(t, io.DisconnectSockets(true))
			}
		})
		wg.Wait()
		eventually(t, "the socket is gone", func() bool { return len(s.Rooms()) == 0 && io.Len() == 0 })
		if rooms := adapter.Rooms(); len(rooms) != 0 {
			t.Fatalf("round %d: ghosts in %v", i, rooms)
		}
		c.Close()
	}
	if ids, err := io.AllSockets(t.Context()); len(ids) != 0 || err != nil {
		t.Errorf("ghosts %v, %v", ids, err)
	}
	eventually(t, "all sessions are gone", func() bool { return io.Engine().Sockets() == 0 })
}
