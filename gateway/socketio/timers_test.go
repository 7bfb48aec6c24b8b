package socketio

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

type expiry struct {
	deadline
	fired chan time.Time
}

func (e *expiry) expire() { e.fired <- time.Now() }

func newExpiry() *expiry { return &expiry{fired: make(chan time.Time, 1)} }

func TestTimersFireAtTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tm timers
		defer tm.close()
		start := time.Now()
		rng := rand.New(rand.NewPCG(1, 2))
		waits := make(map[*expiry]time.Duration)
		for range 1000 {
			e := newExpiry()
			waits[e] = time.Duration(rng.IntN(5000)) * time.Millisecond
			tm.start(&e.deadline, waits[e], e)
		}
		stopped := 0
		for e := range waits {
			if stopped++; stopped > 300 {
				break
			}
			if !tm.stop(&e.deadline) || tm.stop(&e.deadline) {
				t.Fatal("stop must succeed exactly once")
			}
			delete(waits, e)
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		for e, wait := range waits {
			select {
			case at := <-e.fired:
				if at.Sub(start) != wait {
					t.Errorf("fired after %v, want %v", at.Sub(start), wait)
				}
			default:
				t.Errorf("the deadline at %v did not fire", wait)
			}
		}
		if tm.len() != 0 {
			t.Errorf("%d deadlines are left", tm.len())
		}
	})
}

func TestTimersClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tm timers
		e := newExpiry()
		tm.start(&e.deadline, time.Second, e)
		tm.close()
		late := newExpiry()
		tm.start(&late.deadline, time.Second, late)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(e.fired)+len(late.fired) != 0 {
			t.Error("a deadline fired after close")
		}
		if tm.stop(&e.deadline) || tm.stop(&late.deadline) {
			t.Error("stop succeeded after close")
		}
	})
}

// blocker shows that an expirer that blocks holds up no other.
type blocker struct {
	deadline
	release chan struct{}
}

func (b *blocker) expire() { <-b.release }

func TestTimersDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tm timers
		b := &blocker{release: make(chan struct{})}
		e := newExpiry()
		tm.start(&b.deadline, time.Second, b)
		tm.start(&e.deadline, 2*time.Second, e)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(e.fired) != 1 {
			t.Error("the second deadline did not fire")
		}
		close(b.release)
		tm.close()
		tm.wg.Wait()
	})
}
