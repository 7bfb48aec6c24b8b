package loadtest

import (
	"fmt"
	"strconv"
	"sync"
	"time"
)

// room is a conversation.
type room struct {
	id      string // JSON
	members []*actor
	streams []*stream
	direct  bool
}

// stream is what one sender says in one conversation.
type stream struct {
	run    *run
	index  int
	room   *room
	sender *actor

	mu        sync.Mutex // guards what follows
	next      int64
	out       []outgoing // those from base on
	base      int64
	lastN     int64 // the highest message that was answered, -1 if none, and its seq
	lastSeq   int64
	delivered int64 // highest seq that the sender heard of
	read      int64
	refill    bool // in a closed loop a message that is done is followed by the next
	open      int  // messages that are not done
	held      bool // the sender has no connection: what is due waits in out
	life      int  // of the sender, since when
}

// outgoing is a message on its way.
type outgoing struct {
	due       time.Duration
	seq       int64 // 0: not answered
	left      int   // recipients that have not received it
	delivered bool
	read      bool
	done      bool // what a closed loop waits for has come
	refused   bool
}

// send emits the next message, which was due at a moment since the run's start.
func (s *stream) send(due time.Duration) {
	r := s.run
	s.mu.Lock()
	n := s.next
	s.next++
	s.open++
	s.out = append(s.out, outgoing{
		due: due, left: len(s.room.members) - 1,
		delivered: !r.wantDelivered(s.room), read: !r.wantRead(s.room, n),
	})
	// Under mu, so that messages leave in the order of their numbers.
	err := s.emit(n, due)
	s.mu.Unlock()
	if err != nil {
		s.refuse(n, "send", err.Error())
	}
}

// emit sends a message, for the first time or again. Call it with mu.
func (s *stream) emit(n int64, due time.Duration) error {
	if s.held {
		return nil
	}
	r := s.run
	payload := r.desc.Send.fill("conversation", s.room.id,
		"id", `"`+r.id+"-"+strconv.Itoa(s.index)+"-"+strconv.FormatInt(n, 10)+`"`,
		"text", marker{s.index, n, due}.text(r.id, r.opts.Size))
	err := s.sender.emit(r.desc.Send.Event, payload, func(answer []byte) { s.answered(n, answer) })
	if r.opts.Restarts {
		return nil // what got no answer is sent again when the sender is back
	}
	return err
}

// hold keeps what is due until resume.
func (s *stream) hold(life int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.life = true, life
}

// resume sends what got no answer, under the same ids and in the same order, unless the connection
// has ended once more.
func (s *stream) resume(life int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life != life {
		return
	}
	s.held = false
	for i := range s.out {
		if m := &s.out[i]; m.seq == 0 && !m.refused {
			_ = s.emit(s.base+int64(i), m.due) // a connection that ends again says so in Closed
		}
	}
}

// find returns a message that is not settled, nil else. Call it with mu.
func (s *stream) find(n int64) *outgoing {
	if i := n - s.base; i >= 0 && i < int64(len(s.out)) {
		return &s.out[i]
	}
	return nil
}

func (s *stream) answered(n int64, answer []byte) {
	r := s.run
	seq, ok := number(answer, r.desc.Send.Field)
	if !ok || !contains(answer, r.desc.Okay) {
		s.refuse(n, "answer", fmt.Sprintf("%.200s", answer))
		return
	}
	s.mu.Lock()
	m := s.find(n)
	if m == nil {
		s.mu.Unlock()
		return
	}
	m.seq = seq
	if s.lastN >= 0 && (n > s.lastN) != (seq > s.lastSeq) {
		r.faults.add(faultSendOrder, "message %d of sender %d got seq %d, and message %d got %d", n, s.index, seq, s.lastN, s.lastSeq)
	}
	if n > s.lastN {
		s.lastN, s.lastSeq = n, seq
	}
	due := m.due
	s.mu.Unlock()
	r.recorder.record(Answered, r.since()-due)
	s.settle()
}

// refuse notes that a send has failed: nobody needs to receive it.
func (s *stream) refuse(n int64, what, why string) {
	s.run.recorder.fail()
	s.run.noteError(what, why)
	s.mu.Lock()
	if m := s.find(n); m != nil {
		m.refused = true
	}
	s.mu.Unlock()
	const pause = 50 * time.Millisecond // a closed loop must not spin on a server that refuses
	s.run.after(pause, s.settle)
}

func (s *stream) receivedBy(n int64) {
	s.mu.Lock()
	last := false
	if m := s.find(n); m != nil {
		m.left--
		last = m.left == 0
	}
	s.mu.Unlock()
	if last {
		s.settle()
	}
}

func (s *stream) deliveredUpTo(seq int64) {
	s.mu.Lock()
	s.delivered = max(s.delivered, seq)
	s.mu.Unlock()
	s.settle()
}

func (s *stream) readUpTo(seq int64) {
	s.mu.Lock()
	s.read = max(s.read, seq)
	s.delivered = max(s.delivered, seq) // reading delivers
	s.mu.Unlock()
	s.settle()
}

// settle finds out what is done, forgets it, and sends what a closed loop sends next.
func (s *stream) settle() {
	now := s.run.since()
	s.mu.Lock()
	again := 0
	for i := range s.out {
		if s.advance(&s.out[i], now) {
			s.open--
			again++
		}
	}
	gone := 0
	for gone < len(s.out) && s.out[gone].settled() {
		gone++
	}
	if gone > 0 {
		s.base += int64(gone)
		s.out = append(s.out[:0], s.out[gone:]...)
	}
	refill := s.refill
	s.mu.Unlock()
	for range again {
		if refill {
			s.send(s.run.since())
		}
	}
}

// advance notes what has come for a message and says whether it has just become done.
func (s *stream) advance(m *outgoing, now time.Duration) bool {
	if m.seq > 0 && !m.delivered && m.seq <= s.delivered {
		m.delivered = true
		s.run.recorder.record(Delivered, now-m.due)
	}
	if m.seq > 0 && !m.read && m.seq <= s.read {
		m.read = true
		s.run.recorder.record(Read, now-m.due)
	}
	if m.done || !m.refused && (m.seq == 0 || m.left > 0 || !m.delivered) {
		return false
	}
	m.done = true
	return true
}

func (m *outgoing) settled() bool {
	return m.refused && m.done || m.seq > 0 && m.left <= 0 && m.delivered && m.read
}

// stop ends a closed loop.
func (s *stream) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refill = false
}

// waiting is how many messages are not settled.
func (s *stream) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.out)
}

// judge reports what has not come when the run is over.
func (s *stream) judge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.out {
		m, n, f := &s.out[i], s.base+int64(i), &s.run.faults
		who := fmt.Sprintf("message %d of sender %d in conversation %s", n, s.index, s.room.id)
		switch {
		case m.refused:
		case m.seq == 0:
			f.add(faultUnanswered, "%s", who)
		case m.left > 0:
			f.add(faultLost, "%s (seq %d): %d of %d recipients never got it", who, m.seq, m.left, len(s.room.members)-1)
		case !m.delivered:
			f.add(faultUndelivered, "%s (seq %d)", who, m.seq)
		case !m.read:
			f.add(faultUnread, "%s (seq %d)", who, m.seq)
		}
	}
}
