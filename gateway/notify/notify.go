// Package notify tells users of messages that have not arrived.
//
// The way of a notification:
//
//  1. Somebody notices that a message may not have arrived: the node that has fanned
//     it out, for members who are absent (absences.go); the node that holds a member's
//     sockets, when no acknowledgement came in time; whoever hears that a user went
//     offline. A row of notification_due says when to look again. Who has one already
//     gets no other: the first message starts the wait.
//  2. When the wait is over a sweep (sweep.go) takes the row and looks again: at the
//     positions, at who is online, at what the user wants (chat.NotifyPolicy). It drops
//     the row, puts it off, or makes jobs of it, one for each way to reach the user.
//  3. The queue works on jobs (send.go), with retries. Each attempt looks once more, and
//     reads what it says only then.
//
// Each conversation has notifications of its own, also when waits end together. What
// quiet hours held back is told at once when they end, in one notification for all
// conversations.
//
// A node may die anywhere in between: a row is removed only after its jobs are stored,
// storing them again changes nothing, and an attempt whose end is not recorded is made
// again. So there is never no notification, and at most one too many.
package notify

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"xabar/chat"
)

// Store is what the Scheduler needs of chat.Store.
type Store interface {
	chat.NotifyStore
	CloseOutbox(key chat.OutboxKey, due ...chat.Due)
	MemberIDs(ctx context.Context, conversation chat.ID) ([]chat.ID, error)
	UnreadTotal(ctx context.Context, user chat.ID) (int64, error)
}

// Metrics hears what becomes of notifications. Implementations are safe for
// concurrent use.
type Metrics interface {
	Scheduled(n int)           // waits that have ended and are looked at for the first time
	Suppressed(why string)     // nothing is sent; chat.Why…
	Queued(channel string)     // a job was made
	Sent(channel string)       //
	Retried(channel string)    // an attempt failed and will be repeated, or is put off
	Failed(channel string)     // the last attempt failed
	TargetGone(channel string) // a target was removed because it will never work again
}

// Options of a Scheduler. Store, Presence and Queue are required.
type Options struct {
	Store     Store
	Presence  chat.Presence
	Queue     chat.NotifyQueue
	Notifiers []chat.Notifier
	Policy    chat.NotifyPolicy // its Wait defaults to DefaultWait
	Clock     chat.Clock
	Logger    *slog.Logger
	Metrics   Metrics
	Tracer    chat.Tracer // nil: nothing is recorded
}

// DefaultWait is the time between a message and the look whether it has arrived.
const DefaultWait = 20 * time.Second

// Scheduler is every step of the way but the channels. It implements chat.Absences.
// Make it with New, then Run it.
type Scheduler struct {
	Options
	log       *slog.Logger
	notifiers map[string]chat.Notifier

	fanned chan fanned   // messages that were shown
	hints  chan struct{} // holds one: there is something in behind or offline

	mu        sync.Mutex // guards the fields below
	behind    map[chat.ID]int64
	offline   map[chat.ID]struct{}
	reminders map[chat.ID]time.Duration // users who want to be reminded; replaced as a whole
}

// New makes a Scheduler; it starts nothing.
func New(o Options) *Scheduler {
	if o.Policy.Wait == 0 {
		o.Policy.Wait = DefaultWait
	}
	if o.Clock == nil {
		o.Clock = chat.SystemClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Metrics == nil {
		o.Metrics = noMetrics{}
	}
	s := &Scheduler{
		Options: o, log: o.Logger, notifiers: map[string]chat.Notifier{},
		fanned: make(chan fanned, fannedBound), hints: make(chan struct{}, 1),
		behind: map[chat.ID]int64{}, offline: map[chat.ID]struct{}{},
	}
	for _, n := range o.Notifiers {
		s.notifiers[n.Channel()] = n
	}
	return s
}

// Run schedules, sweeps and sends until ctx ends, and returns when all of that has.
// Errors: the queue's, which then does not work.
func (s *Scheduler) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, loop := range []func(context.Context){s.closeFanned, s.flushHints, s.sweepOn, s.readReminders, s.scheduleLeft} {
		running.Go(func() { loop(ctx) })
	}
	err := s.Queue.Run(ctx, s.send)
	running.Wait()
	return err
}

// pause waits, and says whether ctx still runs.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

type noMetrics struct{}

func (noMetrics) Scheduled(int)     {}
func (noMetrics) Suppressed(string) {}
func (noMetrics) Queued(string)     {}
func (noMetrics) Sent(string)       {}
func (noMetrics) Retried(string)    {}
func (noMetrics) Failed(string)     {}
func (noMetrics) TargetGone(string) {}
