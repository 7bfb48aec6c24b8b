package engineio

import "time"

// Session is what the application makes of a Socket. Calls for one socket never overlap and
// come in order. They come on the connection's reader: while one blocks, that connection
// (and only that one) is not read. A panic ends the connection, not the process.
type Session interface {
	// OnMessage gets one message. data is valid only during the call.
	OnMessage(data []byte, binary bool)
	// OnClose is called exactly once, last. err has details and may be nil.
	OnClose(reason Reason, err error)
}

// Socket is one Engine.IO session. Its methods may be called from any goroutine.
type Socket struct{}

// ID returns the session id.
func (s *Socket) ID() string { return "" }

// Protocol returns the revision of the Engine.IO protocol, 4 or 3.
func (s *Socket) Protocol() int { return 4 }

// Transport returns the name of the current transport: Polling or WebSocket.
func (s *Socket) Transport() string { return Polling }

// Handshake returns what is known of the request that opened the session. It is made anew by
// each call.
func (s *Socket) Handshake() *Handshake { return nil }

// Send queues msgs as one unit: contiguous, in order, all or none. If nothing waits before
// them and the connection can take them, they are written before Send returns; it never waits.
// The order of Send calls is the order on the wire.
//
// A volatile unit is dropped (false and no error) when the transport is not writable now or
// its queue is above the volatile budget. A unit beyond the send budget closes the socket with
// ReasonSlowConsumer and returns ErrSlowConsumer. A closed or closing socket returns ErrClosed.
func (s *Socket) Send(volatile bool, msgs ...*Message) (sent bool, err error) { return false, nil }

// SendLater is Send without the attempt to write: a pool of flushers does it a moment
// later, together with whatever was queued meanwhile. It is made for fan-out to many sockets.
func (s *Socket) SendLater(volatile bool, msgs ...*Message) (sent bool, err error) {
	return false, nil
}

// Close flushes what is queued, for at most Options.CloseTimeout, and then closes the socket
// with ReasonForcedClose. It does not wait.
func (s *Socket) Close() {}

// CloseNow discards the queue and closes the socket with ReasonForcedClose. It does not wait.
func (s *Socket) CloseNow() {}

// BufferedBytes returns how much of the send budget is used.
func (s *Socket) BufferedBytes() int { return 0 }

// Opened returns when the session was opened.
func (s *Socket) Opened() time.Time { return time.Time{} }
