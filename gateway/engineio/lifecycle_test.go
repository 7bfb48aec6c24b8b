package engineio

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

// short is for tests of the heartbeat. A loaded machine must still answer within the timeout.
var short = Options{PingInterval: 100 * time.Millisecond, PingTimeout: 400 * time.Millisecond}

func TestHeartbeatWebSocket(t *testing.T) {
	f := newFixture(t, short, nil)
	c, _ := f.openWS()
	begin := time.Now()
	for range 3 {
		c.wantText("2")
		c.sendText("3")
	}
	if d := time.Since(begin); d < 300*time.Millisecond {
		t.Errorf("three heartbeats took %v", d)
	}
	c.wantText("2")
	begin = time.Now()
	f.session().wantEnd(t, ReasonPingTimeout)
	if d := time.Since(begin); d < 350*time.Millisecond {
		t.Errorf("closed after %v", d)
	}
	c.wantClose(0)
}

func TestHeartbeatPolling(t *testing.T) {
	f := newFixture(t, short, nil)
	p := f.openPolling()
	for range 2 {
		p.get().want(t, 200, "2")
		p.post("3").want(t, 200, "ok")
	}
	p.get().want(t, 200, "2")
	p.get().want(t, 200, "1")
	f.session().wantEnd(t, ReasonPingTimeout)
	p.get().want(t, 400, `{"code":1,"message":"Session ID unknown"}`)
}

func TestHeartbeatV3(t *testing.T) {
	opts := short
	opts.AllowEIO3 = true
	f := newFixture(t, opts, nil)
	c := f.upgrade("EIO=3&transport=websocket")
	parseOpen(t, c.text())
	begin := time.Now()
	for range 3 {
		time.Sleep(100 * time.Millisecond) // the client's own interval
		c.sendText("2")
		c.wantText("3")
	}
	f.session().wantEnd(t, ReasonPingTimeout)
	if d := time.Since(begin); d < 750*time.Millisecond {
		t.Errorf("closed after %v", d)
	}
}

// A pong that nobody could read because the session was busy does not count as missing.
func TestHeartbeatWaitsForASlowSession(t *testing.T) {
	opts := Options{PingInterval: 30 * time.Millisecond, PingTimeout: 100 * time.Millisecond}
	release := make(chan struct{})
	f := newFixture(t, opts, func(s *testSession, data []byte, binary bool) {
		<-release
		echo(s, data, binary)
	})
	c, _ := f.openWS()
	c.sendText("4x")
	c.wantText("2")
	c.sendText("3")
	s := f.session()
	time.Sleep(3 * (opts.PingInterval + opts.PingTimeout)) // what would have ended it
	close(release)
	for c.text() == "2" {
	}
	select {
	case e := <-s.ended:
		t.Fatalf("closed: %v", e)
	default:
	}
}

