// Package readshare lets reads that wait at the same moment share one statement.
//
// It is for reads that many clients need at once, such as those with which a connection
// begins: what starting a statement costs the database is most of the price of such a
// read for one user. A Group takes whatever waits when its turn comes and runs it
// together. Nobody waits for others on an idle node: a read that comes alone goes at
// once. Its counterpart for writes is package groupcommit.
//
// A read begins after it was asked for, so it sees what was committed before. Waiting
// reads are bounded (overloaded), one whose context ends is answered with timeout at
// once, and Close answers what waits before it returns. Start with New and Do.
package readshare

import (
	"context"
	"sync"
	"time"

	"xabar/chat"
)

// Options bound a Group. Zero values take the defaults.
type Options struct {
	Bound    int           // reads that can wait; default 16,384
	MaxBatch int           // reads in one statement; default 64
	Timeout  time.Duration // of one statement's context; default 10 s
	// Pace is the least time between the starts of two statements, unless one is full:
	// under load it gathers more reads into fewer of them. Default 0.
	Pace time.Duration
}

func (o Options) withDefaults() Options {
	if o.Bound <= 0 {
		o.Bound = 16384
	}
	if o.MaxBatch <= 0 {
		o.MaxBatch = 64
	}
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	return o
}

// Exec reads for all of batch and sets the results, of the same length, which are zero
// before. Its error is the error of every read in the batch. It is never called twice at
// once, and keeps neither slice.
type Exec[Req, Res any] func(ctx context.Context, batch []Req, results []Res) error

// Group shares reads of one kind. Make one with New.
type Group[Req, Res any] struct {
	opts    Options
	exec    Exec[Req, Res]
	full    chan struct{} // capacity 1: a whole batch waits
	closing chan struct{} // closed by Close
	running sync.WaitGroup

	mu     sync.Mutex // guards what follows
	queue  []*read[Req, Res]
	busy   bool // a goroutine works on the queue
	closed bool

	started time.Time // of the last statement; of that goroutine
}

// read is one caller's.
type read[Req, Res any] struct {
	ctx  context.Context
	req  Req
	res  Res
	err  error
	done chan struct{} // closed when res and err are set
}

// New makes a Group. It has a goroutine only while reads are waiting; Close waits for it.
func New[Req, Res any](opts Options, exec Exec[Req, Res]) *Group[Req, Res] {
	return &Group[Req, Res]{
		opts: opts.withDefaults(), exec: exec, full: make(chan struct{}, 1), closing: make(chan struct{}),
	}
}

// Do reads, together with whoever waits too. Errors: overloaded (too many wait), timeout (ctx
// has ended), unavailable (after Close), and exec's.
func (g *Group[Req, Res]) Do(ctx context.Context, req Req) (res Res, err error) {
	r := &read[Req, Res]{ctx: ctx, req: req, done: make(chan struct{})}
	if err := g.join(r); err != nil {
		return res, err
	}
	select {
	case <-r.done:
		return r.res, r.err
	case <-ctx.Done():
		return res, chat.Wrap(chat.CodeTimeout, context.Cause(ctx))
	}
}

func (g *Group[Req, Res]) join(r *read[Req, Res]) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return chat.Errorf(chat.CodeUnavailable, "")
	}
	if len(g.queue) >= g.opts.Bound {
		return chat.Errorf(chat.CodeOverloaded, "")
	}
	g.queue = append(g.queue, r)
	g.noteFull()
	if !g.busy {
		g.busy = true
		g.running.Go(g.run)
	}
	return nil
}

// Fill is how many reads wait, and how many can.
func (g *Group[Req, Res]) Fill() (waiting, bound int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.queue), g.opts.Bound
}

// Close refuses new reads and returns when those that wait are answered. Calling it again is
// harmless.
func (g *Group[Req, Res]) Close() {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.closing)
	}
	g.mu.Unlock()
	g.running.Wait()
}

// run works until nothing waits.
func (g *Group[Req, Res]) run() {
	for {
		g.pace()
		batch := g.take()
		if batch == nil {
			return
		}
		g.serve(batch)
	}
}

// noteFull puts into full what holds now. The caller holds mu.
func (g *Group[Req, Res]) noteFull() {
	select {
	case <-g.full:
	default:
	}
	if len(g.queue) >= g.opts.MaxBatch {
		g.full <- struct{}{} // has room: only who holds mu sends
	}
}

// pace waits for the next statement's time.
func (g *Group[Req, Res]) pace() {
	left := time.Until(g.started.Add(g.opts.Pace))
	if left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-g.full:
	case <-g.closing:
	}
}

// take removes the next batch from the queue; nil when there is none, and then run ends.
func (g *Group[Req, Res]) take() []*read[Req, Res] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.busy = false
		return nil
	}
	n := min(len(g.queue), g.opts.MaxBatch)
	batch := g.queue[:n:n]
	if g.queue = g.queue[n:]; len(g.queue) == 0 {
		g.queue = nil
	}
	g.noteFull()
	return batch
}

// serve runs one statement for those of the batch who still wait.
func (g *Group[Req, Res]) serve(batch []*read[Req, Res]) {
	waiting, reqs := batch[:0], make([]Req, 0, len(batch))
	for _, r := range batch {
		if r.ctx.Err() == nil {
			waiting, reqs = append(waiting, r), append(reqs, r.req)
		}
	}
	if len(waiting) == 0 {
		return
	}
	g.started = time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), g.opts.Timeout)
	defer cancel()
	results := make([]Res, len(reqs))
	err := g.exec(ctx, reqs, results)
	for i, r := range waiting {
		if r.err = err; err == nil {
			r.res = results[i]
		}
		close(r.done)
	}
}
