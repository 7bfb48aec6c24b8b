package events

import (
	"time"

	"xabar/chat"
)

// Metrics hears what a Hub does. Its methods are called on hot paths and from many
// goroutines: they must be quick and must not call back.
type Metrics interface {
	// Event gives what counts the events of one name, and is asked once for each name
	// that a client may emit. Everything else, which clients name as they like, goes
	// to that of OtherEvents.
	Event(name string) EventMetrics
	// Checked is called for each message:send with the time that its checks took,
	// until it waited for the store.
	Checked(took time.Duration)
	// FannedOut is called for each message with the number of sockets of this node
	// that it went to, 0 included.
	FannedOut(sockets int)
	// Shown is called for each message that did not have to wait for others, with the
	// time from its coming to the hub until it was written to the sockets here.
	Shown(took time.Duration)
	// Acknowledged is called for the first few acknowledgements of each message, with
	// the time since it went out.
	Acknowledged(after time.Duration)
	// Acks counts what became of acknowledgements that messages asked for, some time
	// after it is known: they came in time, late, or not while they still counted.
	Acks(inTime, late, none int64)
	// Closing is called when a socket is told that it is being closed, with the code.
	Closing(code string)
	// RateLimited is called when one of the limits below refuses something.
	RateLimited(limit string)
	// PresenceChanged is called when a user went online or offline, wherever.
	PresenceChanged(online bool)
	// TakenOver is called with the number of messages that had been left in the outbox
	// and were fanned out again.
	TakenOver(messages int)
}

// EventMetrics counts the events of one name.
type EventMetrics interface {
	// Answered is called once for each event: with the error's code, or "" for none,
	// and with the time from its coming to the answer.
	Answered(code chat.Code, took time.Duration)
}

// OtherEvents stands for the names of events that are not in the table.
const OtherEvents = "other"

// What Metrics.RateLimited is told.
const (
	LimitEvents      = "events"      // of a socket
	LimitConnections = "connections" // of a user
)

// What Metrics.Closing is told.
const (
	ClosingDraining     = "draining"
	ClosingTokenExpired = "token_expired"
	ClosingRevoked      = "revoked"
)

// moment is a point of monotonic time, cheap to read and small in a closure.
type moment int64

var started = time.Now()

func now() moment { return moment(time.Since(started)) }

func (m moment) passed() time.Duration { return time.Since(started) - time.Duration(m) }

// event is the counter of a standard event's name.
func (h *Hub) event(name string) EventMetrics {
	counts, ok := h.counts[name]
	if !ok {
		counts = h.cfg.Metrics.Event(name)
		h.counts[name] = counts
	}
	return counts
}

// countOf is an error's code; "" without one.
func countOf(err error) chat.Code {
	if err == nil {
		return ""
	}
	return chat.AsError(err).Code
}

type noMetrics struct{}

func (noMetrics) Event(string) EventMetrics         { return noMetrics{} }
func (noMetrics) Answered(chat.Code, time.Duration) {}
func (noMetrics) Checked(time.Duration)             {}
func (noMetrics) FannedOut(int)                     {}
func (noMetrics) Shown(time.Duration)               {}
func (noMetrics) Acknowledged(time.Duration)        {}
func (noMetrics) Acks(inTime, late, none int64)     {}
func (noMetrics) Closing(string)                    {}
func (noMetrics) RateLimited(string)                {}
func (noMetrics) PresenceChanged(bool)              {}
func (noMetrics) TakenOver(int)                     {}