func TestGracefulClose(t *testing.T) {
	t.Run("websocket", func(t *testing.T) {
		f := newFixture(t, Options{SendBudget: 64 << 20}, nil)
		c, _ := f.openWS()
		s := f.session()
		pad := strings.Repeat("x", 10_000)
		for i := range 1000 {
			s.send(t, fmt.Sprint(i, pad))
		}
		s.socket.Close()
		if _, err := s.socket.Send(false, NewMessage(nil)); err != ErrClosed {
			t.Errorf("send: %v", err)
		}
		for i := range 1000 {
			c.wantText(fmt.Sprint("4", i, pad))
		}
		c.wantClose(0)
		s.wantEnd(t, ReasonForcedClose)
	})
	t.Run("from a message", func(t *testing.T) {
		f := newFixture(t, Options{}, func(s *testSession, data []byte, binary bool) {
			echo(s, data, binary)
			s.socket.Close()
		})
		c, _ := f.openWS()
		c.sendText("4bye", "4never")
		c.wantText("4bye")
		c.wantClose(0)
		f.session().wantEnd(t, ReasonForcedClose)
	})
	t.Run("waiting GET", func(t *testing.T) {
		f := newFixture(t, Options{}, nil)
		p := f.openPolling()
		poll := f.goRequest("GET", p.query, "")
		p.waitPoll()
		s := f.session()
		s.socket.Close()
		take(t, poll).want(t, 200, "1")
		s.wantEnd(t, ReasonForcedClose)
	})
	t.Run("next GET", func(t *testing.T) {
		f := newFixture(t, Options{}, nil)
		p := f.openPolling()
		s := f.session()
		s.send(t, "a", "b")
		s.socket.Close()
		p.get().want(t, 200, "4a\x1e4b")
		p.get().want(t, 200, "1")
		s.wantEnd(t, ReasonForcedClose)
	})
	t.Run("no GET", func(t *testing.T) {
		f := newFixture(t, Options{CloseTimeout: 50 * time.Millisecond, PingInterval: time.Second}, nil)
		f.openPolling()
		s := f.session()
		s.socket.Close()
		if e := s.wantEnd(t, ReasonForcedClose); e.err != errCloseTimeout {
			t.Errorf("error %v", e.err)
		}
	})
	t.Run("nobody reads", func(t *testing.T) {
		f := newFixture(t, Options{CloseTimeout: 50 * time.Millisecond, PingInterval: time.Second, SendBudget: 64 << 20}, nil)
		f.openWS()
		s := f.session()
		for range 1500 {
			s.send(t, strings.Repeat("x", 10_000))
		}
		s.socket.Close()
		if e := s.wantEnd(t, ReasonForcedClose); e.err != errCloseTimeout {
			t.Errorf("error %v", e.err)
		}
	})
}

func TestCloseNow(t *testing.T) {
	f := newFixture(t, Options{}, nil)
	c, _ := f.openWS()
	s := f.session()
	s.socket.CloseNow()
	s.socket.CloseNow()
	s.socket.Close()
	c.wantClose(0)
	s.wantEnd(t, ReasonForcedClose)

	p := f.openPolling()
	poll := f.goRequest("GET", p.query, "")
	p.waitPoll()
	s = f.session()
	s.socket.CloseNow()
	take(t, poll).want(t, 200, "1")
	s.wantEnd(t, ReasonForcedClose)
}

// OnClose waits for the call that is running.
func TestOnCloseComesLast(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	f := newFixture(t, Options{}, func(s *testSession, data []byte, _ bool) {
		close(entered)
		<-release
		s.messages <- received{string(data), false}
	})
	c, _ := f.openWS()
	c.sendText("4x")
	take(t, entered)
	s := f.session()
	s.socket.CloseNow()
	c.wantClose(0)
	select {
	case <-s.ended:
		t.Fatal("OnClose overlaps OnMessage")
	default:
	}
	close(release)
	s.wantMessage(t, "x", false)
	s.wantEnd(t, ReasonForcedClose)
}

func TestShutdown(t *testing.T) {
	f := newFixture(t, Options{}, nil)
	c, _ := f.openWS()
	ws := f.session()
	waiting := f.openPolling()
	poll := f.goRequest("GET", waiting.query, "")
	waiting.waitPoll()
	s2 := f.session()
	idle := f.openPolling()
	s3 := f.session()
	candidate := f.openPolling()
	s4 := f.session()
	probing := candidate.probe(t)
	ws.send(t, "last words")
	done := make(chan error, 1)
	go func() { done <- f.server.Shutdown(context.Background()) }()
	c.wantText("4last words")
	c.wantClose(1001)
	take(t, poll).want(t, 200, "1")
	probing.wantEOF()
	for _, s := range []*testSession{ws, s2, s3, s4} {
		s.wantEnd(t, ReasonServerShutdown)
	}
	must(t, take(t, done))
	f.request("GET", "EIO=4&transport=polling", "").want(t, 503, `{"code":-1,"message":"Server shutting down"}`)
	if a := idle.get(); a.status != 503 {
		t.Errorf("after the end: %d", a.status)
	}
	if err := f.server.Shutdown(context.Background()); err != ErrServerClosed {
		t.Errorf("again: %v", err)
	}
}

