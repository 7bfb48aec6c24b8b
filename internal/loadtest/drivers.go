package loadtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"
)

// driver makes load until its context ends.
type driver interface{ drive(context.Context) }

// plan makes the conversations that a scenario needs, and its drivers.
func (r *run) plan(ctx context.Context) ([]driver, error) {
	o := &r.opts
	switch o.Scenario {
	case "idle":
		return nil, nil
	case "group":
		groups, err := r.openGroups(ctx)
		return []driver{r.sending(groups, o.Rate)}, err
	case "direct":
		pairs, err := r.openPairs(ctx, r.actors)
		return []driver{r.sending(pairs, o.Rate)}, err
	case "reconnect":
		// A tenth stays, and talks: what others feel of a storm.
		staying := max(2, len(r.actors)/20*2)
		pairs, err := r.openPairs(ctx, r.actors)
		if err != nil {
			return nil, err
		}
		return []driver{
			r.sending(pairs[:staying/2], max(o.Rate, 1)),
			&reconnecting{run: r, actors: r.actors[staying:], once: true},
		}, r.seed(ctx, pairs, 1)
	}
	pairs, err := r.openPairs(ctx, r.actors)
	if err != nil {
		return nil, err
	}
	rate := o.Rate
	if rate == 0 {
		rate = 100
	}
	switch o.Scenario {
	case "typing":
		return []driver{&typing{run: r, streams: pairs, rate: rate}, r.sending(pairs, max(1, rate/20))}, nil
	case "history":
		return []driver{&reading{run: r, streams: pairs, rate: o.Rate}}, r.seed(ctx, pairs, o.Seed)
	}
	// A day: for every message two typing events, a fifth of a page read, and a
	// hundredth of a connection that comes back.
	drivers := []driver{r.sending(pairs, rate)}
	if r.desc.Typing.Event != "" {
		drivers = append(drivers, &typing{run: r, streams: pairs, rate: 2 * rate})
	}
	if r.desc.History.Event != "" {
		drivers = append(drivers, &reading{run: r, streams: pairs, rate: rate / 5})
	}
	if r.desc.Sync.Event != "" {
		recipients := make([]*actor, 0, len(pairs))
		for _, s := range pairs {
			recipients = append(recipients, s.room.members[1])
		}
		drivers = append(drivers, &reconnecting{run: r, actors: recipients, rate: rate / 100})
	}
	return drivers, nil
}

// openPairs makes the direct conversations of neighbours; the first of each two sends.
func (r *run) openPairs(ctx context.Context, actors []*actor) ([]*stream, error) {
	streams := make([]*stream, len(actors)/2)
	err := r.parallel(ctx, len(streams), func(i int) error {
		a, b := actors[2*i], actors[2*i+1]
		room, err := r.open(ctx, a, r.desc.OpenDirect, []*actor{a, b}, "user", b.user)
		if err != nil {
			return err
		}
		room.direct = true
		streams[i] = r.newStream(room, a)
		return nil
	})
	return streams, err
}

// openGroups divides the users; one member of each group sends.
func (r *run) openGroups(ctx context.Context) ([]*stream, error) {
	size := r.opts.GroupSize
	streams := make([]*stream, len(r.actors)/size)
	err := r.parallel(ctx, len(streams), func(i int) error {
		members := r.actors[i*size : (i+1)*size]
		users := make([]string, 0, size-1)
		for _, m := range members[1:] {
			users = append(users, m.user)
		}
		title := strconv.Quote(fmt.Sprintf("%s group %d", r.id, i))
		room, err := r.open(ctx, members[0], r.desc.OpenGroup, members, "title", title, "users", "["+strings.Join(users, ",")+"]")
		if err != nil {
			return err
		}
		streams[i] = r.newStream(room, members[0])
		return nil
	})
	return streams, err
}

func (r *run) open(ctx context.Context, a *actor, q request, members []*actor, pairs ...string) (*room, error) {
	answer, err := a.ask(ctx, q, pairs...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.name(), err)
	}
	id := field(answer, q.Field)
	if id == nil {
		return nil, fmt.Errorf("the answer to %s has no %s: %.200s", q.Event, q.Field, answer)
	}
	return &room{id: string(id), members: members}, nil
}

