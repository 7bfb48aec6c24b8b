package events_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"xabar/chat"
	"xabar/gateway/events"
)

// heardMetrics adds up what a hub tells.
type heardMetrics struct {
	mu                         sync.Mutex // guards what follows
	events                     map[string]int
	inTime, late, none         int64
	shown, sockets, acked      int
	checked, limited, presence int
	closing                    []string
}

func (m *heardMetrics) locked(do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
}

func (m *heardMetrics) Checked(time.Duration)      { m.locked(func() { m.checked++ }) }
func (m *heardMetrics) FannedOut(n int)            { m.locked(func() { m.sockets += n }) }
func (m *heardMetrics) Shown(time.Duration)        { m.locked(func() { m.shown++ }) }
func (m *heardMetrics) Acknowledged(time.Duration) { m.locked(func() { m.acked++ }) }
func (m *heardMetrics) Closing(code string)        { m.locked(func() { m.closing = append(m.closing, code) }) }
func (m *heardMetrics) RateLimited(string)         { m.locked(func() { m.limited++ }) }
func (m *heardMetrics) PresenceChanged(bool)       { m.locked(func() { m.presence++ }) }
func (m *heardMetrics) TakenOver(int)              {}

func (m *heardMetrics) Acks(inTime, late, none int64) {
	m.locked(func() { m.inTime, m.late, m.none = m.inTime+inTime, m.late+late, m.none+none })
}

func (m *heardMetrics) Event(name string) events.EventMetrics { return heardEvent{m, name} }

type heardEvent struct {
	m    *heardMetrics
	name string
}

func (e heardEvent) Answered(code chat.Code, _ time.Duration) {
	e.m.locked(func() { e.m.events[e.name+" "+string(code)]++ })
}

// TestMetricsOfAcknowledgements: one comes in time, one late, one never.
func TestMetricsOfAcknowledgements(t *testing.T) {
	t.Parallel()
	m, store := &heardMetrics{events: map[string]int{}}, newQuickStore()
	url := startQuick(t, store, events.Config{Metrics: m, AckTimeout: 40 * time.Millisecond, LateAcks: 200 * time.Millisecond})
	from, to := connectStandard(t, url, "1"), connectStandard(t, url, "2")
	sent := 0
	send := func() (acknowledge func()) {
		sent++
		from.Send(fmt.Sprintf(`2%d["message:send",{"conversationId":%q,"clientMsgId":"m%d","text":"salam"}]`, sent, store.conversation, sent))
		if got := from.Next(); !strings.Contains(got, `"ok":true`) {
			t.Fatalf("the sender got %s", got)
		}
		got := to.Next()
		id, _, _ := strings.Cut(strings.TrimPrefix(got, "42"), "[")
		return func() { to.Send("3" + id + "[]") }
	}
	// Later messages let the hub look at earlier ones.
	until := func(what string, check func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; {
			send()()
			m.mu.Lock()
			done := check()
			m.mu.Unlock()
			if done {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("not in time: %s", what)
			}
		}
	}
	late := send()
	send() // it is never acknowledged
	until("the time of later ones, and so theirs, is over", func() bool { return m.inTime >= 1 })
	late()
	until("late and missing acknowledgements are counted", func() bool { return m.late == 1 && m.none == 1 })
	from.Send(`2999["no:such:event",{}]`)
	if got := from.Next(); !strings.Contains(got, "unknown_event") {
		t.Fatalf("the sender got %s", got)
	}
	// What went out is counted behind it.
	counted := func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.events["message:send "] == sent && m.events["other unknown_event"] == 3 && m.shown == sent && m.sockets == sent && m.checked == sent
	}
	for deadline := time.Now().Add(20 * time.Second); !counted(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("after %d messages: %+v", sent, m)
		}
	}
}