func TestShutdownDeadline(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	f := newFixture(t, Options{CloseTimeout: time.Hour}, func(*testSession, []byte, bool) {
		close(entered)
		<-release
	})
	c, _ := f.openWS()
	c.sendText("4x")
	take(t, entered)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := f.server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("shutdown: %v", err)
	}
	close(release)
	f.session().wantEnd(t, ReasonServerShutdown)
	must(t, f.server.tracker.wait(t.Context()))
}

// Connects and disconnects leave nothing behind.
func TestNothingIsLeft(t *testing.T) {
	f := newFixture(t, Options{}, echo)
	before := runtime.NumGoroutine()
	for i := range 300 {
		if i%10 == 0 {
			p := f.openPolling()
			p.post("1").want(t, 200, "ok")
			take(t, f.sessions)
			continue
		}
		c, _ := f.openWS()
		c.sendText("4x")
		c.wantText("4x")
		if i%2 == 1 {
			c.write(clientFrame(ws.OpClose, nil, true))
			c.wantClose(0)
		} else {
			must(t, c.conn.Close())
		}
		take(t, f.sessions)
	}
	f.client.CloseIdleConnections()
	eventually(t, "no sessions", func() bool { return f.server.Sockets() == 0 })
	eventually(t, "no goroutines", func() bool { return runtime.NumGoroutine() <= before+2 })
	f.server.wheel.mu.Lock()
	defer f.server.wheel.mu.Unlock()
	for i, s := range f.server.wheel.slots {
		if s != nil {
			t.Errorf("a socket is left in slot %d", i)
		}
	}
}

func TestRange(t *testing.T) {
	f := newFixture(t, Options{}, nil)
	for range 3 {
		f.openWS()
		f.session()
	}
	n := 0
	f.server.Range(func(s *Socket) bool {
		if f.server.Socket(s.ID()) != s {
			t.Error("not found by its id")
		}
		n++
		return n < 2
	})
	if n != 2 || f.server.Sockets() != 3 {
		t.Errorf("%d of %d", n, f.server.Sockets())
	}
}

func TestWheel(t *testing.T) {
	w := &wheel{tick: 10}
	sockets := map[string]*Socket{}
	schedule := func(name string, due int64) {
		if sockets[name] == nil {
			sockets[name] = &Socket{id: name}
		}
		w.schedule(sockets[name], due)
	}
	at := func(now int64, want string) {
		t.Helper()
		var fired []string
		for _, s := range w.advance(now, nil) {
			fired = append(fired, s.id)
		}
		slices.Sort(fired)
		if got := strings.Join(fired, ""); got != want {
			t.Errorf("at %d: %q, want %q", now, got, want)
		}
	}
	schedule("a", 5)
	schedule("b", 10)
	schedule("c", 25)
	schedule("far", 10*wheelSlots*2+5)
	at(4, "")
	at(10, "a")
	schedule("c", 15) // moved to an earlier time
	at(20, "bc")
	schedule("late", 3) // due in the past: the next tick
	at(29, "")
	at(30, "late")
	schedule("gone", 50)
	w.cancel(sockets["gone"])
	w.cancel(sockets["gone"])
	at(10*wheelSlots+10, "")
	at(10*wheelSlots*2+10, "far")
	schedule("x", 10*wheelSlots*2+15)
	at(10*wheelSlots*9, "x") // after a long pause
	for i, s := range w.slots {
		if s != nil {
			t.Errorf("slot %d is not empty", i)
		}
	}
}

// An idle connection costs one goroutine, its reader, also one that began with polling.
func TestOneGoroutineForAConnection(t *testing.T) {
	f := newFixture(t, Options{}, echo)
	f.openWS() // what the server and the test start once
	f.client.CloseIdleConnections()
	const connections = 40 // the fixture's channel has room for their sessions
	var before int
	eventually(t, "quiet", func() bool {
		n := runtime.NumGoroutine()
		same := n == before
		before = n
		return same
	})
	for i := range connections {
		var c *wsClient
		if i%2 == 0 {
			c, _ = f.openWS()
		} else {
			p := f.openPolling()
			c = p.probe(t)
			c.sendText("5")
		}
		c.sendText("4x")
		c.wantText("4x")
	}
	f.client.CloseIdleConnections()
	eventually(t, "one each", func() bool { return runtime.NumGoroutine() == before+connections })
}
