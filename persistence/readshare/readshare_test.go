package readshare_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"xabar/chat"
	"xabar/persistence/readshare"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// database doubles numbers; each statement waits for a permission, if there is a gate.
type database struct {
	mu      sync.Mutex // guards batches
	batches [][]int
	gate    chan error
}

func (d *database) exec(ctx context.Context, batch []int, results []int) error {
	d.mu.Lock()
	d.batches = append(d.batches, append([]int(nil), batch...))
	d.mu.Unlock()
	if d.gate != nil {
		select {
		case err := <-d.gate:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for i, n := range batch {
		results[i] = 2 * n
	}
	return nil
}

func (d *database) sizes() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	var sizes []int
	for _, b := range d.batches {
		sizes = append(sizes, len(b))
	}
	return sizes
}

// answer is what one caller got.
type answer struct {
	n, got int
	err    error
}

// ask calls Do in a goroutine of its own.
func ask(ctx context.Context, g *readshare.Group[int, int], n int, into chan<- answer) {
	go func() {
		got, err := g.Do(ctx, n)
		into <- answer{n, got, err}
	}()
}

func wantSizes(t *testing.T, d *database, want ...int) {
	t.Helper()
	got := d.sizes()
	if len(got) != len(want) {
		t.Fatalf("statements for %v reads, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("statements for %v reads, want %v", got, want)
		}
	}
}

func wantCode(t *testing.T, err error, code chat.Code) {
	t.Helper()
	if chat.CodeOf(err) != code {
		t.Errorf("%v, want %s", err, code)
	}
}

func TestWhoWaitsSharesTheNextStatement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &database{gate: make(chan error)}
		g := readshare.New(readshare.Options{MaxBatch: 3}, d.exec)
		defer g.Close()
		answers := make(chan answer, 8)
		ask(t.Context(), g, 1, answers)
		synctest.Wait() // it runs alone: nobody waited
		for n := 2; n <= 6; n++ {
			ask(t.Context(), g, n, answers)
		}
		synctest.Wait()
		for range 3 {
			d.gate <- nil
		}
		for range 6 {
			if a := <-answers; a.err != nil || a.got != 2*a.n {
				t.Errorf("%d: %d, %v", a.n, a.got, a.err)
			}
		}
		wantSizes(t, d, 1, 3, 2)
	})
}

func TestPaceGathersOnlyUnderLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &database{}
		g := readshare.New(readshare.Options{MaxBatch: 4, Pace: time.Second}, d.exec)
		defer g.Close()
		took := func() time.Duration {
			start := time.Now()
			if _, err := g.Do(t.Context(), 1); err != nil {
				t.Error(err)
			}
			return time.Since(start)
		}
		if d := took(); d != 0 {
			t.Errorf("the first read waits %v", d)
		}
		time.Sleep(time.Second)
		if d := took(); d != 0 {
			t.Errorf("a read after a pause waits %v", d)
		}
		time.Sleep(400 * time.Millisecond)
		answers := make(chan answer, 8)
		ask(t.Context(), g, 1, answers)
		ask(t.Context(), g, 2, answers)
		if d := took(); d != 600*time.Millisecond {
			t.Errorf("a read soon after another waits %v", d)
		}
		<-answers
		<-answers
		// A statement that is full goes at once, and what is left keeps the pace.
		start := time.Now()
		for n := range 5 {
			ask(t.Context(), g, n, answers)
		}
		for range 4 {
			<-answers
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("a full statement waits %v", d)
		}
		<-answers
		if d := time.Since(start); d != time.Second {
			t.Errorf("the rest waits %v", d)
		}
		wantSizes(t, d, 1, 1, 3, 4, 1)
	})
}

func TestAnErrorReachesAllWhoShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &database{gate: make(chan error)}
		g := readshare.New(readshare.Options{}, d.exec)
		defer g.Close()
		answers := make(chan answer, 4)
		ask(t.Context(), g, 1, answers)
		synctest.Wait()
		ask(t.Context(), g, 2, answers)
		ask(t.Context(), g, 3, answers)
		synctest.Wait()
		broken := chat.Wrap(chat.CodeUnavailable, errors.New("cut"))
		d.gate <- nil
		d.gate <- broken
		for range 3 {
			a := <-answers
			if a.n == 1 && (a.err != nil || a.got != 2) || a.n > 1 && (!errors.Is(a.err, broken) || a.got != 0) {
				t.Errorf("%d: %d, %v", a.n, a.got, a.err)
			}
		}
		ask(t.Context(), g, 4, answers)
		d.gate <- nil
		if a := <-answers; a.err != nil || a.got != 8 {
			t.Errorf("after an error: %d, %v", a.got, a.err)
		}
	})
}

func TestWhoseContextEndsIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &database{gate: make(chan error)}
		g := readshare.New(readshare.Options{}, d.exec)
		defer g.Close()
		ctx, cancel := context.WithCancel(t.Context())
		running, waiting := make(chan answer, 1), make(chan answer, 1)
		ask(ctx, g, 1, running)
		synctest.Wait()
		ask(ctx, g, 2, waiting)
		stays := make(chan answer, 1)
		ask(t.Context(), g, 3, stays)
		synctest.Wait()
		cancel()
		wantCode(t, (<-running).err, chat.CodeTimeout)
		wantCode(t, (<-waiting).err, chat.CodeTimeout)
		d.gate <- nil
		d.gate <- nil
		if a := <-stays; a.err != nil || a.got != 6 {
			t.Errorf("who waits on: %d, %v", a.got, a.err)
		}
		wantSizes(t, d, 1, 1) // the one that had given up is not read for
	})
}

func TestAStatementHasItsOwnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &database{gate: make(chan error)} // nobody opens it
		g := readshare.New(readshare.Options{Timeout: time.Minute}, d.exec)
		defer g.Close()
		start := time.Now()
		_, err := g.Do(t.Context(), 1)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestMoreThanCanWaitIsOverload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &database{gate: make(chan error)}
		g := readshare.New(readshare.Options{Bound: 2}, d.exec)
		defer g.Close()
		answers := make(chan answer, 4)
		for n := range 3 {
			ask(t.Context(), g, n, answers)
			synctest.Wait()
		}
		if waiting, bound := g.Fill(); waiting != 2 || bound != 2 {
			t.Errorf("%d of %d wait", waiting, bound)
		}
		_, err := g.Do(t.Context(), 4)
		wantCode(t, err, chat.CodeOverloaded)
		d.gate <- nil
		d.gate <- nil
		for range 3 {
			if a := <-answers; a.err != nil {
				t.Error(a.err)
			}
		}
	})
}

func TestCloseAnswersWhoWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &database{gate: make(chan error)}
		g := readshare.New(readshare.Options{Pace: time.Hour}, d.exec)
		answers := make(chan answer, 4)
		ask(t.Context(), g, 1, answers)
		d.gate <- nil
		<-answers
		ask(t.Context(), g, 2, answers) // waits for the pace
		synctest.Wait()
		start, closed := time.Now(), make(chan struct{})
		go func() {
			g.Close()
			close(closed)
		}()
		d.gate <- nil
		if a := <-answers; a.err != nil || a.got != 4 {
			t.Errorf("who waited: %d, %v", a.got, a.err)
		}
		<-closed
		if time.Since(start) != 0 {
			t.Errorf("Close keeps the pace")
		}
		_, err := g.Do(t.Context(), 3)
		wantCode(t, err, chat.CodeUnavailable)
		g.Close()
	})
}
