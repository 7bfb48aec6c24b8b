package engineio

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

func TestWebSocketEcho(t *testing.T) {
	f := newFixture(t, Options{}, echo)
	c, _ := f.openWS()
	c.sendText("4hello", "4€", "b4AQ=")
	c.wantText("4hello")
	c.wantText("4€")
	if fr := c.frame(); fr.Header.OpCode != ws.OpBinary {
		t.Errorf("base64 came back as %v %q", fr.Header.OpCode, fr.Payload)
	}
	c.write(clientFrame(ws.OpBinary, []byte{1, 2, 3, 4}, true))
	if fr := c.frame(); fr.Header.OpCode != ws.OpBinary || !bytes.Equal(fr.Payload, []byte{1, 2, 3, 4}) {
		t.Errorf("binary came back as %v %q", fr.Header.OpCode, fr.Payload)
	}
	c.write(clientFrame(ws.OpText, []byte("4in "), false), clientFrame(ws.OpPing, []byte("p"), true), clientFrame(ws.OpContinuation, []byte("parts"), true))
	if fr := c.frame(); fr.Header.OpCode != ws.OpPong || string(fr.Payload) != "p" {
		t.Errorf("ping was answered with %v %q", fr.Header.OpCode, fr.Payload)
	}
	c.wantText("4in parts")
	big := strings.Repeat("b", 300_000)
	c.sendText("4" + big)
	c.wantText("4" + big)
	if got := f.session().socket.Transport(); got != WebSocket {
		t.Errorf("transport %q", got)
	}
}

// Frames that come in one segment with the request are not lost.
func TestFramesBehindTheRequest(t *testing.T) {
	f := newFixture(t, Options{}, echo)
	big := strings.Repeat("x", 3000)
	early := string(clientFrame(ws.OpText, []byte("4early"), true)) + string(clientFrame(ws.OpText, []byte("4"+big), true))
	c := f.upgradeRaw(f.dial(), f.upgradeRequest("EIO=4&transport=websocket")+early)
	parseOpen(t, c.text())
	c.wantText("4early")
	c.wantText("4" + big)
}

// What was answered before the client broke the rules still arrives.
func TestAnswersBeforeAnError(t *testing.T) {
	f := newFixture(t, Options{}, echo)
	c, _ := f.openWS()
	c.write(join(clientFrame(ws.OpText, []byte("4a"), true), clientFrame(ws.OpText, []byte("4b"), true), clientFrame(ws.OpText, []byte("x"), true)))
	c.wantText("4a")
	c.wantText("4b")
	c.wantClose(0)
}

func TestWebSocketV3(t *testing.T) {
	f := newFixture(t, Options{AllowEIO3: true}, echo)
	c := f.upgrade("EIO=3&transport=websocket")
	parseOpen(t, c.text())
	c.sendText("2", "4hello", "b4AQI=")
	c.wantText("3")
	c.wantText("4hello")
	if fr := c.frame(); string(fr.Payload) != "\x04\x01\x02" {
		t.Errorf("binary: %q", fr.Payload)
	}
	c.write(clientFrame(ws.OpBinary, []byte{4, 9}, true))
	if fr := c.frame(); string(fr.Payload) != "\x04\x09" {
		t.Errorf("binary: %q", fr.Payload)
	}
	if f.session().socket.Protocol() != 3 {
		t.Error("protocol")
	}
	c = f.upgrade("EIO=3&transport=websocket&b64=1")
	parseOpen(t, c.text())
	c.write(clientFrame(ws.OpBinary, []byte{4, 1, 2}, true))
	c.wantText("b4AQI=")
	c.sendText("3")
	c.wantClose(0)
}

