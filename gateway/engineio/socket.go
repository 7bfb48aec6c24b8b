package engineio

import (
	"errors"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Session is what the application makes of a Socket. Calls for one socket never overlap and
// come in order. They come on the connection's reader: while one blocks, that connection
// (and only that one) is not read. A panic ends the connection, not the process.
type Session interface {
	// OnMessage gets one message. data is valid only during the call.
	OnMessage(data []byte, binary bool)
	// OnClose is called exactly once, last. err has details and may be nil.
	OnClose(reason Reason, err error)
}

// State of a socket.
type state uint8

const (
	stateOpen    state = iota
	stateClosing       // flushing what is queued; takes nothing more in either direction
	stateClosed
)

// Socket is one Engine.IO session. Its methods may be called from any goroutine.
//
// The fields stand in the order in which a delivery needs them: in a broadcast each socket is cold, and
// what costs then is how many cache lines it takes.
type Socket struct {
	server  *Server
	flusher *flusher

	mu       sync.Mutex // guards what follows, up to in
	state    state
	writing  bool       // somebody writes to ws
	dirty    bool       // on the flusher's list
	stalled  bool       // waits for room in the kernel's buffer
	awaiting bool       // a ping was sent, a pong is due
	ws       *conn      // nil: polling
	queue    []*Message // [head:] wait to be sent
	head     int
	off      int           // bytes of queue[head] that are sent
	bytes    int           // sum of the sizes, what a poll is writing included
	polling  *pollingState // nil after the upgrade
	reason   Reason        // of the close that has begun
	err      error
	due      int64 // when the heartbeat or a graceful close is over, in the wheel's time

	in      sync.Mutex  // serialises the calls to the session
	session Session     // guarded by in
	busy    atomic.Bool // the session is being called
	more    atomic.Bool // the reader has more to handle after the current call

	wheel wheelLink // guarded by the wheel

	id       string
	protocol uint8
	info     *info // what the handshake said
}

// ID returns the session id.
func (s *Socket) ID() string { return s.id }

// Protocol returns the revision of the Engine.IO protocol, 4 or 3.
func (s *Socket) Protocol() int { return int(s.protocol) }

// Transport returns the name of the current transport: Polling or WebSocket.
func (s *Socket) Transport() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.transportLocked()
}

func (s *Socket) transportLocked() string {
	if s.ws != nil {
		return WebSocket
	}
	return Polling
}

// Handshake returns what is known of the request that opened the session. It is made anew by
// each call.
func (s *Socket) Handshake() *Handshake { return s.info.handshake() }

// BufferedBytes returns how much of the send budget is used.
func (s *Socket) BufferedBytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// accept asks the application for the session.
func (s *Socket) accept() {
	s.in.Lock()
	defer s.in.Unlock()
	s.guard(func() { s.session = s.server.accept(s) })
	if s.session == nil {
		s.close(ReasonForcedClose, errRefused, endCut)
	}
}

// deliver hands one message to the session.
func (s *Socket) deliver(p packet) {
	s.server.metrics.Received(len(p.data))
	s.in.Lock()
	defer s.in.Unlock()
	if !s.isOpen() {
		return
	}
	defer s.recoverSession()
	s.busy.Store(true)
	s.session.OnMessage(p.data, p.binary)
	s.busy.Store(false)
}

// finish tells the session that it is over. It runs on a goroutine of its own, because
// whoever closes a socket may be the session itself, or hold locks of the application.
func (s *Socket) finish() {
	s.in.Lock()
	defer s.in.Unlock()
	s.mu.Lock()
	transport, reason, err := s.transportLocked(), s.reason, s.err
	s.mu.Unlock()
	if s.session != nil {
		s.guard(func() { s.session.OnClose(reason, err) })
	}
	s.server.metrics.SessionClosed(transport, reason)
	s.server.tracker.done()
}

// guard calls the application.
func (s *Socket) guard(f func()) {
	defer s.recoverSession()
	s.busy.Store(true)
	f()
	s.busy.Store(false)
}

// recoverSession turns a panic of the application into the end of this socket.
func (s *Socket) recoverSession() {
	v := recover()
	if v == nil {
		return
	}
	s.busy.Store(false)
	err := &PanicError{Value: v, Stack: debug.Stack()}
	s.server.metrics.Panicked()
	s.server.log.Error("engineio: session panicked", "sid", s.id, "panic", v, "stack", string(err.Stack))
	s.close(ReasonForcedClose, err, endCut)
}

func (s *Socket) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == stateOpen
}

var (
	errHeartbeat = errors.New("engineio: invalid heartbeat direction")
	errRefused   = errors.New("engineio: refused by the application")
)

// onPacket handles one packet of the client; v3 is the protocol of the transport that brought it,
// which can differ from the session's when the client upgraded with another one.
func (s *Socket) onPacket(p packet, v3 bool) {
	switch p.kind {
	case packetMessage:
		s.deliver(p)
	case packetPing:
		if !v3 {
			s.close(ReasonTransportError, errHeartbeat, endLinger)
			return
		}
		s.onPing()
	case packetPong:
		if v3 {
			s.close(ReasonTransportError, errHeartbeat, endLinger)
			return
		}
		s.onPong()
	case packetClose:
		s.close(ReasonTransportClose, nil, endLinger)
	}
}
