package engineio

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

// attackTime is how long TestAttack goes on; ATTACK_TIME asks for more ("1m", as make attack does).
func attackTime(t *testing.T) time.Duration {
	if v := os.Getenv("ATTACK_TIME"); v != "" {
		d, err := time.ParseDuration(v)
		must(t, err)
		return d
	}
	return time.Second
}

// attacker does what no client should, without looking at the answers.
type attacker struct {
	f   *fixture
	rnd *rand.Rand
}

// TestAttack mixes overlapping requests, half-open upgrades, closes from both sides at any moment
// and garbage. The server lives, serves an honest client meanwhile, and is at base afterwards.
func TestAttack(t *testing.T) {
	f := newFixture(t, Options{
		AllowEIO3: true, Compression: true, MaxPayload: 10_000, SendBudget: 20_000, UpgradeTimeout: 50 * time.Millisecond,
		PingInterval: 20 * time.Millisecond, PingTimeout: 3 * time.Second, CloseTimeout: 100 * time.Millisecond, BodyTimeout: 100 * time.Millisecond,
	}, nil)
	f.server.accept = func(s *Socket) Session { return &victim{socket: s} }
	before := runtime.NumGoroutine()
	honest, _ := f.openWS()
	must(t, honest.conn.SetDeadline(time.Now().Add(time.Hour)))
	end := time.Now().Add(attackTime(t))
	var wg sync.WaitGroup
	for seed := range 8 {
		wg.Go(func() {
			a := &attacker{f, rand.New(rand.NewPCG(uint64(seed), 1))}
			for time.Now().Before(end) {
				a.round()
			}
		})
	}
	for n := 0; time.Now().Before(end); n++ {
		honest.sendText(fmt.Sprint("4honest", n))
		for got := ""; got != fmt.Sprint("4honest", n); {
			if got = honest.text(); got == "2" {
				honest.sendText("3")
			}
		}
	}
	wg.Wait()
	honest.write(clientFrame(ws.OpClose, nil, true))
	must(t, honest.conn.Close())
	f.client.CloseIdleConnections()
	eventually(t, "no sessions", func() bool { return f.server.Sockets() == 0 })
	eventually(t, "no goroutines", func() bool { return runtime.NumGoroutine() <= before+2 })
	w := f.server.wheel
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.slots {
		if s != nil {
			t.Errorf("the wheel still has %s", s.id)
		}
	}
}

// victim echoes, and closes at times.
type victim struct{ socket *Socket }

func (v *victim) OnMessage(data []byte, binary bool) {
	switch {
	case strings.HasPrefix(string(data), "close"):
		v.socket.Close()
	case strings.HasPrefix(string(data), "now"):
		go v.socket.CloseNow()
	case strings.HasPrefix(string(data), "panic"):
		panic("attack")
	case binary:
		_, _ = v.socket.SendLater(true, NewBinaryMessage(data))
	default:
		_, _ = v.socket.Send(false, NewMessage(data))
	}
}

func (v *victim) OnClose(Reason, error) {}

var attackBodies = []string{
	"4x", "4close", "4now", "4panic", "1", "2", "3", "5", "", "abc", "4a\x1e4b\x1e1\x1e4c", "bAQID", "6:4hello", "1:1", "99:4",
	"\x00\x02\xff4a", strings.Repeat("4flood\x1e", 300) + "4", strings.Repeat("x", 20_000),
}

func (a *attacker) pick() string { return attackBodies[a.rnd.IntN(len(attackBodies))] }

func (a *attacker) round() {
	eio := []string{"4", "4", "3", "3&b64=1", "3&j=1"}[a.rnd.IntN(5)]
	if a.rnd.IntN(3) == 0 {
		a.websocket("EIO=" + eio + "&transport=websocket")
		return
	}
	open, err := a.f.try("GET", "EIO="+eio+"&transport=polling", "")
	_, rest, found := strings.Cut(strings.ReplaceAll(open.body, `\`, ""), `"sid":"`)
	if err != nil || !found {
		return
	}
	q := "EIO=" + eio + "&transport=polling&sid=" + rest[:20]
	var wg sync.WaitGroup
	for range 1 + a.rnd.IntN(5) {
		switch a.rnd.IntN(4) {
		case 0:
			wg.Go(func() { _, _ = a.f.try("GET", q, "") })
		case 1, 2:
			body := a.pick()
			wg.Go(func() { _, _ = a.f.try("POST", q, body) })
		case 3:
			other := &attacker{a.f, rand.New(rand.NewPCG(a.rnd.Uint64(), 2))}
			wg.Go(func() { other.websocket(strings.Replace(q, "polling", "websocket", 1)) })
		}
	}
	_, _ = a.f.try("POST", q, "1") // so that no GET waits for the heartbeat
	wg.Wait()
}

// websocket connects and sends a few frames, good and bad, in one write, and leaves in some way.
func (a *attacker) websocket(query string) {
	conn, err := net.Dial("tcp", a.f.http.Listener.Addr().String())
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(200 * time.Millisecond))
	_, _ = io.WriteString(conn, a.f.upgradeRequest(query, "Sec-WebSocket-Extensions", "permessage-deflate"))
	r := bufio.NewReader(conn)
	if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != 101 {
		return
	}
	var out []byte
	for range a.rnd.IntN(6) {
		switch a.rnd.IntN(6) {
		case 0:
			out = append(out, clientFrame(ws.OpText, []byte("2probe"), true)...)
		case 1:
			out = append(out, clientFrame(ws.OpText, []byte("5"), true)...)
		case 2:
			out = append(out, clientFrame(ws.OpBinary, []byte(a.pick()), a.rnd.IntN(2) == 0)...)
		case 3:
			out = append(out, clientFrame(ws.OpCode(a.rnd.IntN(16)), []byte(a.pick()), true)...)
		case 4:
			out = append(out, deflatedFrame(ws.OpText, deflate([]byte(a.pick())), true)...)
		default:
			out = append(out, clientFrame(ws.OpText, []byte(a.pick()), true)...)
		}
	}
	if len(out) > 0 && a.rnd.IntN(3) == 0 {
		out = out[:a.rnd.IntN(len(out))]
	}
	_, _ = conn.Write(out)
	if a.rnd.IntN(2) == 0 {
		_, _ = io.CopyN(io.Discard, r, int64(a.rnd.IntN(2000)))
	}
}