func TestWebSocketCloses(t *testing.T) {
	for _, c := range []struct {
		name   string
		frames [][]byte
		code   ws.StatusCode
		reason Reason
	}{
		{"garbage", [][]byte{clientFrame(ws.OpText, []byte("abc"), true)}, 0, ReasonParseError},
		{"empty text", [][]byte{clientFrame(ws.OpText, nil, true)}, 0, ReasonParseError},
		{"close packet", [][]byte{clientFrame(ws.OpText, []byte("1"), true)}, 0, ReasonTransportClose},
		{"ping of a client", [][]byte{clientFrame(ws.OpText, []byte("2"), true)}, 0, ReasonTransportError},
		{"close frame", [][]byte{clientFrame(ws.OpClose, nil, true)}, 0, ReasonTransportClose},
		{"close frame with a code", [][]byte{clientFrame(ws.OpClose, []byte("\x0f\xa0bye"), true)}, 4000, ReasonTransportClose},
		{"bad close code", [][]byte{clientFrame(ws.OpClose, []byte("\x00\x01"), true)}, 1002, ReasonTransportError},
		{"unmasked", [][]byte{ws.MustCompileFrame(ws.NewTextFrame([]byte("4x")))}, 1002, ReasonTransportError},
		{"reserved bits", [][]byte{deflatedFrame(ws.OpText, []byte("4x"), true)}, 1002, ReasonTransportError},
		{"invalid UTF-8", [][]byte{clientFrame(ws.OpText, []byte("4\xff"), true)}, 1007, ReasonTransportError},
		{"too big", [][]byte{clientFrame(ws.OpText, make([]byte, 1001), true)}, 1009, ReasonTransportError},
		{"too big in parts", [][]byte{clientFrame(ws.OpText, make([]byte, 600), false), clientFrame(ws.OpContinuation, make([]byte, 600), true)}, 1009, ReasonTransportError},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, Options{MaxPayload: 1000}, nil)
			w, _ := f.openWS()
			w.write(append([][]byte{clientFrame(ws.OpText, []byte("4before"), true)}, c.frames...)...)
			w.wantClose(c.code)
			s := f.session()
			s.wantMessage(t, "before", false)
			s.wantEnd(t, c.reason)
			if len(s.messages) != 0 {
				t.Error("a message after the end")
			}
			if _, err := s.socket.Send(false, NewMessage(nil)); err != ErrClosed {
				t.Errorf("send after the end: %v", err)
			}
		})
	}
	t.Run("cut", func(t *testing.T) {
		f := newFixture(t, Options{}, nil)
		w, _ := f.openWS()
		must(t, w.conn.Close())
		f.session().wantEnd(t, ReasonTransportClose)
	})
}

// A big frame ends one connection and no other.
func TestOthersDoNotNotice(t *testing.T) {
	f := newFixture(t, Options{MaxPayload: 1000}, echo)
	bad, _ := f.openWS()
	good, _ := f.openWS()
	bad.sendText("4" + strings.Repeat("x", 2000))
	bad.wantClose(1009)
	good.sendText("4fine")
	good.wantText("4fine")
}

func TestSubprotocolAndCompression(t *testing.T) {
	f := newFixture(t, Options{Compression: true}, echo)
	c, _ := f.openWS("Sec-WebSocket-Protocol", "one, two", "Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits")
	if got := c.resp.Header.Get("Sec-Websocket-Protocol"); got != "one" {
		t.Errorf("subprotocol %q", got)
	}
	if got := c.resp.Header.Get("Sec-Websocket-Extensions"); got != deflateAnswer {
		t.Errorf("extensions %q", got)
	}
	text := strings.Repeat("compress me ", 200)
	c.write(deflatedFrame(ws.OpText, deflate([]byte("4"+text)), true))
	fr := c.frame()
	plain, err := inflate(fr.Payload, 1<<20)
	if fr.Header.Rsv == 0 || err != nil || string(plain) != "4"+text {
		t.Errorf("%+v: %q, %v", fr.Header, plain, err)
	}
	c.sendText("4short")
	c.wantText("4short")
	s := f.session()
	if _, err := s.socket.Send(false, NewMessage([]byte(text)).NoCompress()); err != nil {
		t.Fatal(err)
	}
	c.wantText("4" + text)

	for name, offer := range map[string]string{"small window": "permessage-deflate; server_max_window_bits=10", "other": "foo"} {
		c, _ := f.openWS("Sec-WebSocket-Extensions", offer)
		if got := c.resp.Header.Get("Sec-Websocket-Extensions"); got != "" {
			t.Errorf("%s: accepted %q", name, got)
		}
	}
	off := newFixture(t, Options{}, echo)
	c, _ = off.openWS("Sec-WebSocket-Extensions", "permessage-deflate")
	if got := c.resp.Header.Get("Sec-Websocket-Extensions"); got != "" {
		t.Errorf("compression is off, accepted %q", got)
	}
}

