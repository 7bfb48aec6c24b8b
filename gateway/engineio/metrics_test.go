package engineio

import (
	"maps"
	"sync"
	"testing"

	"github.com/gobwas/ws"
)

// countMetrics counts by name.
type countMetrics struct {
	mu sync.Mutex
	n  map[string]int
}

func (m *countMetrics) count(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n[name]++
}

func (m *countMetrics) SessionOpened(transport string, _ int) { m.count("open " + transport) }
func (m *countMetrics) SessionClosed(transport string, reason Reason) {
	m.count("close " + string(reason))
	m.count("end on " + transport)
}
func (m *countMetrics) Upgraded()            { m.count("upgraded") }
func (m *countMetrics) UpgradeFailed()       { m.count("upgrade failed") }
func (m *countMetrics) Refused(cause string) { m.count("refused " + cause) }
func (m *countMetrics) Received(int)         { m.count("received") }
func (m *countMetrics) Sent(bytes int) {
	if bytes > 0 {
		m.count("sent")
	}
}
func (m *countMetrics) VolatileDropped() { m.count("dropped") }
func (m *countMetrics) Panicked()        { m.count("panicked") }

func TestMetrics(t *testing.T) {
	m := &countMetrics{n: map[string]int{}}
	f := newFixture(t, Options{Metrics: m, MaxPayload: 10}, nil)
	p := f.openPolling()
	s := f.session()
	f.request("GET", "EIO=4&transport=x", "")
	if sent, err := s.socket.Send(true, NewMessage(nil)); sent || err != nil {
		t.Fatal(sent, err)
	}
	p.post("4a\x1e4b").want(t, 200, "ok")
	p.post("4too large for it")
	bad := p.probe(t)
	bad.sendText("x")
	bad.wantClose(0)
	c := p.probe(t)
	c.sendText("5", "4c")
	c.write(clientFrame(ws.OpClose, nil, true))
	c.wantClose(0)
	s.wantEnd(t, ReasonTransportClose)
	eventually(t, "the last count", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.n["end on websocket"] == 1
	})
	want := map[string]int{
		"open polling": 1, "close transport close": 1, "end on websocket": 1, "upgraded": 1, "upgrade failed": 1, "received": 3, "dropped": 1,
		"refused unknown_transport": 1, "refused payload_too_large": 1, "sent": 1,
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !maps.Equal(m.n, want) {
		t.Errorf("got %v, want %v", m.n, want)
	}
}

func TestMetricsOfTooManyPackets(t *testing.T) {
	m := &countMetrics{n: map[string]int{}}
	f := newFixture(t, Options{Metrics: m, MaxPackets: 2}, nil)
	p := f.openPolling()
	p.post("6\x1e6\x1e6")
	f.session().wantEnd(t, ReasonParseError)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.n["refused "+CauseTooManyPackets] != 1 {
		t.Errorf("counted %v", m.n)
	}
}
