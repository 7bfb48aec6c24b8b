package engineio

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

// probe opens the candidate connection of a polling session.
func (p *poller) probe(t *testing.T) *wsClient {
	t.Helper()
	c := p.f.upgrade("EIO=4&transport=websocket&sid=" + p.sid)
	if c.resp.StatusCode != 101 {
		t.Fatalf("upgrade: %s", c.resp.Status)
	}
	c.sendText("2probe")
	c.wantText("3probe")
	return c
}

func TestUpgrade(t *testing.T) {
	f := newFixture(t, Options{}, echo)
	p := f.openPolling()
	poll := f.goRequest("GET", p.query, "")
	p.waitPoll()
	c := p.probe(t)
	take(t, poll).want(t, 200, "6")
	s := f.session()
	s.send(t, "queued one", "queued two")
	c.sendText("5", "4echo")
	for _, want := range []string{"4queued one", "4queued two", "4echo"} {
		c.wantText(want)
	}
	if s.socket.Transport() != WebSocket {
		t.Error("transport")
	}
	p.get().want(t, 400, `{"code":3,"message":"Bad request"}`)
	p.post("4x").want(t, 400, `{"code":3,"message":"Bad request"}`)
	again := f.upgrade("EIO=4&transport=websocket&sid=" + p.sid) // as in Node: accepted and closed
	again.wantClose(0)
	c.sendText("4alive")
	c.wantText("4alive")
}

// A GET that comes after the probe is answered within the check interval, so that the client can pause.
func TestUpgradeAnswersALateGet(t *testing.T) {
	f := newFixture(t, Options{}, echo)
	p := f.openPolling()
	c := p.probe(t)
	p.get().want(t, 200, "6")
	c.sendText("5", "4x")
	c.wantText("4x")
}

func TestUpgradeWithAGetThatOvertook(t *testing.T) {
	f := newFixture(t, Options{}, echo)
	p := f.openPolling()
	c := p.probe(t)
	poll := f.goRequest("GET", p.query, "")
	p.waitPoll()
	c.sendText("5", "4x")
	take(t, poll).want(t, 400, `{"code":3,"message":"Bad request"}`)
	c.wantText("4x")
}

// Without a probe, as in Node: the waiting GET gets the close packet of its transport.
func TestUpgradeWithoutProbe(t *testing.T) {
	f := newFixture(t, Options{}, echo)
	p := f.openPolling()
	poll := f.goRequest("GET", p.query, "")
	p.waitPoll()
	c := f.upgrade("EIO=4&transport=websocket&sid=" + p.sid)
	c.sendText("5", "4x")
	take(t, poll).want(t, 200, "1")
	c.wantText("4x")
}

func TestFailedUpgrades(t *testing.T) {
	for _, c := range []struct {
		name   string
		frames [][]byte
	}{
		{"message", [][]byte{clientFrame(ws.OpText, []byte("4x"), true)}},
		{"garbage", [][]byte{clientFrame(ws.OpText, []byte("abc"), true)}},
		{"binary", [][]byte{clientFrame(ws.OpBinary, []byte("abc"), true)}},
		{"close", [][]byte{clientFrame(ws.OpClose, nil, true)}},
		{"unmasked", [][]byte{ws.MustCompileFrame(ws.NewTextFrame([]byte("5")))}},
		{"timeout", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, Options{UpgradeTimeout: 100 * time.Millisecond}, echo)
			p := f.openPolling()
			w := p.probe(t)
			second := f.upgrade("EIO=4&transport=websocket&sid=" + p.sid) // one at a time
			second.wantClose(0)
			w.write(c.frames...)
			if c.frames != nil {
				w.wantClose(0)
			} else {
				w.wantEOF()
			}
			p.post("4still here").want(t, 200, "ok")
			p.get().want(t, 200, "4still here")
			s := f.server.Socket(p.sid)
			eventually(t, "the candidate's end", func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.polling.probe == nil
			})
			w = p.probe(t) // and then it works
			w.sendText("5", "4now")
			w.wantText("4now")
		})
	}
}

