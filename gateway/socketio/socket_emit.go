package socketio

import (
	"context"
	"time"
)

// Emitter sends to one socket with modifiers. It is a value: keep and share it freely.
type Emitter struct {
	s     *Socket
	flags BroadcastFlags
}

// Emit sends an event. It never waits for the network. Arguments are encoded as encoding/json
// does (no HTML escapes), binaries as Binary says; json.RawMessage goes out unchecked and Args
// and Arg as they came. Errors: ErrDisconnected, ErrReservedEvent, ErrTooManyAttachments, of the
// encoding, and the engine's when this emit made it close the connection as slow.
func (s *Socket) Emit(event string, args ...any) error { return Emitter{s: s}.Emit(event, args...) }

// EmitAck sends an event and calls ack once: with the client's acknowledgement (arguments valid
// during the call), ErrDisconnected, or, behind Timeout, ErrAckTimeout. When EmitAck
// itself returns an error, ack is not called. It must not block: it runs on the reader mostly.
func (s *Socket) EmitAck(event string, ack func(Args, error), args ...any) error {
	return Emitter{s: s}.EmitAck(event, ack, args...)
}

// EmitWithAck sends an event and waits for the client's acknowledgement or the end of ctx
// (ErrAckTimeout for its deadline). It must not be called in a handler of the same
// connection, whose reader would have to read the acknowledgement: start a goroutine.
func (s *Socket) EmitWithAck(ctx context.Context, event string, args ...any) (Args, error) {
	return Emitter{s: s}.EmitWithAck(ctx, event, args...)
}

// EmitPrepared sends a prepared event of the socket's namespace, without allocating. sent is
// false, with no error, when the event was volatile and dropped.
func (s *Socket) EmitPrepared(p *Prepared) (sent bool, err error) {
	return Emitter{s: s}.EmitPrepared(p)
}

// QueuePrepared is EmitPrepared for many sockets in a row: the event is queued, and written a
// moment later together with what else waits for that connection.
func (s *Socket) QueuePrepared(p *Prepared) (sent bool, err error) {
	return s.deliver(p, false, true)
}

// Volatile makes the next emit drop the event when the transport is not ready.
func (s *Socket) Volatile() Emitter { return Emitter{s: s}.Volatile() }

// Compress switches per-message compression of the next emit.
func (s *Socket) Compress(on bool) Emitter { return Emitter{s: s}.Compress(on) }

// Timeout bounds the wait for the acknowledgement of the next emit.
func (s *Socket) Timeout(d time.Duration) Emitter { return Emitter{s: s}.Timeout(d) }

// Volatile: see Socket.Volatile.
func (e Emitter) Volatile() Emitter { e.flags.Volatile = true; return e }

// Compress: see Socket.Compress.
func (e Emitter) Compress(on bool) Emitter { e.flags.Compress = &on; return e }

// Timeout: see Socket.Timeout.
func (e Emitter) Timeout(d time.Duration) Emitter { e.flags.Timeout = d; return e }

// Emit: see Socket.Emit.
func (e Emitter) Emit(event string, args ...any) error {
	if isReservedEvent(event) {
		return ErrReservedEvent
	}
	if r := e.s.ns.recovery; r != nil && !e.flags.Volatile && e.s.settledState() == stateConnected {
		return r.emit(e.s, event, args, &BroadcastOptions{Rooms: []string{e.s.id}, Flags: e.flags})
	}
	return e.s.sendEvent(nil, event, args, &e.flags)
}

// EmitAck: see Socket.EmitAck.
func (e Emitter) EmitAck(event string, ack func(Args, error), args ...any) error {
	_, err := e.emitAck(event, ack, args)
	return err
}

func (e Emitter) emitAck(event string, ack func(Args, error), args []any) (*pendingAck, error) {
	if isReservedEvent(event) {
		return nil, ErrReservedEvent
	}
	a, err := e.s.expectAck(e.flags.Timeout, ack)
	if err != nil {
		return nil, err
	}
	if err := e.s.sendEvent(a, event, args, &e.flags); err != nil {
		if e.s.takeAck(a.id) != a {
			return a, nil // ack has been told of it: the socket was closed meanwhile
		}
		return nil, err
	}
	return a, nil
}