// parallel calls f for 0 to n-1, some at a time, and returns the first error.
func (r *run) parallel(ctx context.Context, n int, f func(int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(32, n) {
		wg.Go(func() {
			for i := range next {
				if ctx.Err() != nil {
					continue
				}
				if err := f(i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range n {
		next <- i
		r.view.progress(fmt.Sprintf("conversation %d of %d", i+1, n))
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}

// seed puts messages into the conversations, and waits until they have arrived.
func (r *run) seed(ctx context.Context, streams []*stream, each int) error {
	for range each {
		for _, s := range streams {
			s.send(r.since())
		}
		deadline := time.Now().Add(answerTimeout)
		for r.waiting() > 0 {
			if time.Now().After(deadline) {
				return fmt.Errorf("%d messages of the preparation do not arrive", r.waiting())
			}
			if !sleepUntil(ctx, time.Now().Add(time.Millisecond)) {
				return ctx.Err()
			}
		}
	}
	return nil
}

// sending sends messages: at a rate, or with a window where the rate is 0.
type sending struct {
	run     *run
	streams []*stream
	rate    float64
}

func (r *run) sending(streams []*stream, rate float64) *sending { return &sending{r, streams, rate} }

func (d *sending) drive(ctx context.Context) {
	if len(d.streams) == 0 {
		return
	}
	if d.rate > 0 {
		d.run.atRate(ctx, d.rate, func(i int64, due time.Duration) { d.streams[i%int64(len(d.streams))].send(due) })
		return
	}
	for _, s := range d.streams {
		s.mu.Lock()
		s.refill = true
		s.mu.Unlock()
		for range d.run.opts.Window {
			s.send(d.run.since())
		}
	}
	<-ctx.Done()
}

// atRate calls f at fixed moments, and catches up where it was late. f must not wait.
func (r *run) atRate(ctx context.Context, rate float64, f func(i int64, due time.Duration)) {
	if rate <= 0 {
		return
	}
	start := r.since()
	for i := int64(0); ; i++ {
		due := start + time.Duration(float64(i)/rate*float64(time.Second))
		if !sleepUntil(ctx, r.start.Add(due)) {
			return
		}
		f(i, due)
	}
}

// typing emits typing events, at random.
type typing struct {
	run     *run
	streams []*stream
	rate    float64
}

func (d *typing) drive(ctx context.Context) {
	q := d.run.desc.Typing
	d.run.atRate(ctx, d.rate, func(int64, time.Duration) {
		s := d.streams[rand.IntN(len(d.streams))]
		_ = s.sender.emit(q.Event, q.fill("conversation", s.room.id), nil) // it is volatile
	})
}

// reading reads pages of history: at a rate, or one reader for each conversation.
type reading struct {
	run     *run
	streams []*stream
	rate    float64
}

func (d *reading) drive(ctx context.Context) {
	if d.rate > 0 {
		d.run.atRate(ctx, d.rate, func(_ int64, due time.Duration) { d.page(d.streams[rand.IntN(len(d.streams))], due, nil) })
		return
	}
	var readers sync.WaitGroup
	for _, s := range d.streams {
		readers.Go(func() {
			for ctx.Err() == nil {
				done := make(chan struct{})
				d.page(s, d.run.since(), func() { close(done) })
				select {
				case <-done:
				case <-ctx.Done():
				}
			}
		})
	}
	readers.Wait()
}

func (d *reading) page(s *stream, due time.Duration, done func()) {
	r := d.run
	err := s.sender.emit(r.desc.History.Event, r.desc.History.fill("conversation", s.room.id, "limit", "50"), func(answer []byte) {
		if contains(answer, r.desc.Okay) {
			r.recorder.record(Paged, r.since()-due)
		} else {
			r.recorder.fail()
			r.noteError(r.desc.History.Event, string(answer[:min(len(answer), 200)]))
		}
		if done != nil {
			done()
		}
	})
	if err != nil {
		r.recorder.fail()
		r.noteError(r.desc.History.Event, err.Error())
		if done != nil {
			r.after(50*time.Millisecond, done)
		}
	}
}

// reconnecting cuts connections and opens them again: all at once, each after a random
// part of the jitter, or one after the other at a rate.
type reconnecting struct {
	run    *run
	actors []*actor
	rate   float64
	once   bool // all of them, one third into the run
}

func (d *reconnecting) drive(ctx context.Context) {
	if len(d.actors) == 0 {
		return
	}
	var running sync.WaitGroup
	defer running.Wait()
	if !d.once {
		busy := make([]sync.Mutex, len(d.actors)) // one may still be under way when its turn comes again
		d.run.atRate(ctx, d.rate, func(i int64, _ time.Duration) {
			n := i % int64(len(d.actors))
			running.Go(func() {
				busy[n].Lock()
				defer busy[n].Unlock()
				d.again(d.actors[n])
			})
		})
		return
	}
	if !sleepUntil(ctx, time.Now().Add(d.run.opts.Warmup+d.run.opts.Duration/3)) {
		return
	}
	slots := make(chan struct{}, dialers)
	start := time.Now()
	for i, a := range d.actors {
		if !sleepUntil(ctx, start.Add(time.Duration(float64(d.run.opts.Jitter)*float64(i)/float64(len(d.actors))))) {
			return
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			d.again(a)
		})
	}
}

// again is not interrupted by the run's end: a user must be back to receive what is missing.
func (d *reconnecting) again(a *actor) {
	a.cut()
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	if err := a.connect(ctx); err != nil {
		d.run.recorder.fail()
		d.run.faults.add(faultBroken, "%s does not get back: %v", a.name(), err)
	}
}