func TestSessionEndsDuringUpgrade(t *testing.T) {
	f := newFixture(t, Options{}, echo)
	p := f.openPolling()
	c := p.probe(t)
	p.post("1").want(t, 200, "ok")
	c.wantEOF()
	f.session().wantEnd(t, ReasonTransportClose)
}

func TestCloseDuringUpgrade(t *testing.T) {
	f := newFixture(t, Options{}, nil)
	p := f.openPolling()
	c := p.probe(t)
	s := f.session()
	s.send(t, "last words")
	s.socket.Close()
	c.sendText("5")
	c.wantText("4last words")
	c.wantClose(0)
	s.wantEnd(t, ReasonForcedClose)
}

func TestUpgradeOff(t *testing.T) {
	f := newFixture(t, Options{NoUpgrades: true}, echo)
	p := f.openPolling()
	c := f.upgrade("EIO=4&transport=websocket&sid=" + p.sid)
	c.wantClose(0)
}

// An upgrade with the other protocol is what it is in Node: the connection speaks its own.
func TestUpgradeWithTheOtherProtocol(t *testing.T) {
	f := newFixture(t, Options{AllowEIO3: true}, echo)
	p := f.openPolling()
	c := f.upgrade("EIO=3&transport=websocket&sid=" + p.sid)
	c.sendText("2probe")
	c.wantText("3probe")
	c.sendText("5", "2")
	c.wantText("3")
	c.write(clientFrame(ws.OpBinary, []byte{4, 7}, true))
	if fr := c.frame(); string(fr.Payload) != "\x04\x07" {
		t.Errorf("binary: %q", fr.Payload)
	}
	c.sendText("3")
	c.wantClose(0)
	f.session().wantEnd(t, ReasonTransportError)
}

// Both sides send all the time; nothing is lost, doubled or reordered by the move.
func TestUpgradeWhileBothSend(t *testing.T) {
	const n = 400
	for round := range 10 {
		f := newFixture(t, Options{SendBudget: 8 << 20}, nil)
		p := f.openPolling()
		s := f.session()
		permits := make(chan struct{}, 8) // for an eighth of the messages each, so that there are some at every stage
		go func() {
			for i := range n {
				if i%(n/8) == 0 {
					<-permits
				}
				send := s.socket.Send
				if i%2 == round%2 {
					send = s.socket.SendLater
				}
				if _, err := send(false, NewMessage(fmt.Append(nil, i))); err != nil {
					t.Error(err)
				}
			}
		}()
		down, up := 0, 0
		receive := func(packets string) {
			t.Helper()
			for _, packet := range strings.Split(packets, "\x1e") {
				if packet == "6" {
					continue
				}
				if packet != fmt.Sprint("4", down) {
					t.Fatalf("got %q, want 4%d", packet, down)
				}
				down++
			}
		}
		sendUp := func() {
			t.Helper()
			p.post(fmt.Sprintf("4%d\x1e4%d", up, up+1)).want(t, 200, "ok")
			up += 2
		}
		// As a client does: it polls and posts, probes meanwhile, pauses, and upgrades.
		for range min(round, 5) {
			sendUp()
			permits <- struct{}{}
			receive(p.get().body)
		}
		c := f.upgrade("EIO=4&transport=websocket&sid=" + p.sid)
		poll := f.goRequest("GET", p.query, "")
		c.sendText("2probe")
		permits <- struct{}{}
		sendUp()
		c.wantText("3probe")
		a := take(t, poll)
		if a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
		receive(a.body)
		for range 8 - 1 - min(round, 5) {
			permits <- struct{}{}
		}
		c.sendText("5")
		for ; up < n; up++ {
			c.sendText(fmt.Sprint("4", up))
		}
		for down < n {
			receive(c.text())
		}
		for i := range n {
			s.wantMessage(t, fmt.Sprint(i), false)
		}
		must(t, c.conn.Close())
		s.wantEnd(t, ReasonTransportClose)
	}
}
