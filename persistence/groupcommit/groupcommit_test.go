package groupcommit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"xabar/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers every request with itself, and keeps the batches' sizes.
type echo struct {
	mu    sync.Mutex
	sizes []int
	gate  chan struct{} // a batch starts when it can read from it; nil: at once
}

func (e *echo) exec(_ context.Context, _ int, batch []*Item[int, int]) {
	if e.gate != nil {
		<-e.gate
	}
	e.mu.Lock()
	e.sizes = append(e.sizes, len(batch))
	e.mu.Unlock()
	for _, it := range batch {
		it.Res = it.Req
	}
}

// answers collects what done is called with.
type answers struct {
	mu   sync.Mutex
	res  []int
	errs []error
}

func (a *answers) done(res int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.res, a.errs = append(a.res, res), append(a.errs, err)
}

// got is what done has been called with so far.
func (a *answers) got() ([]int, []error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.res), slices.Clone(a.errs)
}

func (a *answers) errors() []error {
	_, errs := a.got()
	return errs
}

func results(a *answers) []int {
	res, _ := a.got()
	return res
}

func TestWaitingRequestsShareABatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &echo{gate: make(chan struct{})}
		b := New(Options{MaxBatch: 4}, e.exec)
		var a answers
		b.Enqueue(t.Context(), 1, 0, a.done)
		synctest.Wait() // the first one runs alone: an idle shard doesn't wait for more
		for n := 1; n <= 6; n++ {
			b.Enqueue(t.Context(), 1, n, a.done)
		}
		if got := b.Waiting(); got != 6 {
			t.Errorf("Waiting() = %d, want 6", got)
		}
		close(e.gate)
		b.Close()
		if want := []int{1, 4, 2}; !slices.Equal(e.sizes, want) {
			t.Errorf("batches of %v, want %v", e.sizes, want)
		}
		if want := []int{0, 1, 2, 3, 4, 5, 6}; !slices.Equal(results(&a), want) {
			t.Errorf("answers %v, want %v", results(&a), want)
		}
	})
}

func TestShardsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gates := []chan struct{}{make(chan struct{}), make(chan struct{})}
		b := New(Options{Shards: 2}, func(_ context.Context, shard int, batch []*Item[int, int]) { <-gates[shard] })
		var slow, fast answers
		b.Enqueue(t.Context(), 0, 0, slow.done)
		b.Enqueue(t.Context(), 1, 0, fast.done)
		close(gates[1])
		synctest.Wait()
		if len(slow.errors()) != 0 || len(fast.errors()) != 1 {
			t.Errorf("answered: slow %d, fast %d; want 0 and 1", len(slow.errors()), len(fast.errors()))
		}
		close(gates[0])
		b.Close()
	})
}

func TestFullQueueIsOverloaded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &echo{gate: make(chan struct{})}
		b := New(Options{QueueBound: 2}, e.exec)
		var accepted, refused answers
		b.Enqueue(t.Context(), 0, 0, accepted.done)
		synctest.Wait()
		b.Enqueue(t.Context(), 0, 1, accepted.done)
		b.Enqueue(t.Context(), 0, 2, accepted.done)
		for n := range 500 {
			b.Enqueue(t.Context(), 0, 3+n, refused.done)
		}
		synctest.Wait()
		if len(refused.errors()) != 500 {
			t.Fatalf("%d refused while the shard is busy, want 500", len(refused.errors()))
		}
		for _, err := range refused.errors() {
			if chat.CodeOf(err) != chat.CodeOverloaded {
				t.Fatalf("refused with %v", err)
			}
		}
		close(e.gate)
		b.Close()
		if want := []int{0, 1, 2}; !slices.Equal(results(&accepted), want) {
			t.Errorf("accepted %v, want %v", results(&accepted), want)
		}
	})
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ran []int
		gate := make(chan struct{})
		b := New(Options{}, func(_ context.Context, _ int, batch []*Item[int, int]) {
			<-gate
			for _, it := range batch {
				ran = append(ran, it.Req)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var running, waiting, patient answers
		b.Enqueue(ctx, 0, 1, running.done)
		synctest.Wait()
		b.Enqueue(ctx, 0, 2, waiting.done)
		b.Enqueue(t.Context(), 0, 3, patient.done)
		time.Sleep(time.Second - time.Millisecond)
		synctest.Wait()
		if len(running.errors())+len(waiting.errors()) != 0 {
			t.Fatal("answered before the deadline")
		}
		time.Sleep(lookEvery + time.Millisecond)
		synctest.Wait()
		for _, a := range []*answers{&running, &waiting} {
			if len(a.errors()) != 1 || chat.CodeOf(a.errors()[0]) != chat.CodeTimeout || !errors.Is(a.errors()[0], context.DeadlineExceeded) {
				t.Fatalf("after the deadline: %v", a.errors())
			}
		}
		close(gate)
		b.Close()
		if want := []int{1, 3}; !slices.Equal(ran, want) {
			t.Errorf("ran %v, want %v: what timed out in the queue is not run", ran, want)
		}
		if len(running.errors()) != 1 {
			t.Errorf("done called %d times", len(running.errors()))
		}
		if len(patient.errors()) != 1 || patient.errors()[0] != nil {
			t.Errorf("the patient one got %v", patient.errors())
		}
	})
}

