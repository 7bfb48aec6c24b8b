package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"time"

	"xabar/chat"
	"xabar/persistence/postgres"
)

type measurement struct {
	name string
	run  func(context.Context, string) (result, error)
}

func (m measurement) database() string { return strings.ReplaceAll(m.name, "-", "_") }

// measurements are what a round consists of; those of one group take turns.
func (b *bench) measurements() [][]measurement {
	return [][]measurement{
		{{"peer", func(ctx context.Context, url string) (result, error) { return b.pgbench(ctx, url, b.duration, 0) }}},
		{{"send", func(ctx context.Context, url string) (result, error) { return b.saturate(ctx, url, false) }}},
		{{"complete", func(ctx context.Context, url string) (result, error) { return b.saturate(ctx, url, true) }}},
		{
			{"peer-rate", func(ctx context.Context, url string) (result, error) {
				return b.pgbench(ctx, url, b.duration/2, b.rate)
			}},
			{"rate", func(ctx context.Context, url string) (result, error) { return b.atRate(ctx, url, b.duration/2) }},
		},
	}
}

// load drives one Store.
type load struct {
	bench *bench
	store *postgres.Store

	mu        sync.Mutex // guards what follows
	latencies []time.Duration
	errs      []error
}

func (b *bench) open(ctx context.Context, url string) (*load, error) {
	store, err := postgres.Open(ctx, url, b.options)
	return &load{bench: b, store: store}, err
}

// close lets everything queued finish and says what was measured since started.
func (l *load) finish(started time.Time, cpu time.Duration) (result, error) {
	elapsed := time.Since(started)
	err := l.store.Close()
	after, cpuErr := l.bench.cpu()
	l.mu.Lock()
	defer l.mu.Unlock()
	r := result{
		count: len(l.latencies), perSecond: float64(len(l.latencies)) / elapsed.Seconds(),
		cpu: after - cpu, latencies: l.latencies,
	}
	return r, errors.Join(append(l.errs, err, cpuErr)...)
}

func (l *load) record(d time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if len(l.errs) < 5 {
			l.errs = append(l.errs, err)
		}
		return
	}
	l.latencies = append(l.latencies, d)
}

// send stores a message to a random conversation and calls done when the sender
// has its answer. complete adds the rest of a direct message's life: the
// recipient's device has it, the outbox event goes.
func (l *load) send(ctx context.Context, complete bool, done func(error)) {
	n, k := rand.IntN(l.bench.conversations), rand.IntN(2)
	cmd := chat.SendMessage{
		SenderID: userID(2*n + k), ConversationID: conversationID(n), ClientMsgID: chat.NewID().String(), Text: text,
	}
	l.store.Send(ctx, cmd, func(res chat.SendResult, err error) {
		if err != nil || !complete {
			done(err)
			return
		}
		seq := res.Message.Seq
		l.store.CloseOutbox(chat.OutboxKey{ConversationID: cmd.ConversationID, Seq: seq})
		move := chat.PositionMove{Kind: chat.Delivered, UserID: userID(2*n + 1 - k), ConversationID: cmd.ConversationID, UpTo: seq}
		l.store.MovePosition(ctx, move, func(_ chat.PositionResult, err error) { done(err) })
	})
}

// saturate keeps all senders waiting for an answer.
func (b *bench) saturate(ctx context.Context, url string, complete bool) (result, error) {
	l, err := b.open(ctx, url)
	if err != nil {
		return result{}, err
	}
	cpu, err := b.cpu()
	if err != nil {
		return result{}, err
	}
	started := time.Now()
	var wg sync.WaitGroup
	for range b.senders {
		wg.Go(func() {
			answer := make(chan error, 1)
			for time.Since(started) < b.duration && ctx.Err() == nil {
				at := time.Now()
				l.send(ctx, complete, func(err error) { answer <- err })
				err := <-answer
				l.record(time.Since(at), err)
			}
		})
	}
	wg.Wait()
	return l.finish(started, cpu)
}

// sleepUntil is exact to some 50 µs; the runtime's timers, which share a wait in
// milliseconds with the network, would add to every latency.
func sleepUntil(t time.Time) error {
	d := time.Until(t)
	if d <= 0 {
		return nil
	}
	ts := syscall.NsecToTimespec(d.Nanoseconds())
	if err := syscall.Nanosleep(&ts, nil); err != nil && !errors.Is(err, syscall.EINTR) {
		return err
	}
	return nil
}

// atRate sends at the times of a Poisson process, as pgbench's -R does, and counts
// from them.
func (b *bench) atRate(ctx context.Context, url string, d time.Duration) (result, error) {
	l, err := b.open(ctx, url)
	if err != nil {
		return result{}, err
	}
	cpu, err := b.cpu()
	if err != nil {
		return result{}, err
	}
	started := time.Now()
	var wg sync.WaitGroup
	due := started
	for due.Sub(started) < d && ctx.Err() == nil {
		due = due.Add(time.Duration(rand.ExpFloat64() / float64(b.rate) * float64(time.Second)))
		if err := sleepUntil(due); err != nil {
			return result{}, err
		}
		wg.Add(1)
		at := due
		l.send(ctx, false, func(err error) {
			l.record(time.Since(at), err)
			wg.Done()
		})
	}
	wg.Wait()
	return l.finish(started, cpu)
}
