package socketio_test

import (
	"errors"
	"strings"
	"testing"

	"xabar/gateway/engineio"
	"xabar/gateway/socketio"
	"xabar/gateway/socketio/socketiotest"
)

func TestMaxRooms(t *testing.T) {
	t.Parallel()
	bounds := make(chan string, 10)
	io, url := start(t, socketio.Options{MaxRooms: 3, Hooks: socketio.Hooks{Bound: func(b string) { bounds <- b }}})
	_, s := joinSocket(t, io.Namespace, url)
	must(t, s.Join("a", "b")) // and the room of its id
	must(t, s.Join("a", "b", s.ID()))
	if err := s.Join("a", "c"); !errors.Is(err, socketio.ErrTooManyRooms) {
		t.Errorf("a fourth: %v, want ErrTooManyRooms", err)
	}
	if b := recv(t, bounds); b != "MaxRooms" {
		t.Errorf("bound %q", b)
	}
	if err := io.SocketsJoin("d"); !errors.Is(err, socketio.ErrTooManyRooms) {
		t.Errorf("SocketsJoin: %v, want ErrTooManyRooms", err)
	}
	s.Leave("a")
	s.Leave("a")
	must(t, s.Join("c"))
	if n := len(s.Rooms()); n != 3 {
		t.Errorf("%d rooms, want 3", n)
	}
}

// A client that does not read loses volatile events and nothing else happens to it.
func TestVolatile(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{Options: engineio.Options{SendBudget: 1 << 20, VolatileBudget: 64 << 10}})
	socketiotest.DialStalled(t, url)
	eventually(t, "it is connected", func() bool { return io.Len() == 1 })
	s := io.Sockets()[0]
	big := strings.Repeat("x", 16<<10)
	p, err := io.Prepare("big", nil, big)
	must(t, err)
	dropped := 0
	for range 2000 {
		must(t, io.Volatile().Emit("big", big))
		must(t, s.Volatile().Emit("big", big))
		sent, err := s.Volatile().EmitPrepared(p)
		must(t, err)
		if !sent {
			dropped++
		}
	}
	if dropped == 0 || !s.Connected() || s.Conn().BufferedBytes() > 128<<10 {
		t.Errorf("%d were dropped, connected %v, %d bytes wait", dropped, s.Connected(), s.Conn().BufferedBytes())
	}
	must(t, s.Emit("not volatile"))
}

func TestCompress(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	c, s := joinSocket(t, io.Namespace, url)
	must(t, s.Compress(false).Emit("a"))
	must(t, s.Compress(true).Volatile().Emit("b"))
	must(t, io.Compress(false).Emit("c"))
	for _, want := range []string{`2["a"]`, `2["b"]`, `2["c"]`} {
		c.Expect(want)
	}
}
