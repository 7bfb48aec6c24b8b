package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"xabar/chat"
	"xabar/gateway/events"
)

// eventMetrics counts what the hub does (events.Metrics).
type eventMetrics struct {
	events    *prometheus.CounterVec
	durations *prometheus.HistogramVec

	checks, shown, acked, fanOut prometheus.Observer
	inTime, late, none           prometheus.Counter
	closing, limited             map[string]prometheus.Counter
	online, offline, takenOver   prometheus.Counter
}

func newEventMetrics(r *registry, limited *prometheus.CounterVec) *eventMetrics {
	r.part = partEvents
	m := &eventMetrics{
		events: r.counters("xabar_events_total",
			"Events from clients, by the standard event (those of dialects count as the one that they stand for, names that nobody knows as `other`) and the outcome: `ok` or the error's code.",
			"event", "outcome"),
		durations: r.histogram("xabar_event_duration_seconds",
			"Time from an event's coming until it is answered. Of `message:send` it holds the stages check, queue and commit.", latencies, "event"),
	}
	m.limited = byLabel(limited, events.LimitEvents, events.LimitConnections)
	m.closing = byLabel(r.counters("xabar_sessions_closing_total",
		"Sockets that were told that the server closes them (`session:closing`), by the code.", "code"),
		events.ClosingDraining, events.ClosingTokenExpired, events.ClosingRevoked)
	m.checks = r.histogram("xabar_send_check_seconds",
		"Stage 1 of a message: the checks of a send, limits and look-ups included, until it waits for the database.", latencies).WithLabelValues()
	r.part = partDelivery
	m.shown = r.histogram("xabar_fanout_duration_seconds",
		"Stage 4 of a message: from its being stored (or coming from another node) until it is written to the sockets of this node. Messages that wait for an earlier one are left out.", latencies).WithLabelValues()
	m.fanOut = r.histogram("xabar_fanout_sockets",
		"Sockets of this node that a message went to.", append([]float64{0}, sizes...)).WithLabelValues()
	m.acked = r.histogram("xabar_ack_duration_seconds",
		"Stage 5 of a message: from going out to a device until that acknowledged it. Of each message the first 8 acknowledgements on a node count.", latencies).WithLabelValues()
	acks := r.counters("xabar_acks_total",
		"Acknowledgements that messages asked devices for, by outcome: `in_time` (within --ack-timeout), `late` (counts all the same), `none`. Counted when the time is over, about two minutes later for `late` and `none`.",
		"outcome")
	m.inTime, m.late, m.none = acks.WithLabelValues("in_time"), acks.WithLabelValues("late"), acks.WithLabelValues("none")
	changes := r.counters("xabar_presence_changes_total", "Users who went online or offline, on any node, as this node heard it, by state.", "state")
	m.online, m.offline = changes.WithLabelValues("online"), changes.WithLabelValues("offline")
	m.takenOver = r.counter("xabar_outbox_taken_over_total",
		"Messages that a node had left in the outbox, and that this node fanned out again. More than a few without a crash: fan-out is stuck somewhere.")
	return m
}

// serverFaults are outcomes that are the server's fault. They are there from the start,
// so that an alert sees the first one.
var serverFaults = []chat.Code{chat.CodeInternal, chat.CodeOverloaded, chat.CodeUnavailable, chat.CodeTimeout}

// eventCounts counts the events of one name.
type eventCounts struct {
	ok       prometheus.Counter
	outcomes *prometheus.CounterVec // by the error's code
	duration prometheus.Observer    // nil: the event has no answer
}

// Event implements events.Metrics.
func (m *eventMetrics) Event(name string) events.EventMetrics {
	c := &eventCounts{outcomes: m.events.MustCurryWith(prometheus.Labels{"event": name})}
	c.ok = c.outcomes.WithLabelValues("ok")
	for _, code := range serverFaults {
		c.outcomes.WithLabelValues(string(code))
	}
	if name != events.OtherEvents && name != "typing" {
		c.duration = m.durations.WithLabelValues(name)
	}
	return c
}

// Answered counts an event. Errors are rare enough to look their counter up.
func (c *eventCounts) Answered(code chat.Code, took time.Duration) {
	if code == "" {
		c.ok.Inc()
	} else {
		c.outcomes.WithLabelValues(string(code)).Inc()
	}
	if c.duration != nil && took > 0 {
		c.duration.Observe(took.Seconds())
	}
}

func (m *eventMetrics) Checked(took time.Duration)       { m.checks.Observe(took.Seconds()) }
func (m *eventMetrics) FannedOut(sockets int)            { m.fanOut.Observe(float64(sockets)) }
func (m *eventMetrics) Shown(took time.Duration)         { m.shown.Observe(took.Seconds()) }
func (m *eventMetrics) Acknowledged(after time.Duration) { m.acked.Observe(after.Seconds()) }

func (m *eventMetrics) Acks(inTime, late, none int64) {
	m.inTime.Add(float64(max(0, inTime)))
	m.late.Add(float64(max(0, late)))
	m.none.Add(float64(max(0, none)))
}

func (m *eventMetrics) Closing(code string)      { m.closing[code].Inc() }
func (m *eventMetrics) RateLimited(limit string) { m.limited[limit].Inc() }
func (m *eventMetrics) TakenOver(messages int)   { m.takenOver.Add(float64(messages)) }

func (m *eventMetrics) PresenceChanged(online bool) {
	if online {
		m.online.Inc()
	} else {
		m.offline.Inc()
	}
}

// countedLimit counts what a limit refuses.
type countedLimit struct {
	chat.Limiter
	refused prometheus.Counter
}

// Take implements chat.Limiter.
func (l countedLimit) Take(user chat.ID) (time.Duration, bool) {
	wait, ok := l.Limiter.Take(user)
	if !ok {
		l.refused.Inc()
	}
	return wait, ok
}
