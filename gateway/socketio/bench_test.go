package socketio_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"xabar/gateway/socketio"
	"xabar/gateway/socketio/socketiotest"
)

// drain reads a connection's bytes without looking at them, so that what it allocates and costs is
// not the client's.
func drain(t testing.TB, url string) {
	conn := socketiotest.DialStalled(t, url)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 64<<10)
		for {
			if _, err := conn.Read(buf); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
}

// A delivery of a prepared event allocates nothing.
func TestAllocsPerDelivery(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector allocates: only the calls are made")
	}
	io, url := start(t, socketio.Options{})
	drain(t, url)
	eventually(t, "it is connected", func() bool { return io.Len() == 1 })
	s := io.Sockets()[0]
	p, err := io.Prepare("message", sinkFunc(func(*socketio.Socket, socketio.Args) {}), "a text of some length")
	must(t, err)
	for name, f := range map[string]func() (bool, error){
		"EmitPrepared":  func() (bool, error) { return s.EmitPrepared(p) },
		"QueuePrepared": func() (bool, error) { return s.QueuePrepared(p) },
	} {
		allocs := testing.AllocsPerRun(1000, func() {
			if sent, err := f(); !sent || err != nil {
				t.Fatalf("%s: %v, %v", name, sent, err)
			}
		})
		if allocs != 0 && !raceEnabled {
			t.Errorf("%s: %v allocations, want 0", name, allocs)
		}
	}
}

// rawClient sends the same frame again and again and reads answers without allocating.
type rawClient struct {
	conn  net.Conn
	frame []byte
	buf   []byte
}

func newRawClient(t testing.TB, url, packet string) *rawClient {
	conn := socketiotest.DialStalled(t, url)
	c := &rawClient{conn: conn, frame: ws.MustCompileFrame(ws.MaskFrameInPlace(ws.NewTextFrame([]byte("4" + packet)))), buf: make([]byte, 4096)}
	for range 2 { // open, CONNECT
		if _, err := wsutil.ReadServerText(conn); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// roundTrip sends the frame and reads until n bytes have come.
func (c *rawClient) roundTrip(t testing.TB, n int) {
	if _, err := c.conn.Write(c.frame); err != nil {
		t.Fatal(err)
	}
	for n > 0 {
		k, err := c.conn.Read(c.buf)
		if err != nil {
			t.Fatal(err)
		}
		n -= k
	}
}

const echoAnswer = `43100[{"text":"hello"}]`

func echoServer(t testing.TB) *rawClient {
	io, url := start(t, socketio.Options{})
	io.Handle("echo", func(ev *socketio.Event) {
		if err := ev.Ack(ev.Arg(0)); err != nil {
			t.Error(err)
		}
	})
	return newRawClient(t, url, `2100["echo",{"text":"hello"}]`)
}

// An inbound event with its acknowledgement allocates at most six times, all layers together.
func TestAllocsPerEvent(t *testing.T) {
	c := echoServer(t)
	allocs := testing.AllocsPerRun(2000, func() { c.roundTrip(t, len(echoAnswer)+2) })
	if allocs > 6 && !raceEnabled {
		t.Errorf("%v allocations per event and acknowledgement, want at most 6", allocs)
	}
	t.Logf("%v allocations", allocs)
}

func BenchmarkEcho(b *testing.B) {
	c := echoServer(b)
	b.ReportAllocs()
	for b.Loop() {
		c.roundTrip(b, len(echoAnswer)+2)
	}
}

func BenchmarkBroadcast(b *testing.B) {
	for _, members := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			io, url := start(b, socketio.Options{})
			for range members {
				drain(b, url)
			}
			eventually(b, "all are connected", func() bool { return io.Len() == members })
			must(b, io.SocketsJoin("room"))
			room := io.To("room")
			b.ReportAllocs()
			for b.Loop() {
				must(b, room.Emit("message", "a text of about a hundred bytes, as people write them to each other in chats every day"))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*members), "ns/delivery")
		})
	}
}

// sockets makes n sockets that are connected for the adapter, without connections: what is
// measured is the membership.
func BenchmarkRange(b *testing.B) {
	for _, churn := range []bool{false, true} {
		b.Run(fmt.Sprintf("churn=%v", churn), func(b *testing.B) {
			io, url := start(b, socketio.Options{})
			const members = 200
			for range members {
				drain(b, url)
			}
			eventually(b, "all are connected", func() bool { return io.Len() == members })
			must(b, io.SocketsJoin("room"))
			all := io.Sockets()
			room := io.To("room")
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if churn {
					s := all[i%members]
					s.Leave("room")
					must(b, s.Join("room"))
					i++
				}
				n := 0
				room.Range(func(*socketio.Socket) bool { n++; return true })
				if n != members {
					b.Fatalf("%d members", n)
				}
			}
		})
	}
}
