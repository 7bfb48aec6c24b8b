package engineio

import (
	"context"
	"sync"
)

// A tracker counts what Shutdown waits for: requests, sessions, goroutines. Unlike a
// sync.WaitGroup it may be asked for more while somebody waits, and says no once it is over.
type tracker struct {
	mu       sync.Mutex // guards all below
	n        int
	waiting  bool
	finished chan struct{}
	over     bool
}

func newTracker() *tracker { return &tracker{finished: make(chan struct{})} }

// add counts one more. It returns false when the wait is over; then nothing may be started.
func (t *tracker) add() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return false
	}
	t.n++
	return true
}

func (t *tracker) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	t.finishIfIdle()
}

func (t *tracker) finishIfIdle() {
	if t.waiting && t.n == 0 && !t.over {
		t.over = true
		close(t.finished)
	}
}

// wait returns when the count is zero, or with ctx's error.
func (t *tracker) wait(ctx context.Context) error {
	t.mu.Lock()
	t.waiting = true
	t.finishIfIdle()
	t.mu.Unlock()
	select {
	case <-t.finished:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
