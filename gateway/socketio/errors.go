package socketio

import (
	"errors"
	"fmt"
)

// Errors of this package. They are returned wrapped or bare; test with errors.Is.
var (
	// ErrDisconnected: the socket is not (or no longer) connected to its namespace.
	ErrDisconnected = errors.New("socketio: socket is disconnected")
	// ErrAckTimeout: no acknowledgement came in time.
	ErrAckTimeout = errors.New("socketio: operation has timed out")
	// ErrNoAck: the client asked for no acknowledgement of this event.
	ErrNoAck = errors.New("socketio: event wants no acknowledgement")
	// ErrAlreadyAcked: the event has been acknowledged before.
	ErrAlreadyAcked = errors.New("socketio: event is already acknowledged")
	// ErrTooManyAcks: the socket has Options.MaxPendingAcks acknowledgements outstanding.
	ErrTooManyAcks = errors.New("socketio: too many pending acknowledgements")
	// ErrTooManyRooms: the socket is in Options.MaxRooms rooms.
	ErrTooManyRooms = errors.New("socketio: too many rooms")
	// ErrTooManyAttachments: a packet holds more than Options.MaxAttachments binaries.
	ErrTooManyAttachments = errors.New("socketio: too many attachments")
	// ErrAttachmentsTooLarge: a packet's binaries have more than Options.MaxAttachmentBytes bytes.
	ErrAttachmentsTooLarge = errors.New("socketio: attachments too large")
	// ErrReservedEvent: the name is reserved by the protocol and can't be emitted.
	ErrReservedEvent = errors.New("socketio: reserved event name")
	// ErrServerClosed: the server is shut down.
	ErrServerClosed = errors.New("socketio: server is shut down")
	// ErrNotSupported: the operation makes no sense here (FetchSockets on a ParentNamespace).
	ErrNotSupported = errors.New("socketio: operation is not supported")
	// ErrMalformed: a packet violates the protocol. The connection that sent it is closed.
	ErrMalformed = errors.New("socketio: malformed packet")
)

// ConnectError refuses a connection to a namespace. A middleware that returns one (or an
// error that wraps one) makes the client fire "connect_error" with this message and data.
// Any other error is sent with its Error() text and without data.
type ConnectError struct {
	Message string // err.message at the client
	Data    any    // err.data at the client; left out if nil; anything encoding/json can encode
}

// Error implements error.
func (e *ConnectError) Error() string { return e.Message }

// PanicError is what a recovered panic in a handler, a middleware or a callback becomes.
// It is logged with its stack and given to Hooks.Panic; the client never sees it.
type PanicError struct {
	Value any    // what panic was called with
	Stack []byte // the stack of the goroutine that panicked
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("socketio: panic: %v", e.Value) }
