package rooms

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Bounds of what waits to be published. Beyond them it is refused, and counted.
const (
	maxQueued      = 1 << 16  // publications
	maxQueuedBytes = 32 << 20 // of payloads
	pipelineSize   = 512      // publications in one round trip
)

// tripInterval is the time between the beginnings of two round trips. The first after a
// pause goes at once; on a busy node what comes meanwhile shares the next one, which
// spares all three: this node, Redis, and those that hear it.
const tripInterval = time.Millisecond

// ErrOverloaded: more waits to be published than there is room for.
var ErrOverloaded = errors.New("rooms: the queue to Redis is full")

// publisher writes publications to Redis in the order in which they came, in pipelines: what
// comes while one round trip is under way goes with the next. publish never waits.
type publisher struct {
	client  redis.UniversalClient
	cluster *redis.ClusterClient
	timeout time.Duration
	log     *slog.Logger
	tripped func(took time.Duration) // hears of each round trip; may be nil
	wake    chan struct{}            // holds one

	slots []*slot       // of run's goroutine: commands for one round trip
	spare []publication // of run's goroutine: an empty queue, to be used again

	mu     sync.Mutex // guards the fields below
	queue  []publication
	queued int // publications in it, one for each channel
	bytes  int
	down   bool // the last round trip failed
	closed bool

	published, refused, failed, trips atomic.Int64
}

func newPublisher(s *server, log *slog.Logger) *publisher {
	return &publisher{
		client: s.client, cluster: s.cluster, timeout: ioTimeout + time.Second, log: log,
		wake: make(chan struct{}, 1),
	}
}

// publish queues a publication, for all of its channels or none. Errors: ErrUnavailable while Redis
// is known to be down, ErrOverloaded.
func (p *publisher) publish(what *publication) error {
	n := len(what.addresses())
	size := n * len(what.payload)
	p.mu.Lock()
	var err error
	switch {
	case p.closed, p.down && !what.probe:
		err = ErrUnavailable
	case p.queued+n > maxQueued, p.bytes+size > maxQueuedBytes:
		err = ErrOverloaded
	default:
		p.queue = append(p.queue, *what)
		p.queued += n
		p.bytes += size
	}
	p.mu.Unlock()
	if err != nil {
		p.refused.Add(int64(n))
		return err
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
	return nil
}

// crowded says that volatile publications had better be dropped.
func (p *publisher) crowded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queued > maxQueued/4 || p.bytes > maxQueuedBytes/4
}

func (p *publisher) isDown() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.down
}

// waiting is how many publications wait, one for each channel.
func (p *publisher) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queued
}

// run publishes until ctx ends; then it has one more timeout for what is queued.
func (p *publisher) run(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			p.end(ctx)
			return
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			p.end(ctx)
			return
		case <-p.wake:
			pause.Reset(tripInterval)
			p.drain(ctx, time.Time{})
		}
	}
}

func (p *publisher) end(ctx context.Context) {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.drain(context.WithoutCancel(ctx), time.Now().Add(p.timeout))
}

// drain publishes what is queued now, or until the deadline, if there is one: what is left
// then has failed. What comes meanwhile has woken the next drain.
func (p *publisher) drain(ctx context.Context, deadline time.Time) {
	p.mu.Lock()
	all := p.queue
	p.queue, p.queued, p.bytes = p.spare, 0, 0
	p.mu.Unlock()
	p.spare = nil
	for left := all; len(left) > 0; {
		n := oneTrip(left)
		if !deadline.IsZero() && time.Now().After(deadline) {
			n = len(left)
			p.fail(left, ErrUnavailable)
		} else {
			p.trip(ctx, left[:n])
		}
		left = left[n:]
	}
	p.keep(all)
}

// keep empties a queue, for use again if it is no larger than what usually waits.
func (p *publisher) keep(queue []publication) {
	if cap(queue) <= 2*pipelineSize {
		clear(queue)
		p.spare = queue[:0]
	}
}

// oneTrip is how many of the list go together, at least one.
func oneTrip(list []publication) int {
	commands := 0
	for i := range list {
		if commands += len(list[i].addresses()); commands > pipelineSize {
			return max(1, i)
		}
	}
	return len(list)
}

// trip is one round trip; in a cluster, one for each kind.
func (p *publisher) trip(ctx context.Context, batch []publication) {
	if p.isDown() && !hasProbe(batch) {
		p.fail(batch, ErrUnavailable)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	p.trips.Add(1)
	slots := p.fill(batch)
	start := time.Now()
	err := p.pipeline(ctx, slots)
	if p.tripped != nil {
		p.tripped(time.Since(start))
	}
	p.setDown(err)
	p.settle(batch, slots, err)
	if err != nil {
		p.slots = nil // go-redis may still have its hands on the commands
		return
	}
	for i := range batch {
		if batch[i].pooled != nil {
			envelopes.Put(batch[i].pooled)
		}
	}
}

func hasProbe(batch []publication) bool {
	for i := range batch {
		if batch[i].probe {
			return true
		}
	}
	return false
}

func (p *publisher) setDown(err error) {
	p.mu.Lock()
	changed := p.down != (err != nil)
	p.down = err != nil
	p.mu.Unlock()
	switch {
	case changed && err != nil:
		p.log.Warn("publishing to Redis fails", "error", err)
	case changed:
		p.log.Info("publishing to Redis works again")
	}
}

// settle tells what became of a batch, whose commands are in slots. err is of the round trip.
func (p *publisher) settle(batch []publication, slots []*slot, err error) {
	var published, failed int64
	for i := range batch {
		var first error
		n := len(batch[i].addresses())
		for _, s := range slots[:n] {
			if result := s.result(err); result != nil {
				failed++
				first = cmp.Or(first, result)
			} else {
				published++
			}
			s.payload = nil
		}
		slots = slots[n:]
		if batch[i].done != nil {
			batch[i].done(first)
		}
	}
	p.published.Add(published)
	p.failed.Add(failed)
}

// fail tells that nothing of a batch was tried.
func (p *publisher) fail(batch []publication, err error) {
	for i := range batch {
		p.failed.Add(int64(len(batch[i].addresses())))
		if batch[i].done != nil {
			batch[i].done(err)
		}
	}
}
