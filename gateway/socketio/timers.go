package socketio

import (
	"sync"
	"time"
)

// expirer is what a deadline calls, on a goroutine of its own.
type expirer interface{ expire() }

// deadline is one entry of timers, embedded in what it is the deadline of.
type deadline struct {
	at    time.Time
	index int // position in the heap plus 1; 0: not in it; guarded by timers.mu
	what  expirer
}

// timers is the deadlines of a server, in one heap with one time.Timer: acknowledgements
// come by the hundred thousand, and nearly all of them are cancelled.
type timers struct {
	wg sync.WaitGroup // the expirers that run

	mu     sync.Mutex // guards the rest, and the indexes of the entries
	heap   []*deadline
	timer  *time.Timer
	armed  time.Time // when timer fires; zero if it is not running
	closed bool
}

// start schedules d.what.expire after wait. An entry may be started again once stopped or expired.
func (t *timers) start(d *deadline, wait time.Duration, what expirer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	d.at, d.what = time.Now().Add(wait), what
	t.heap = append(t.heap, d)
	d.index = len(t.heap)
	t.up(len(t.heap) - 1)
	t.arm()
}

// stop cancels d and says whether it was waiting.
func (t *timers) stop(d *deadline) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if d.index == 0 {
		return false
	}
	t.remove(d.index - 1)
	return true
}

// arm makes the timer fire no later than the first deadline. A timer that fires too early,
// because its deadline was stopped, costs less than stopping it each time.
func (t *timers) arm() {
	if len(t.heap) == 0 {
		return
	}
	first := t.heap[0].at
	if !t.armed.IsZero() && !first.Before(t.armed) {
		return
	}
	t.armed = first
	wait := max(time.Until(first), 0)
	if t.timer == nil {
		t.timer = time.AfterFunc(wait, t.fire)
		return
	}
	t.timer.Reset(wait)
}

// fire starts all that is due. Each runs on its own goroutine: one that blocks holds up
// nobody else. There are no more of them than pending acknowledgements and connections.
func (t *timers) fire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = time.Time{}
	now := time.Now()
	for !t.closed && len(t.heap) > 0 && !t.heap[0].at.After(now) {
		d := t.heap[0]
		t.remove(0)
		t.wg.Go(d.what.expire)
	}
	if !t.closed {
		t.arm()
	}
}

// close forgets all deadlines. wg tells when those that have expired are through.
func (t *timers) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
	}
	for _, d := range t.heap {
		d.index = 0
	}
	t.heap = nil
}

// len is the number of deadlines.
func (t *timers) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.heap)
}

func (t *timers) remove(i int) {
	d, last := t.heap[i], len(t.heap)-1
	t.swap(i, last)
	t.heap[last] = nil
	t.heap = t.heap[:last]
	d.index = 0
	if i < last && !t.down(i) {
		t.up(i)
	}
}

func (t *timers) swap(i, j int) {
	t.heap[i], t.heap[j] = t.heap[j], t.heap[i]
	t.heap[i].index, t.heap[j].index = i+1, j+1
}

func (t *timers) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !t.heap[i].at.Before(t.heap[parent].at) {
			return
		}
		t.swap(i, parent)
		i = parent
	}
}

// down says whether it moved the entry.
func (t *timers) down(i int) bool {
	start := i
	for {
		child := 2*i + 1
		if child >= len(t.heap) {
			break
		}
		if r := child + 1; r < len(t.heap) && t.heap[r].at.Before(t.heap[child].at) {
			child = r
		}
		if !t.heap[child].at.Before(t.heap[i].at) {
			break
		}
		t.swap(i, child)
		i = child
	}
	return i > start
}