// silent has a deadline and no timer.
type silent struct {
	context.Context
	deadline time.Time
}

func (s silent) Deadline() (time.Time, bool) { return s.deadline, true }

func TestDeadlineWithoutTimer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &echo{gate: make(chan struct{})}
		b := New(Options{}, e.exec)
		var running, waiting answers
		ctx := silent{t.Context(), time.Now().Add(time.Second)}
		b.Enqueue(ctx, 0, 1, running.done)
		synctest.Wait()
		b.Enqueue(ctx, 0, 2, waiting.done)
		time.Sleep(time.Second + lookEvery)
		synctest.Wait()
		for _, a := range []*answers{&running, &waiting} {
			errs := a.errors()
			if len(errs) != 1 || chat.CodeOf(errs[0]) != chat.CodeTimeout || !errors.Is(errs[0], context.DeadlineExceeded) {
				t.Errorf("after the deadline: %v", errs)
			}
		}
		close(e.gate)
		b.Close()
	})
}

func TestEndedContextIsNotRun(t *testing.T) {
	t.Parallel()
	e := &echo{}
	b := New(Options{}, e.exec)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var a answers
	b.Enqueue(ctx, 0, 1, a.done)
	b.Close()
	if len(e.sizes) != 0 || len(a.errors()) != 1 || chat.CodeOf(a.errors()[0]) != chat.CodeTimeout {
		t.Errorf("batches %v, answers %v", e.sizes, a.errors())
	}
}

func TestBatchTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{Timeout: 3 * time.Second}, func(ctx context.Context, _ int, batch []*Item[int, int]) {
			<-ctx.Done()
			for _, it := range batch {
				it.Err = chat.Wrap(chat.CodeUnavailable, ctx.Err())
			}
		})
		start := time.Now()
		var a answers
		b.Enqueue(t.Context(), 0, 1, a.done)
		b.Close()
		if took := time.Since(start); took != 3*time.Second || chat.CodeOf(a.errors()[0]) != chat.CodeUnavailable {
			t.Errorf("ended after %v with %v", took, a.errors())
		}
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	e := &echo{}
	b := New(Options{Shards: 3}, e.exec)
	b.Close()
	b.Close()
	var a answers
	b.Enqueue(t.Context(), 7, 1, a.done)
	if len(a.errors()) != 1 || chat.CodeOf(a.errors()[0]) != chat.CodeUnavailable {
		t.Errorf("after Close: %v", a.errors())
	}
}

