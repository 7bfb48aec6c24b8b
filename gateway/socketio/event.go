package socketio

import (
	"encoding/json"
	"sync/atomic"
)

// Event is one event that came in. Its arguments are valid while the handler runs; Retain
// before keeping them longer. The Event itself can be kept, and acknowledged from any goroutine.
type Event struct {
	socket *Socket
	name   string
	args   Args
	id     uint64
	hasID  bool
	acked  atomic.Bool
	inline [3]json.RawMessage // most events have few arguments: no allocation of their own
}

// Socket is the socket that sent the event.
func (e *Event) Socket() *Socket { return e.socket }

// Name is the event's name. (A number as the name, which JavaScript allows, is its digits.)
func (e *Event) Name() string { return e.name }

// Args are the arguments, without name and acknowledgement.
func (e *Event) Args() Args { return e.args }

// Arg is argument i from 0, null beyond the last.
func (e *Event) Arg(i int) Arg { return e.args.Arg(i) }

// HasAck says whether the client waits for an acknowledgement.
func (e *Event) HasAck() bool { return e.hasID }

// Retain copies the arguments out of the read buffer, so that they may be used after the
// handler has returned. It returns the event.
func (e *Event) Retain() *Event {
	e.args = e.args.Clone()
	return e
}

// Ack acknowledges the event, once, from any goroutine, now or later: while the handler has
// returned without it, later events are handled. Errors: ErrNoAck, ErrAlreadyAcked, ErrDisconnected,
// what the encoding says, and the engine's when the connection is closed as slow.
func (e *Event) Ack(args ...any) error {
	if !e.hasID {
		return ErrNoAck
	}
	if !e.acked.CompareAndSwap(false, true) {
		return ErrAlreadyAcked
	}
	return e.socket.sendAck(e.id, args)
}
