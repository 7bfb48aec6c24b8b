package engineio

import (
	"errors"
	"fmt"
)

// Reason says why a socket was closed, in the words of Node's server.
type Reason string

const (
	// ReasonTransportClose: the client closed the connection, or it was cut.
	ReasonTransportClose Reason = "transport close"
	// ReasonTransportError: the client broke the transport's rules, or a write failed.
	ReasonTransportError Reason = "transport error"
	// ReasonPingTimeout: the client did not answer the heartbeat in time.
	ReasonPingTimeout Reason = "ping timeout"
	// ReasonParseError: a packet could not be decoded.
	ReasonParseError Reason = "parse error"
	// ReasonForcedClose: this side closed the socket.
	ReasonForcedClose Reason = "forced close"
	// ReasonServerShutdown: Server.Shutdown closed the socket.
	ReasonServerShutdown Reason = "server shutting down"
	// ReasonSlowConsumer: the outbound queue went over its budget. Node has no such limit.
	ReasonSlowConsumer Reason = "slow consumer"
)

var (
	// ErrClosed is returned by Send on a socket that is closing or closed.
	ErrClosed = errors.New("engineio: socket closed")
	// ErrSlowConsumer is returned by the Send that took the socket over its outbound budget.
	ErrSlowConsumer = errors.New("engineio: slow consumer")
	// ErrServerClosed is returned by Shutdown when it was called before.
	ErrServerClosed = errors.New("engineio: server closed")
)

// PanicError is the error of a socket that was closed because its Session panicked.
type PanicError struct {
	Value any    // what was passed to panic
	Stack []byte // the goroutine's stack
}

func (e *PanicError) Error() string { return fmt.Sprintf("engineio: session panicked: %v", e.Value) }

// RefuseError is what AllowRequest returns to choose the HTTP status of its refusal.
// A refusal with status 429 or 5xx makes the official client try again.
type RefuseError struct {
	Status  int    // HTTP status, 403 if zero
	Message string // the body's "message", "Forbidden" if empty
}

func (e *RefuseError) Error() string { return "engineio: refused: " + e.Message }
