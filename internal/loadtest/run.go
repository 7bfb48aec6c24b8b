package loadtest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// run is one load test.
type run struct {
	opts     Options
	desc     *Description
	id       string // in each text, so that a run hears only itself
	start    time.Time
	recorder *recorder
	faults   faults
	over     atomic.Bool // connections may end now
	repeats  atomic.Int64
	actors   []*actor
	view     *view
	timers   sync.WaitGroup
	leaving  context.Context // ends when connections that were lost need not come back

	comebacks sync.WaitGroup

	mu      sync.Mutex // guards what follows
	streams []*stream  // the slice is only appended to
	errors  map[string]int

	interruptions int64 // connections that ended by themselves
}

// Run runs a load test and returns when all its connections are closed. The error is of
// a test that could not be made; what the server did wrong stands in the Result.
func Run(ctx context.Context, opts Options) (*Result, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	r := &run{
		opts: opts, desc: opts.Description, start: time.Now(), recorder: newRecorder(),
		id: "lt" + strings.ToLower(rand.Text()[:10]), errors: map[string]int{},
	}
	r.view = newView(&r.opts)
	var leave context.CancelFunc
	r.leaving, leave = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		r.end()
		leave()
		r.comebacks.Wait()
		r.disconnect()
		r.timers.Wait()
	}()
	result := r.newResult()
	if err := r.prepare(ctx, result); err != nil {
		return nil, err
	}
	drivers, err := r.plan(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.measure(ctx, drivers, result); err != nil {
		return nil, err
	}
	r.view.end()
	return result, nil
}

// end: connections may end from now on.
func (r *run) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over.Store(true)
}

// since is the time since the run's start.
func (r *run) since() time.Duration { return time.Since(r.start) }

// after calls f later, at the latest before Run returns.
func (r *run) after(d time.Duration, f func()) {
	r.timers.Add(1)
	time.AfterFunc(d, func() {
		defer r.timers.Done()
		f()
	})
}

func (r *run) wantDelivered(room *room) bool {
	return room.direct && r.desc.Delivered.Event != "" && !r.opts.NoAcks
}

func (r *run) wantRead(room *room, n int64) bool {
	return room.direct && r.opts.ReadEvery > 0 && n%int64(r.opts.ReadEvery) == 0
}

// noteError counts errors by what they say.
func (r *run) noteError(what, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	const kept = 20
	if key := what + ": " + why; len(r.errors) < kept || r.errors[key] > 0 {
		r.errors[key]++
	}
}

func (r *run) stream(index int) *stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	if index < 0 || index >= len(r.streams) {
		return nil
	}
	return r.streams[index]
}

// newStream makes a member of a room one of its senders.
func (r *run) newStream(room *room, sender *actor) *stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &stream{run: r, index: len(r.streams), room: room, sender: sender, lastN: -1}
	r.streams = append(r.streams, s)
	room.streams = append(room.streams, s)
	sender.mu.Lock()
	sender.rooms = append(sender.rooms, room)
	sender.mu.Unlock()
	return s
}

func (r *run) allStreams() []*stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.streams[:len(r.streams):len(r.streams)]
}

// prepare connects everybody.
func (r *run) prepare(ctx context.Context, result *Result) error {
	before, err := usageOf(r.opts.Processes)
	if err != nil {
		return err
	}
	own := ownUsage()
	for i := range r.opts.Users {
		a, err := r.newActor(i)
		if err != nil {
			return err
		}
		r.actors = append(r.actors, a)
	}
	if err := r.connectAll(ctx); err != nil {
		return err
	}
	result.connected(r, before, own)
	return nil
}

func (r *run) newActor(i int) (*actor, error) {
	token, user, err := r.opts.Token(i)
	if err != nil {
		return nil, fmt.Errorf("the token of user %d: %w", i, err)
	}
	quotedUser, err := json.Marshal(user)
	if err != nil {
		return nil, err
	}
	quotedToken, err := json.Marshal(token)
	if err != nil {
		return nil, err
	}
	a := &actor{run: r, index: i, user: string(quotedUser), target: r.target(i)}
	a.polling = float64(i%100) < r.opts.Polling*100
	a.sync = r.desc.Sync.Event != ""
	auth := r.desc.Auth
	if a.sync {
		auth = r.desc.SyncAuth
	}
	if auth != "" {
		a.auth = request{Payload: auth}.fill("token", string(quotedToken), "user", a.user)
	}
	if ack := r.desc.Message.Ack; ack != "" {
		a.ack = request{Payload: ack}.fill("user", a.user)
	}
	return a, nil
}

