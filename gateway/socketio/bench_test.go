package socketio_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"xabar/gateway/engineio"
	"xabar/gateway/socketio"
	"xabar/gateway/socketio/socketiotest"
)

// drain reads a connection's bytes and only counts them, so that what a benchmark shows is not the
// client's.
func drain(t testing.TB, url string, count *atomic.Int64) {
	conn := socketiotest.DialStalled(t, url)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 64<<10)
		for {
			n, err := conn.Read(buf)
			if count.Add(int64(n)); err != nil {
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
	drain(t, url, new(atomic.Int64))
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

// inFlight is how many broadcasts a benchmark has under way.
const inFlight = 8

func BenchmarkBroadcast(b *testing.B) {
	for _, members := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			io, url := start(b, socketio.Options{})
			var came atomic.Int64
			for range members {
				drain(b, url, &came)
			}
			eventually(b, "all are connected", func() bool { return io.Len() == members })
			must(b, io.SocketsJoin("room"))
			room := io.To("room")
			text := strings.Repeat("x", 100)
			must(b, room.Emit("message", text))
			size := int64(len(`42["message",""]`)+100+2) * int64(members)
			eventually(b, "the first has come", func() bool { return came.Load() > size })
			wait := func(from, broadcasts int64) {
				for came.Load() < from+broadcasts*size {
					time.Sleep(20 * time.Microsecond) // lets the network poller work, as spinning would not
				}
			}
			from, sent := came.Load(), int64(0)
			b.ReportAllocs()
			for b.Loop() {
				must(b, room.Emit("message", text))
				sent++
				wait(from, sent-inFlight)
			}
			wait(from, sent)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*members), "ns/delivery")
		})
	}
}

// BenchmarkRange measures the membership alone, also while it changes.
func BenchmarkRange(b *testing.B) {
	for _, churn := range []bool{false, true} {
		b.Run(fmt.Sprintf("churn=%v", churn), func(b *testing.B) {
			io, url := start(b, socketio.Options{})
			const members = 200
			var came atomic.Int64
			for range members {
				drain(b, url, &came)
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

// BenchmarkAckRecords is what it costs to be ready for the acknowledgements of a broadcast to 1,000: one
// record for the packet (Prepare with a sink), or one for each recipient (EmitWithAck). Both queue and
// write the event, for clients that read it and say nothing.
func BenchmarkAckRecords(b *testing.B) {
	io, url := start(b, socketio.Options{Options: engineio.Options{SendBudget: 1 << 30}})
	const members = 1000
	var came atomic.Int64
	for range members {
		drain(b, url, &came)
	}
	eventually(b, "all are connected", func() bool { return io.Len() == members })
	b.Run("shared", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p, err := io.Prepare("m", sinkFunc(func(*socketio.Socket, socketio.Args) {}), "x")
			must(b, err)
			must(b, io.EmitPrepared(p))
			p.Release()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*members), "ns/recipient")
	})
	b.Run("each", func(b *testing.B) {
		ctx, cancel := context.WithCancel(b.Context())
		cancel() // nobody answers: the records are made and dropped
		b.ReportAllocs()
		for b.Loop() {
			if _, err := io.EmitWithAck(ctx, "m", "x"); err == nil {
				b.Fatal("somebody has answered")
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*members), "ns/recipient")
	})
}
