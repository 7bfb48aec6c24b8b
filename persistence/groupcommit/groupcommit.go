// Package groupcommit lets requests that wait at the same moment share one
// transaction.
//
// A Batcher has a few shards. Requests with the same key go to the same shard and
// keep their order; a shard runs one batch at a time, and whatever comes
// meanwhile waits and is the next batch. So an idle store adds no delay, and a busy
// one pays for a commit once per batch instead of once per request.
//
// Queues are bounded (overloaded), a request whose context ends is answered with
// timeout without waiting for its turn, and Close drains. Start with New and
// Enqueue; the stores' exec functions show the other side.
package groupcommit

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"xabar/chat"
)

// Options bound a Batcher. Zero values take the defaults.
type Options struct {
	Shards     int           // batches that can run at once; default 1
	QueueBound int           // requests that can wait in one shard; default 4096
	MaxBatch   int           // requests in one batch; default 256
	Timeout    time.Duration // of one batch's context; default 10 s
	// Gather is how long requests of EnqueueLater wait for others. Default 0.
	Gather time.Duration
	// Observer, if not nil, hears of every batch.
	Observer Observer
	// Span names the span of a request whose context stands in one; default "store.write".
	Span string
}

// Observer hears of batches, on the goroutines that run them: it must be quick.
type Observer interface {
	// Waited is called for each request that has come into a batch, with its time in the queue.
	Waited(d time.Duration)
	// Ran is called after each batch, with the number of its requests.
	Ran(requests int, took time.Duration)
}

func (o Options) withDefaults() Options {
	if o.Shards <= 0 {
		o.Shards = 1
	}
	if o.QueueBound <= 0 {
		o.QueueBound = 4096
	}
	if o.MaxBatch <= 0 {
		o.MaxBatch = 256
	}
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Span == "" {
		o.Span = "store.write"
	}
	return o
}

// Item is one request of a batch. Exec fills in Res or Err.
type Item[Req, Res any] struct {
	Req Req
	Res Res
	Err error

	ctx      context.Context
	deadline time.Time // ctx's; zero: none
	queued   time.Time // zero without an Observer
	hurried  bool      // its batch does not wait
	done     func(Res, error)
	answered atomic.Bool
	span     chat.Span // from Enqueue to the answer; nil: not recorded
}

// ended says whether the caller's time is over. A context's own deadline is looked
// at too, so that a caller can bound many requests without a timer for each.
func (it *Item[Req, Res]) ended(now time.Time) bool {
	return it.ctx.Err() != nil || !it.deadline.IsZero() && !now.Before(it.deadline)
}

// answer calls done, unless somebody has before: the janitor's timeout and the
// batch's end race for it.
func (it *Item[Req, Res]) answer(res Res, err error) {
	if it.answered.CompareAndSwap(false, true) {
		chat.EndSpan(it.span, err)
		it.done(res, err)
	}
}

// Exec runs one batch and sets Res or Err of every item. It is called by one
// goroutine per shard; the slice is only its own until it returns. An item whose
// caller has been answered with timeout meanwhile may be among them.
type Exec[Req, Res any] func(ctx context.Context, shard int, batch []*Item[Req, Res])

// Batcher groups requests. Make one with New.
type Batcher[Req, Res any] struct {
	opts   Options
	exec   Exec[Req, Res]
	shards []*shard[Req, Res]

	janitor janitor[Req, Res]
	workers sync.WaitGroup // the shards' goroutines; Close waits
}

// shard is a queue and the goroutine that runs its batches.
type shard[Req, Res any] struct {
	wake chan struct{} // capacity 1: there is work, or the end

	mu       sync.Mutex // guards what follows
	queue    []*Item[Req, Res]
	hurried  int               // those of the queue for which a batch does not wait
	inflight []*Item[Req, Res] // changed by the shard's goroutine only
	closed   bool
}

// New starts a Batcher with one goroutine per shard and one janitor. Close ends
// them.
func New[Req, Res any](opts Options, exec Exec[Req, Res]) *Batcher[Req, Res] {
	b := &Batcher[Req, Res]{opts: opts.withDefaults(), exec: exec}
	b.janitor.init()
	for n := range b.opts.Shards {
		s := &shard[Req, Res]{wake: make(chan struct{}, 1)}
		b.shards = append(b.shards, s)
		b.workers.Go(func() { b.run(n, s) })
	}
	go b.janitor.run(b.shards)
	return b
}

// Key spreads ids over shards.
func Key(id chat.ID) uint64 { return binary.BigEndian.Uint64(id[8:]) ^ binary.BigEndian.Uint64(id[:8]) }

// Enqueue queues req behind the others of its key and returns at once. done is
// called exactly once, from a goroutine of the Batcher (after Close: of the
// caller), and must not block; for requests of one shard that were run, in the
// order of the calls.
//
// ctx bounds the wait: by ending, or by a Deadline that has passed, whether it
// notices or not.
//
// Errors given to done: overloaded (the shard's queue is full), timeout (ctx is
// over; a request that was not yet in a batch has not been run), unavailable
// (after Close), and what exec sets.
func (b *Batcher[Req, Res]) Enqueue(ctx context.Context, key uint64, req Req, done func(Res, error)) {
	b.enqueue(key, &Item[Req, Res]{Req: req, ctx: ctx, done: done, hurried: true})
}

// EnqueueLater is Enqueue for a request that nobody waits for, and that is cheaper together with
// others: unless a batch goes anyway, it stays in the queue for Options.Gather.
func (b *Batcher[Req, Res]) EnqueueLater(ctx context.Context, key uint64, req Req, done func(Res, error)) {
	b.enqueue(key, &Item[Req, Res]{Req: req, ctx: ctx, done: done, hurried: b.opts.Gather <= 0})
}