// TestModel sends from several goroutines under many settings: everything is
// answered once, and each key's requests are run and answered in the order of
// its calls.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		opts := Options{
			Shards:     rapid.IntRange(1, 4).Draw(t, "shards"),
			QueueBound: rapid.IntRange(1, 50).Draw(t, "bound"),
			MaxBatch:   rapid.IntRange(1, 20).Draw(t, "batch"),
		}
		keys := rapid.IntRange(1, 6).Draw(t, "keys")
		each := rapid.IntRange(1, 60).Draw(t, "each")

		type request struct{ key, n int }
		ran := make([][]int, keys) // a key's requests are run by one shard alone
		b := New(opts, func(_ context.Context, _ int, batch []*Item[request, int]) {
			if len(batch) == 0 || len(batch) > opts.MaxBatch {
				panic("a batch of an impossible size")
			}
			for _, it := range batch {
				ran[it.Req.key] = append(ran[it.Req.key], it.Req.n)
				it.Res = it.Req.n
			}
		})
		answered := make([][]int, keys)
		overloaded := make([]int, keys)
		var mu sync.Mutex // guards answered and overloaded
		var senders sync.WaitGroup
		for key := range keys {
			senders.Go(func() {
				for n := range each {
					b.Enqueue(context.Background(), uint64(key), request{key, n}, func(res int, err error) {
						mu.Lock()
						defer mu.Unlock()
						if err != nil {
							overloaded[key]++
						} else {
							answered[key] = append(answered[key], res)
						}
					})
				}
			})
		}
		senders.Wait()
		b.Close()
		for key := range keys {
			if got := len(answered[key]) + overloaded[key]; got != each {
				t.Fatalf("key %d: %d of %d answered", key, got, each)
			}
			if !slices.IsSorted(ran[key]) || !slices.Equal(ran[key], answered[key]) {
				t.Fatalf("key %d: ran %v, answered %v", key, ran[key], answered[key])
			}
		}
	})
}

func BenchmarkEnqueue(b *testing.B) {
	batcher := New(Options{Shards: 2, QueueBound: 1 << 20}, func(_ context.Context, _ int, batch []*Item[int, int]) {
		for _, it := range batch {
			it.Res = it.Req
		}
	})
	defer batcher.Close()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		answered := make(chan struct{}, 1)
		done := func(int, error) { answered <- struct{}{} }
		for n := 0; pb.Next(); n++ {
			batcher.Enqueue(context.Background(), uint64(n), n, done)
			<-answered
		}
	})
}

// TestGather: requests for later that come one after the other share a batch, and Close does not
// wait for more.
func TestGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int // of the shard's goroutine, until Close
		b := New(Options{Gather: 20 * time.Millisecond}, func(_ context.Context, _ int, batch []*Item[int, int]) {
			sizes = append(sizes, len(batch))
		})
		answered := 0
		enqueue := func() { b.EnqueueLater(t.Context(), 0, 1, func(int, error) { answered++ }) }
		for range 30 { // one every 2 ms
			enqueue()
			time.Sleep(2 * time.Millisecond)
		}
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		if answered != 30 || len(sizes) > 4 {
			t.Errorf("%d answered in batches of %v", answered, sizes)
		}
		before := time.Now()
		enqueue()
		b.Close()
		if answered != 31 || time.Since(before) != 0 {
			t.Errorf("%d answered; Close took %v", answered, time.Since(before))
		}
	})
}

// TestHurriedRequestsTakeOthersAlong: who is waited for goes at once, with all that has gathered.
func TestHurriedRequestsTakeOthersAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &echo{}
		b := New(Options{Gather: time.Hour, MaxBatch: 4}, e.exec)
		var a answers
		for n := range 3 {
			b.EnqueueLater(t.Context(), 0, n, a.done)
			time.Sleep(time.Second)
		}
		if got := results(&a); len(got) != 0 {
			t.Errorf("%v did not wait", got)
		}
		before := time.Now()
		b.Enqueue(t.Context(), 0, 3, a.done)
		synctest.Wait()
		if got := results(&a); !slices.Equal(got, []int{0, 1, 2, 3}) || time.Since(before) != 0 {
			t.Errorf("%v after %v", got, time.Since(before))
		}
		for n := range 4 { // a batch that is full goes too
			b.EnqueueLater(t.Context(), 0, n, a.done)
		}
		synctest.Wait()
		if got := results(&a); len(got) != 8 {
			t.Errorf("%v: a full batch waits", got)
		}
		// One whose caller has given up hurries nobody any more.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		e.gate = make(chan struct{})
		b.Enqueue(t.Context(), 0, 8, a.done)
		synctest.Wait()
		b.Enqueue(ctx, 0, 9, a.done)
		b.EnqueueLater(t.Context(), 0, 10, a.done)
		time.Sleep(2 * time.Minute)
		e.gate <- struct{}{}
		time.Sleep(time.Minute)
		if got := results(&a); len(got) != 10 || slices.Contains(got, 10) {
			t.Errorf("%v: what was left waited for nobody", got)
		}
		close(e.gate)
		b.Close()
		if got := results(&a); len(got) != 11 {
			t.Errorf("%v are answered in the end", got)
		}
	})
}
