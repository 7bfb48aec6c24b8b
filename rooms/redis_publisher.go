package rooms

import (
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

// publication is one message on its way to Redis.
type publication struct {
	verb    verb // classic or sharded
	channel string
	payload []byte
	// done, if not nil, is told once what became of it, on the publisher's goroutine. It
	// must not block.
	done func(err error)
	// probe tries also while Redis is known to be down.
	probe bool
}

// publisher writes publications to Redis in the order in which they came, in pipelines: what
// comes while one round trip is under way goes with the next. publish never waits.
type publisher struct {
	client  redis.UniversalClient
	cluster *redis.ClusterClient
	timeout time.Duration
	log     *slog.Logger
	tripped func(took time.Duration) // hears of each round trip; may be nil
	wake    chan struct{}            // holds one

	mu     sync.Mutex // guards the fields below
	queue  []publication
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

// publish queues publications, all or none. Errors: ErrUnavailable while Redis is known to be
// down, ErrOverloaded.
func (p *publisher) publish(list ...publication) error {
	size := 0
	for i := range list {
		size += len(list[i].payload)
	}
	p.mu.Lock()
	var err error
	switch {
	case p.closed, p.down && !list[0].probe:
		err = ErrUnavailable
	case len(p.queue)+len(list) > maxQueued, p.bytes+size > maxQueuedBytes:
		err = ErrOverloaded
	default:
		p.queue = append(p.queue, list...)
		p.bytes += size
	}
	p.mu.Unlock()
	if err != nil {
		p.refused.Add(int64(len(list)))
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
	return len(p.queue) > maxQueued/4 || p.bytes > maxQueuedBytes/4
}

func (p *publisher) isDown() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.down
}

func (p *publisher) queued() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue)
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

// drain publishes all that is queued, or until the deadline, if there is one: what is left
// then has failed.
func (p *publisher) drain(ctx context.Context, deadline time.Time) {
	for {
		p.mu.Lock()
		all := p.queue
		p.queue, p.bytes = nil, 0
		p.mu.Unlock()
		if len(all) == 0 {
			return
		}
		for len(all) > 0 {
			n := min(len(all), pipelineSize)
			if !deadline.IsZero() && time.Now().After(deadline) {
				n = len(all)
				p.settle(all, func(int) error { return ErrUnavailable })
			} else {
				p.trip(ctx, all[:n])
			}
			all = all[n:]
		}
	}
}

// trip is one round trip; in a cluster, one for each kind.
func (p *publisher) trip(ctx context.Context, batch []publication) {
	if p.isDown() && !hasProbe(batch) {
		p.settle(batch, func(int) error { return ErrUnavailable })
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	p.trips.Add(1)
	cmds := make([]*redis.IntCmd, len(batch))
	start := time.Now()
	err := p.pipeline(ctx, batch, cmds)
	if p.tripped != nil {
		p.tripped(time.Since(start))
	}
	p.setDown(err)
	p.settle(batch, func(i int) error {
		if cmds[i] == nil {
			return err
		}
		return cmds[i].Err()
	})
}

func hasProbe(batch []publication) bool {
	for i := range batch {
		if batch[i].probe {
			return true
		}
	}
	return false
}

// pipeline sends a batch. Ordinary publications to a cluster go through one of its masters, so
// that they keep their order.
func (p *publisher) pipeline(ctx context.Context, batch []publication, cmds []*redis.IntCmd) error {
	if p.cluster == nil {
		_, err := p.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			queue(ctx, pipe, batch, cmds, classic)
			queue(ctx, pipe, batch, cmds, sharded)
			return nil
		})
		return err
	}
	master, err := p.cluster.MasterForKey(ctx, clusterKey)
	if err != nil {
		return err
	}
	pipe := master.Pipeline()
	queue(ctx, pipe, batch, cmds, classic)
	var errs []error
	if pipe.Len() > 0 {
		_, err = pipe.Exec(ctx)
		errs = append(errs, err)
	}
	pipe = p.cluster.Pipeline()
	queue(ctx, pipe, batch, cmds, sharded)
	if pipe.Len() > 0 {
		_, err = pipe.Exec(ctx)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		p.cluster.ReloadState(ctx)
		return err
	}
	return nil
}

func queue(ctx context.Context, pipe redis.Pipeliner, batch []publication, cmds []*redis.IntCmd, v verb) {
	for i := range batch {
		switch {
		case batch[i].verb != v:
		case v == sharded:
			cmds[i] = pipe.SPublish(ctx, batch[i].channel, batch[i].payload)
		default:
			cmds[i] = pipe.Publish(ctx, batch[i].channel, batch[i].payload)
		}
	}
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

// settle tells what became of a batch.
func (p *publisher) settle(batch []publication, result func(i int) error) {
	for i := range batch {
		err := result(i)
		if err != nil {
			p.failed.Add(1)
		} else {
			p.published.Add(1)
		}
		if batch[i].done != nil {
			batch[i].done(err)
		}
	}
}