// Units of many goroutines stay whole and in each goroutine's order, whichever way they are sent.
func TestSendOrder(t *testing.T) {
	const senders, each = 8, 300
	f := newFixture(t, Options{SendBudget: 64 << 20}, nil)
	c, _ := f.openWS()
	s := f.session()
	var wg sync.WaitGroup
	for g := range senders {
		wg.Go(func() {
			for i := range each {
				unit := []*Message{NewMessage(fmt.Appendf(nil, "%d %d", g, i)), NewMessage(fmt.Appendf(nil, "+%d %d", g, i))}
				send := s.socket.Send
				if i%3 == 0 {
					send = s.socket.SendLater
				}
				if _, err := send(false, unit...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	next := [senders]int{}
	for range senders * each {
		first := c.text()
		var g, i int
		if _, err := fmt.Sscanf(first, "4%d %d", &g, &i); err != nil {
			t.Fatalf("%q: %v", first, err)
		}
		if i != next[g] {
			t.Fatalf("sender %d: got %d, want %d", g, i, next[g])
		}
		next[g]++
		c.wantText("4+" + first[1:])
	}
	wg.Wait()
	eventually(t, "an empty queue", func() bool { return s.socket.BufferedBytes() == 0 })
}

// A client that does not read is closed; Send never waits, volatile messages are dropped first.
func TestSlowConsumer(t *testing.T) {
	f := newFixture(t, Options{SendBudget: 256 << 10}, nil)
	f.openWS()
	s := f.session()
	data := bytes.Repeat([]byte("x"), 2000)
	dropped, sends := false, 0
	var err error
	for begin := time.Now(); err == nil && time.Since(begin) < patience; sends++ {
		m := NewMessage(data)
		if !dropped {
			sent, err := s.socket.Send(true, m)
			must(t, err)
			dropped = !sent
			if n := s.socket.BufferedBytes(); n > 32<<10 {
				t.Fatalf("volatile messages filled the queue: %d", n)
			}
			continue
		}
		_, err = s.socket.Send(false, m)
		if n := s.socket.BufferedBytes(); n > 256<<10 {
			t.Fatalf("%d bytes are queued", n)
		}
	}
	if err != ErrSlowConsumer || !dropped {
		t.Fatalf("after %d sends: %v, dropped %v", sends, err, dropped)
	}
	s.wantEnd(t, ReasonSlowConsumer)
}

// A queue that was stuck is delivered whole once the client reads.
func TestStalledConsumerCatchesUp(t *testing.T) {
	f := newFixture(t, Options{SendBudget: 64 << 20}, nil)
	c, _ := f.openWS()
	s := f.session()
	pad := strings.Repeat("x", 10_000)
	const n = 1500 // more than the kernel's buffers hold
	for i := range n {
		s.send(t, fmt.Sprint(i, pad))
	}
	if s.socket.BufferedBytes() == 0 {
		t.Fatal("the client was not slow")
	}
	for i := range n {
		c.wantText(fmt.Sprint("4", i, pad))
	}
	eventually(t, "an empty queue", func() bool { return s.socket.BufferedBytes() == 0 })
	s.send(t, "after")
	c.wantText("4after")
}

// An empty queue takes a unit beyond the budget: the budget bounds the backlog.
func TestBigUnit(t *testing.T) {
	f := newFixture(t, Options{SendBudget: 1000}, nil)
	c, _ := f.openWS()
	big := strings.Repeat("x", 5000)
	f.session().send(t, big)
	c.wantText("4" + big)
}

// A flood of pings whose answers nobody reads does not fill the memory.
func TestPingFlood(t *testing.T) {
	f := newFixture(t, Options{SendBudget: 64 << 10}, nil)
	c, _ := f.openWS()
	ping := bytes.Repeat(clientFrame(ws.OpPing, make([]byte, 125), true), 500)
	must(t, c.conn.SetWriteDeadline(time.Now().Add(patience)))
	for {
		if _, err := c.conn.Write(ping); err != nil {
			break
		}
	}
	if e := take(t, f.session().ended); e.reason != ReasonSlowConsumer {
		t.Errorf("closed with %q", e.reason)
	}
}

func TestPanics(t *testing.T) {
	var log bytes.Buffer
	var mu sync.Mutex
	f := newFixture(t, Options{Logger: slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(b)
	}), nil))}, func(_ *testSession, data []byte, _ bool) { panic("boom " + string(data)) })
	check := func(name string, s *testSession) {
		t.Helper()
		e := s.wantEnd(t, ReasonForcedClose)
		var p *PanicError
		if !errors.As(e.err, &p) || p.Value != "boom "+name || !bytes.Contains(p.Stack, []byte("TestPanics")) {
			t.Errorf("%s: %v", name, e.err)
		}
	}
	c, _ := f.openWS()
	c.sendText("4ws", "4again")
	if fr := c.frame(); string(fr.Payload) != "\x03\xf3" {
		t.Errorf("close frame %q", fr.Payload)
	}
	check("ws", f.session())
	p := f.openPolling()
	if a := p.post("4polling\x1e4again"); a.status != 400 {
		t.Errorf("POST: %d", a.status)
	}
	check("polling", f.session())
	mu.Lock()
	defer mu.Unlock()
	if n := strings.Count(log.String(), "session panicked"); n != 2 || !strings.Contains(log.String(), "goroutine") {
		t.Errorf("%d panics logged: %s", n, log.String())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// panicky panics where told.
type panicky struct{ onClose chan struct{} }

func (p *panicky) OnMessage([]byte, bool) {}
func (p *panicky) OnClose(Reason, error)  { close(p.onClose); panic("in OnClose") }

func TestPanicInAcceptAndOnClose(t *testing.T) {
	f := newFixture(t, Options{}, nil)
	closed := make(chan struct{})
	first := true
	server := NewServer(Options{Logger: slog.New(slog.DiscardHandler)}, func(*Socket) Session {
		if first {
			first = false
			panic("in accept")
		}
		return &panicky{closed}
	})
	f.http.Config.Handler = server
	c, _ := f.openWS()
	c.frame()
	c, _ = f.openWS()
	c.write(clientFrame(ws.OpClose, nil, true))
	take(t, closed)
	must(t, server.Shutdown(t.Context()))
}

// A connection that only waits is read by a goroutine that has done nothing else, for the sake of its stack.
func TestReaderRestsAfterHeartbeat(t *testing.T) {
	t.Parallel()
	reader := make(chan string, 1)
	f := newFixture(t, Options{}, func(*testSession, []byte, bool) {
		var b [64]byte
		name, _, _ := strings.Cut(string(b[:runtime.Stack(b[:], false)]), " [")
		reader <- name
	})
	c, _ := f.openWS()
	hears := func(text string) string {
		c.sendText(text)
		return take(t, reader)
	}
	first := hears("4a")
	if again := hears("4b"); again != first {
		t.Errorf("%s after %s: a busy connection changed its reader", again, first)
	}
	beat := func() { // and waits until the server has read it
		c.sendText("3")
		c.write(clientFrame(ws.OpPing, nil, true))
		if fr := c.frame(); fr.Header.OpCode != ws.OpPong {
			t.Fatalf("%v answers a ping", fr.Header.OpCode)
		}
	}
	beat()
	second := hears("4c")
	if second == first {
		t.Errorf("%s reads on after a heartbeat", first)
	}
	beat()
	beat()
	if third := hears("4d"); third == second {
		t.Errorf("%s reads on after the next heartbeats", second)
	}
}
