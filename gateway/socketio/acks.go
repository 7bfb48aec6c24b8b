package socketio

import (
	"context"
	"time"
)

// pendingAck is an acknowledgement that a socket owes.
type pendingAck struct {
	deadline
	socket *Socket
	id     uint64
	fn     func(Args, error)
}

// expire implements expirer.
func (a *pendingAck) expire() {
	if a.socket.takeAck(a.id) != a {
		return // it came at the last moment
	}
	a.socket.ns.server.hookAckTimeout(a.socket.ns.name)
	a.socket.client.guard("ack", func() { a.fn(Args{}, ErrAckTimeout) })
}

// expectAck registers fn for an acknowledgement, with a new id. timeout 0 is none.
func (s *Socket) expectAck(timeout time.Duration, fn func(Args, error)) (*pendingAck, error) {
	return s.expectAckID(s.ns.nextAckID(), timeout, fn)
}

func (s *Socket) expectAckID(id uint64, timeout time.Duration, fn func(Args, error)) (*pendingAck, error) {
	server := s.ns.server
	a := &pendingAck{socket: s, id: id, fn: fn}
	s.mu.Lock()
	switch {
	case s.acksClosed:
		s.mu.Unlock()
		return nil, ErrDisconnected
	case len(s.acks) >= server.opts.MaxPendingAcks:
		s.mu.Unlock()
		server.hookBound("MaxPendingAcks", s.conn.ID())
		return nil, ErrTooManyAcks
	}
	if s.acks == nil {
		s.acks = make(map[uint64]*pendingAck)
	}
	s.acks[id] = a
	if timeout > 0 {
		server.timers.start(&a.deadline, timeout, a)
	}
	s.mu.Unlock()
	server.hookPendingAcks(1)
	return a, nil
}

// takeAck removes the pending acknowledgement with this id and returns it, or nil.
func (s *Socket) takeAck(id uint64) *pendingAck {
	s.mu.Lock()
	a := s.acks[id]
	if a == nil {
		s.mu.Unlock()
		return nil
	}
	delete(s.acks, id)
	if len(s.acks) == 0 {
		s.acks = nil // an idle connection keeps no empty map
	}
	s.ns.server.timers.stop(&a.deadline)
	s.mu.Unlock()
	s.ns.server.hookPendingAcks(-1)
	return a
}

// failAcks ends all pending acknowledgements when the socket is gone.
func (s *Socket) failAcks() {
	s.mu.Lock()
	acks := s.acks
	s.acks, s.acksClosed = nil, true
	for _, a := range acks {
		s.ns.server.timers.stop(&a.deadline)
	}
	s.mu.Unlock()
	if len(acks) == 0 {
		return
	}
	s.ns.server.hookPendingAcks(-len(acks))
	for _, a := range acks {
		s.client.guard("ack", func() { a.fn(Args{}, ErrDisconnected) })
	}
}

// onAck handles an acknowledgement packet, on the reader.
func (s *Socket) onAck(p *Packet) {
	if !p.HasID {
		return
	}
	args := Args{list: p.Items, bin: p.Attachments}
	if a := s.takeAck(p.ID); a != nil {
		s.client.guard("ack", func() { a.fn(args, nil) })
		return
	}
	if prepared := s.ns.sinks.get(p.ID); prepared != nil {
		s.ackPrepared(prepared, args)
	}
}

func (s *Socket) ackPrepared(p *Prepared, args Args) {
	defer s.client.recover("ack")
	p.sink.Ack(s, args)
}

// PendingAcks is the number of acknowledgements that the socket owes, those of Prepared
// events not counted.
func (s *Socket) PendingAcks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.acks)
}

// ackResult hands an acknowledgement from the reader to a waiting goroutine.
type ackResult struct {
	args Args
	err  error
}

// wait waits for the result of an emit whose acknowledgement goes to ch.
func (s *Socket) waitAck(ctx context.Context, a *pendingAck, ch <-chan ackResult) (Args, error) {
	select {
	case r := <-ch:
		return r.args, r.err
	case <-ctx.Done():
	}
	if s.takeAck(a.id) == a {
		s.ns.server.hookAckTimeout(s.ns.name)
		return Args{}, timeoutError(ctx)
	}
	r := <-ch // it came at the last moment: fn has been or is being called
	return r.args, r.err
}

// timeoutError is ErrAckTimeout when ctx ended by its deadline, else why it ended.
func timeoutError(ctx context.Context) error {
	if ctx.Err() == context.DeadlineExceeded {
		return ErrAckTimeout
	}
	return context.Cause(ctx)
}