// target puts pairs, two neighbours each, on one node or on two.
func (r *run) target(i int) string {
	node := i / 2
	if r.opts.Apart || r.opts.Scenario == "group" {
		node += i % 2
	}
	return r.opts.Targets[node%len(r.opts.Targets)]
}

// dialers is how many connections are opened at a time.
const dialers = 64

func (r *run) connectAll(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan *actor)
	var wg sync.WaitGroup
	for range min(dialers, len(r.actors)) {
		wg.Go(func() {
			for a := range next {
				if err := a.connect(ctx); err != nil {
					cancel(fmt.Errorf("%s: %w", a.name(), err))
				}
			}
		})
	}
	pause := r.opts.RampUp / time.Duration(len(r.actors))
	start := time.Now()
	for i, a := range r.actors {
		if !sleepUntil(ctx, start.Add(time.Duration(i)*pause)) {
			break
		}
		next <- a
		r.view.progress(fmt.Sprintf("connected %d of %d", i+1, len(r.actors)))
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}

// sleepUntil waits and says whether it was not interrupted.
func sleepUntil(ctx context.Context, t time.Time) bool {
	d := time.Until(t)
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *run) disconnect() {
	var wg sync.WaitGroup
	for _, a := range r.actors {
		if a.index%dialers == 0 {
			wg.Go(func() {
				for _, other := range r.actors[a.index:min(a.index+dialers, len(r.actors))] {
					other.cut()
				}
			})
		}
	}
	wg.Wait()
}

// measure drives the load, first for the warm-up, and reads the figures.
func (r *run) measure(ctx context.Context, drivers []driver, result *Result) error {
	runtime.GC() // what the preparation has left behind is not the load's
	loading, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	for _, d := range drivers {
		running.Go(func() { d.drive(loading) })
	}
	err := r.watch(ctx, result)
	stop()
	running.Wait()
	for _, s := range r.allStreams() {
		s.stop()
	}
	if err != nil {
		return err
	}
	r.settle(ctx)
	return result.finish(r)
}

// watch waits for the warm-up and the duration to pass and takes a point every second.
func (r *run) watch(ctx context.Context, result *Result) error {
	if !sleepUntil(ctx, time.Now().Add(r.opts.Warmup)) {
		return ctx.Err()
	}
	r.recorder.take()
	if err := result.begin(r); err != nil {
		return err
	}
	r.view.begin()
	start := time.Now()
	for last := start; ; {
		wake := last.Add(time.Second)
		if end := start.Add(r.opts.Duration); wake.After(end) {
			wake = end
		}
		if !sleepUntil(ctx, wake) {
			return ctx.Err()
		}
		now := time.Now()
		if err := result.point(r, now.Sub(start), now.Sub(last)); err != nil {
			return err
		}
		if last = now; now.Sub(start) >= r.opts.Duration {
			result.Seconds = now.Sub(start).Seconds()
			return nil
		}
	}
}

// settle waits for what is under way, and then judges what has not come.
func (r *run) settle(ctx context.Context) {
	const look = 20 * time.Millisecond
	deadline := time.Now().Add(r.opts.Settle)
	for time.Now().Before(deadline) && r.waiting() > 0 {
		if !sleepUntil(ctx, time.Now().Add(look)) {
			break
		}
	}
	// A message that comes twice may come the second time a little later.
	sleepUntil(ctx, time.Now().Add(min(r.opts.Settle, 200*time.Millisecond)))
	for _, s := range r.allStreams() {
		s.judge()
	}
}

func (r *run) waiting() (n int) {
	for _, s := range r.allStreams() {
		n += s.waiting()
	}
	return n
}

// ErrFaults is what a caller should exit with when a Result has faults.
var ErrFaults = errors.New("the server has lost, doubled or reordered messages, or left receipts out")
