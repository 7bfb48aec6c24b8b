package engineio

import (
	"sync"
	"time"
)

// wheelSlots is a power of two; what is due later than one turn stays in its slot for more.
const wheelSlots = 64

// A wheel calls Socket.onTimer of each socket in the first tick at or after its due time: one
// goroutine and one coarse ticker for all sockets, where a timer each would cost memory and heap
// work at every heartbeat.
type wheel struct {
	tick time.Duration
	base time.Time

	mu    sync.Mutex // guards all below, and the wheel fields of every socket
	slots [wheelSlots]*Socket
	last  int64 // number of the last tick that was handled
}

// wheelLink is a socket's place in the wheel.
type wheelLink struct {
	next, prev *Socket
	slot       int8 // plus one; 0: not in the wheel
	due        int64
}

func newWheel(opts *Options) *wheel {
	tick := min(opts.PingInterval, opts.PingTimeout) / 20
	return &wheel{tick: max(5*time.Millisecond, min(tick, time.Second)), base: time.Now()}
}

// now is the wheel's time: nanoseconds of the monotonic clock since it was made.
func (w *wheel) now() int64 { return int64(time.Since(w.base)) }

// schedule puts s in the wheel, or moves it.
func (w *wheel) schedule(s *Socket, due int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unlink(s)
	n := max(due/int64(w.tick)+1, w.last+1)
	slot := n % wheelSlots
	s.wheel = wheelLink{next: w.slots[slot], slot: int8(slot) + 1, due: due}
	if s.wheel.next != nil {
		s.wheel.next.wheel.prev = s
	}
	w.slots[slot] = s
}

// cancel takes s out of the wheel. A call of onTimer that has begun goes on.
func (w *wheel) cancel(s *Socket) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unlink(s)
}

func (w *wheel) unlink(s *Socket) {
	l := &s.wheel
	if l.slot == 0 {
		return
	}
	if l.prev != nil {
		l.prev.wheel.next = l.next
	} else {
		w.slots[l.slot-1] = l.next
	}
	if l.next != nil {
		l.next.wheel.prev = l.prev
	}
	*l = wheelLink{}
}

// advance takes out the sockets that are due at now and returns them, appended to fired.
func (w *wheel) advance(now int64, fired []*Socket) []*Socket {
	w.mu.Lock()
	defer w.mu.Unlock()
	current := now / int64(w.tick)
	// After a long pause one turn visits every slot.
	for n := max(w.last+1, current-wheelSlots+1); n <= current; n++ {
		for s := w.slots[n%wheelSlots]; s != nil; {
			next := s.wheel.next
			if s.wheel.due <= now {
				w.unlink(s)
				fired = append(fired, s)
			}
			s = next
		}
	}
	w.last = max(w.last, current)
	return fired
}

// run turns the wheel until stop is closed.
func (w *wheel) run(stop <-chan struct{}) {
	ticker := time.NewTicker(w.tick)
	defer ticker.Stop()
	var fired []*Socket
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		now := w.now()
		fired = w.advance(now, fired[:0])
		for i, s := range fired {
			s.onTimer(now)
			fired[i] = nil
		}
	}
}