// EmitWithAck: see Socket.EmitWithAck.
func (e Emitter) EmitWithAck(ctx context.Context, event string, args ...any) (Args, error) {
	if e.flags.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, e.flags.Timeout)
		defer cancel()
		e.flags.Timeout = 0
	}
	ch := make(chan ackResult, 1)
	a, err := e.emitAck(event, func(args Args, err error) { ch <- ackResult{args.Clone(), err} }, args)
	if err != nil {
		return Args{}, err
	}
	return e.s.waitAck(ctx, a, ch)
}

// EmitPrepared: see Socket.EmitPrepared. Compress has no effect.
func (e Emitter) EmitPrepared(p *Prepared) (sent bool, err error) {
	return e.s.deliver(p, e.flags.Volatile, false)
}

// To selects the sockets in at least one of rooms, without this one.
func (s *Socket) To(rooms ...string) *BroadcastOperator { return s.Broadcast().To(rooms...) }

// In is To.
func (s *Socket) In(rooms ...string) *BroadcastOperator { return s.To(rooms...) }

// Except selects all sockets of the namespace but this one and those in one of rooms.
func (s *Socket) Except(rooms ...string) *BroadcastOperator { return s.Broadcast().Except(rooms...) }

// Local selects all sockets of the namespace on this server but this one.
func (s *Socket) Local() *BroadcastOperator { return s.Broadcast().Local() }

// Broadcast selects all sockets of the namespace but this one.
func (s *Socket) Broadcast() *BroadcastOperator { return s.ns.Except(s.id) }

// sendEvent encodes an event and queues it; with an acknowledgement wanted unless a is nil.
func (s *Socket) sendEvent(a *pendingAck, event string, args []any, flags *BroadcastFlags) error {
	if s.state.Load() >= stateDisconnecting {
		return ErrDisconnected
	}
	enc := getEncoder(s.ns.server.opts.MaxAttachments)
	defer enc.release()
	if err := enc.event(event, args); err != nil {
		return err
	}
	p := &enc.packet
	p.Type = PacketEvent
	if a != nil {
		p.ID, p.HasID = a.id, true
	}
	if h := s.handlers.Load(); h != nil && len(h.anyOut) > 0 {
		s.notifyOutgoing(h, event, enc.buf.Bytes(), enc.bin)
	}
	return s.sendEncoded(enc, flags)
}

// sendAck answers an event.
func (s *Socket) sendAck(id uint64, args []any) error {
	if s.state.Load() >= stateDisconnecting {
		return ErrDisconnected
	}
	enc := getEncoder(s.ns.server.opts.MaxAttachments)
	defer enc.release()
	if err := enc.array(args); err != nil {
		return err
	}
	p := &enc.packet
	p.Type, p.ID, p.HasID = PacketAck, id, true
	return s.sendEncoded(enc, &BroadcastFlags{})
}

// sendEncoded queues enc.packet with what enc has encoded as its payload.
func (s *Socket) sendEncoded(enc *encoder, flags *BroadcastFlags) (err error) {
	p := &enc.packet
	p.Namespace, p.Data, p.Attachments = s.ns.name, enc.buf.Bytes(), enc.bin
	if enc.msgs, err = s.ns.server.encode(enc.msgs, p, flags.Compress); err != nil {
		return err
	}
	_, err = s.conn.Send(flags.Volatile, enc.msgs...)
	return err
}

// send queues a packet whatever the state.
func (s *Socket) send(p *Packet) error {
	msgs, err := s.ns.server.encode(nil, p, nil)
	if err != nil {
		return err
	}
	_, err = s.conn.Send(false, msgs...)
	return err
}

// Deliver sends a broadcast to this socket. For adapters, from within their Range; many says that the
// socket is one of many, so that queueing is cheaper than writing at once. A socket that is
// not connected gets nothing: not before its CONNECT packet, not after it was disconnected.
func (s *Socket) Deliver(p *Prepared, volatile, many bool) {
	_, _ = s.deliver(p, volatile, many) // a closed or slow connection is not the sender's concern
}

func (s *Socket) deliver(p *Prepared, volatile, later bool) (bool, error) {
	if s.settledState() != stateConnected {
		return false, ErrDisconnected
	}
	if h := s.handlers.Load(); h != nil && len(h.anyOut) > 0 && !p.notified {
		s.notifyOutgoing(h, p.event, p.packet.Data, p.packet.Attachments)
	}
	if later {
		return s.conn.SendLater(volatile, p.msgs...)
	}
	return s.conn.Send(volatile, p.msgs...)
}