func (b *Batcher[Req, Res]) enqueue(key uint64, it *Item[Req, Res]) {
	ctx, s := it.ctx, b.shards[key%uint64(len(b.shards))]
	it.deadline, _ = ctx.Deadline()
	it.span = chat.ChildSpan(chat.SpanOf(ctx), chat.InternalSpan, b.opts.Span)
	if b.opts.Observer != nil {
		it.queued = time.Now()
	}

	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		var none Res
		it.answer(none, chat.Errorf(chat.CodeUnavailable, ""))
		return
	}
	if len(s.queue) >= b.opts.QueueBound {
		// Under the lock, so that the janitor, which ends after the shards have
		// closed, still takes it.
		b.janitor.pending.Add(1)
		s.mu.Unlock()
		b.janitor.refused <- it
		b.janitor.pending.Done()
		return
	}
	idle, hurry := len(s.queue) == 0, it.hurried && s.hurried == 0
	s.queue = append(s.queue, it)
	if it.hurried {
		s.hurried++
	}
	// A batch that is full has nothing to wait for.
	hurry = hurry || len(s.queue) == b.opts.MaxBatch
	s.mu.Unlock()

	if idle || hurry {
		signal(s.wake)
	}
	if idle {
		signal(b.janitor.wake)
	}
}

// Waiting is the number of requests that are queued and not yet in a batch.
func (b *Batcher[Req, Res]) Waiting() int {
	n := 0
	for _, s := range b.shards {
		s.mu.Lock()
		n += len(s.queue)
		s.mu.Unlock()
	}
	return n
}

// Fill is how many requests wait in the shard that has most of them, and how many can.
func (b *Batcher[Req, Res]) Fill() (waiting, bound int) {
	for _, s := range b.shards {
		s.mu.Lock()
		waiting = max(waiting, len(s.queue))
		s.mu.Unlock()
	}
	return waiting, b.opts.QueueBound
}

// Close refuses new requests, runs what is queued, and returns when all have been
// answered and the goroutines have ended. Calling it again is harmless.
func (b *Batcher[Req, Res]) Close() {
	for _, s := range b.shards {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		signal(s.wake)
	}
	b.workers.Wait()
	b.janitor.close()
}

// run is a shard's goroutine.
func (b *Batcher[Req, Res]) run(n int, s *shard[Req, Res]) {
	for {
		b.gather(s)
		batch, expired, last := s.take(b.opts.MaxBatch)
		for _, it := range expired {
			expire(it)
		}
		switch {
		case len(batch) > 0:
			b.runBatch(n, s, batch)
		case len(expired) > 0: // look again at once
		case last:
			return
		default:
			<-s.wake
		}
	}
}

// gather lets requests of EnqueueLater come together while there are no others, unless the shard
// is closed. It may take the wake of those that came: the caller looks at the queue next.
func (b *Batcher[Req, Res]) gather(s *shard[Req, Res]) {
	if !s.gathers(b.opts.MaxBatch) {
		return
	}
	timer := time.NewTimer(b.opts.Gather)
	defer timer.Stop()
	for s.gathers(b.opts.MaxBatch) {
		select {
		case <-timer.C:
			return
		case <-s.wake:
		}
	}
}

// gathers says whether the queue holds nothing but requests that can wait, and room for more.
func (s *shard[Req, Res]) gathers(max int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && s.hurried == 0 && len(s.queue) > 0 && len(s.queue) < max
}

func (b *Batcher[Req, Res]) runBatch(n int, s *shard[Req, Res], batch []*Item[Req, Res]) {
	ctx, cancel := context.WithTimeout(context.Background(), b.opts.Timeout)
	span := batchSpan(n, batch)
	b.observed(batch, func() { b.exec(ctx, n, batch) })
	chat.EndSpan(span, nil)
	cancel()
	for _, it := range batch {
		it.answer(it.Res, it.Err)
	}
	s.mu.Lock()
	clear(s.inflight)
	s.inflight = s.inflight[:0]
	s.mu.Unlock()
}

// observed runs a batch and tells the Observer.
func (b *Batcher[Req, Res]) observed(batch []*Item[Req, Res], exec func()) {
	o := b.opts.Observer
	if o == nil {
		exec()
		return
	}
	start := time.Now()
	for _, it := range batch {
		o.Waited(start.Sub(it.queued))
	}
	exec()
	o.Ran(len(batch), time.Since(start))
}

// take moves up to max requests from the queue to the shard's batch, sorting out
// those whose context has ended. last says that nothing will come any more.
func (s *shard[Req, Res]) take(max int) (batch, expired []*Item[Req, Res], last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, now := 0, time.Now()
	for ; n < len(s.queue) && len(s.inflight) < max; n++ {
		it := s.queue[n]
		s.left(it)
		if it.ended(now) {
			expired = append(expired, it)
		} else {
			s.inflight = append(s.inflight, it)
		}
	}
	rest := copy(s.queue, s.queue[n:])
	clear(s.queue[rest:])
	s.queue = s.queue[:rest]
	return s.inflight, expired, s.closed && rest == 0
}

// left notes that an item is no longer in the queue. The caller holds mu.
func (s *shard[Req, Res]) left(it *Item[Req, Res]) {
	if it.hurried {
		s.hurried--
	}
}

func expire[Req, Res any](it *Item[Req, Res]) {
	cause := context.Cause(it.ctx)
	if cause == nil { // its deadline has passed, and no timer has told it
		cause = context.DeadlineExceeded
	}
	var none Res
	it.answer(none, chat.Wrap(chat.CodeTimeout, cause))
}

// signal leaves a token in a channel of capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
