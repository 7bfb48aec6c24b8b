package engineio

import (
	"errors"
	"time"

	"github.com/gobwas/ws"
)

// How a connection ends once its session is over.
type ending uint8

const (
	endCut     ending = iota // say goodbye if that needs no waiting, then cut
	endLinger                // send a close frame, and let the peer close
	endFlushed               // the same, the close frame is sent already
)

var errCloseTimeout = errors.New("engineio: close timeout")

// Close flushes what is queued, for at most Options.CloseTimeout, and then closes the socket
// with ReasonForcedClose. It does not wait.
func (s *Socket) Close() { s.closeGracefully(ReasonForcedClose) }

// CloseNow discards the queue and closes the socket with ReasonForcedClose. It does not wait.
func (s *Socket) CloseNow() { s.discard(ReasonForcedClose, nil) }

func (s *Socket) closeGracefully(reason Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != stateOpen {
		return
	}
	if reason == ReasonServerShutdown && s.ws == nil && s.polling.get == nil && s.head == len(s.queue) {
		s.closeLocked(reason, nil, endFlushed) // nothing to flush: no need to wait for its next request
		return
	}
	s.state, s.reason = stateClosing, reason
	s.due = s.server.wheel.now() + int64(s.server.opts.CloseTimeout)
	s.server.wheel.schedule(s, s.due)
	if s.ws != nil {
		s.pushCloseFrame()
	}
	s.kick(true)
}

// pushCloseFrame puts the close frame behind all that is queued.
func (s *Socket) pushCloseFrame() {
	frame := closeFrame(0)
	if s.reason == ReasonServerShutdown {
		frame = closeFrame(ws.StatusGoingAway)
	}
	s.push(frame.Size(), frame)
}

// discard closes at once.
func (s *Socket) discard(reason Reason, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked(reason, err, endCut)
}

func (s *Socket) close(reason Reason, err error, how ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if how == endLinger { // the answers to what came before are on their way, as with Node
		s.startDrain(drainAll)
	}
	s.closeLocked(reason, err, how)
}

// closeLocked ends the session, once: nothing is sent or handed over any more. A graceful close that
// has begun keeps its reason. s.mu is held.
func (s *Socket) closeLocked(reason Reason, err error, how ending) {
	switch s.state {
	case stateClosed:
		return
	case stateClosing: // whoever answers the close frame does not change why it was sent
		reason = s.reason
	}
	s.state, s.reason, s.err = stateClosed, reason, err
	free := !s.writing && s.off == 0 // not inside a frame
	s.queue, s.head, s.off, s.bytes = nil, 0, 0, 0
	s.server.wheel.cancel(s)
	s.server.remove(s)
	if s.polling != nil {
		farewell := closePacket
		if reason == ReasonTransportClose { // the client's own close packet: it knows
			farewell = noopPacket
		}
		s.polling.end(s.server, farewell)
	}
	if s.ws != nil {
		s.endConn(s.ws, how, free)
	}
	s.server.spawn(s.finish)
}

// endConn ends the connection of a closed session. free tells that a frame may be written.
func (s *Socket) endConn(c *conn, how ending, free bool) {
	code := s.goodbyeCode()
	s.server.endLater(c, func() {
		switch {
		case how == endFlushed:
			c.linger()
		case !free:
			c.close()
		default:
			c.goodbye(code, how, c.raw == nil)
		}
	})
}

// endLater calls end, which ends c. A plain socket never waits; TLS sends an alert first, which can,
// and nobody who closes a session is made to.
func (s *Server) endLater(c *conn, end func()) {
	if c.raw != nil {
		end()
		return
	}
	s.spawn(end)
}

// goodbyeCode is the close code for the reason, 0 for none, as Node's server sends it.
func (s *Socket) goodbyeCode() ws.StatusCode {
	var frame *frameError
	var panicked *PanicError
	var peer *peerClose
	switch {
	case errors.As(s.err, &peer):
		return peer.code
	case errors.As(s.err, &frame):
		return frame.code
	case errors.As(s.err, &panicked):
		return ws.StatusInternalServerError
	case s.reason == ReasonServerShutdown:
		return ws.StatusGoingAway
	default:
		return 0
	}
}

// goodbye sends a close frame as far as that goes and ends the connection.
func (c *conn) goodbye(code ws.StatusCode, how ending, blocks bool) {
	if blocks {
		if err := c.net.SetWriteDeadline(time.Now().Add(lingerTime)); err != nil {
			c.close()
			return
		}
	}
	_, err := c.write(closeFrame(code).frame, false)
	if err != nil || how == endCut {
		c.close()
		return
	}
	c.linger()
}
