package engineio

import "xabar/internal/sockets"

// keepQueue is the capacity of an empty queue that is kept for the next messages.
const keepQueue = 32

// Send queues msgs as one unit: contiguous, in order, all or none. If nothing waits before
// them and the connection can take them, they are written before Send returns; it never waits.
// The order of Send calls is the order on the wire.
//
// A volatile unit is dropped (false and no error) when the transport is not writable now or
// its queue is above the volatile budget. A unit beyond the send budget closes the socket with
// ReasonSlowConsumer and returns ErrSlowConsumer. A closed or closing socket returns ErrClosed.
func (s *Socket) Send(volatile bool, msgs ...*Message) (sent bool, err error) {
	return s.send(volatile, true, msgs)
}

// SendLater is Send without the attempt to write: a pool of flushers does it a moment
// later, together with whatever was queued meanwhile. It is made for fan-out to many sockets.
func (s *Socket) SendLater(volatile bool, msgs ...*Message) (sent bool, err error) {
	return s.send(volatile, false, msgs)
}

func (s *Socket) send(volatile, direct bool, msgs []*Message) (bool, error) {
	size := 0
	for _, m := range msgs {
		size += m.Size()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state != stateOpen:
		return false, ErrClosed
	case volatile && !s.writable():
		s.server.metrics.VolatileDropped()
		return false, nil
	case s.bytes > 0 && s.bytes+size > s.server.opts.SendBudget:
		s.closeLocked(ReasonSlowConsumer, ErrSlowConsumer, endCut)
		return false, ErrSlowConsumer
	}
	s.push(size, msgs...)
	s.kick(direct)
	return true, nil
}

// sendControl queues a packet of the protocol's own. It counts against the budget, so that a
// client that asks and never reads does not fill the memory.
func (s *Socket) sendControl(m *Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != stateOpen {
		return
	}
	if s.bytes > 0 && s.bytes+m.Size() > s.server.opts.SendBudget {
		s.closeLocked(ReasonSlowConsumer, ErrSlowConsumer, endCut)
		return
	}
	s.push(m.Size(), m)
	s.kick(true)
}

// writable reports whether the transport takes volatile messages now: a polling request
// waits and nothing stands before them, or a WebSocket keeps up.
func (s *Socket) writable() bool {
	if s.ws == nil {
		return s.polling.get != nil && s.head == len(s.queue)
	}
	return !s.stalled && s.bytes <= s.server.opts.VolatileBudget
}

func (s *Socket) push(size int, msgs ...*Message) {
	if s.head > 0 && len(s.queue)+len(msgs) > cap(s.queue) {
		// A new array, because a writer may be looking at the old one.
		live := s.queue[s.head:]
		s.queue = append(make([]*Message, 0, 2*(len(live)+len(msgs))), live...)
		s.head = 0
	}
	s.queue = append(s.queue, msgs...)
	s.bytes += size
}

// kick sees to it that what is queued gets sent. s.mu is held, and let go during a direct write.
func (s *Socket) kick(direct bool) {
	switch {
	case s.ws == nil:
		s.polling.wake()
	case s.writing || s.dirty:
	case direct && s.ws.raw != nil && !s.more.Load():
		s.writing = true
		s.drain(drainOnce)
	default:
		s.markDirty()
	}
}

func (s *Socket) markDirty() {
	s.dirty = true
	s.flusher.add(s)
}

// flush is called by the flusher. One write is a socket's turn; if more is left, it goes to the end
// of the list, so that a busy socket does not keep the others waiting.
func (s *Socket) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty = false
	s.startDrain(drainOnce)
}

// flushRead is called by the reader when it has handled all that was read, so that the answers
// to many messages go out in one write.
func (s *Socket) flushRead() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.startDrain(drainOnce)
}

func (s *Socket) startDrain(how drainMode) {
	if s.ws == nil || s.writing || s.head == len(s.queue) {
		return
	}
	s.writing = true
	if s.ws.raw == nil {
		s.server.spawn(s.drainSlow)
		return
	}
	s.drain(how)
}

type drainMode uint8

const (
	drainAll  drainMode = iota // until nothing is left
	drainOnce                  // one write, the rest by the flusher
	drainWait                  // until nothing is left, waiting for the kernel's buffer
)

// drain writes what is queued. s.mu is held and s.writing is up; it is let go during writes.
func (s *Socket) drain(how drainMode) {
	c := s.ws
	for s.state != stateClosed && s.head < len(s.queue) {
		batch, off := s.queue[s.head:], s.off
		s.mu.Unlock()
		n, err := c.writeMessages(batch, off, how == drainWait, s.server.opts.CompressionThreshold)
		s.mu.Lock()
		s.consume(c, n)
		if err == sockets.ErrAgain {
			s.stalled = true
			s.server.spawn(s.drainSlow)
			return
		}
		if err != nil {
			s.writing = false
			s.closeLocked(ReasonTransportError, err, endCut)
			return
		}
		if how == drainOnce && s.head < len(s.queue) {
			s.writing = false
			if !s.dirty {
				s.markDirty()
			}
			return
		}
	}
	s.writing, s.stalled = false, false
	if s.state == stateClosing {
		s.closeLocked(s.reason, nil, endFlushed)
	}
}

// drainSlow drains a connection that can't be written without waiting. It lives until the
// queue is empty; closing the connection ends it.
func (s *Socket) drainSlow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == stateClosed {
		s.writing = false
		return
	}
	s.drain(drainWait)
}

// consume takes n sent bytes from the queue.
func (s *Socket) consume(c *conn, n int) {
	s.server.metrics.Sent(n)
	if s.state == stateClosed {
		return
	}
	for n > 0 {
		m := s.queue[s.head]
		left := len(m.wire(c.form, s.server.opts.CompressionThreshold)) - s.off
		if n < left {
			s.off += n
			return
		}
		n -= left
		s.off = 0
		s.bytes -= m.Size()
		s.queue[s.head] = nil
		s.head++
	}
	if s.head == len(s.queue) {
		s.resetQueue()
	}
}

func (s *Socket) resetQueue() {
	s.head, s.off = 0, 0
	if cap(s.queue) > keepQueue {
		s.queue = nil
	} else {
		s.queue = s.queue[:0]
	}
}
