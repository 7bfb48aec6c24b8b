package engineio

import (
	"time"

	"github.com/gobwas/ws"
)

// During an upgrade the waiting GET is answered, so that the client can stop polling: the one that
// waits when the client probes at once, later ones after firstNoop and then every noopInterval
// (Node does it as often).
const (
	firstNoop    = 50 * time.Millisecond
	noopInterval = 100 * time.Millisecond
)

// A probe is a WebSocket connection that wants to become the transport of a polling session.
type probe struct {
	conn    *conn
	timeout *time.Timer // cuts the connection
	check   *time.Timer // answers the waiting GET; nil until the client has probed
}

func (p *probe) stop() {
	p.timeout.Stop()
	if p.check != nil {
		p.check.Stop()
	}
}

// startProbe makes c the candidate. There is one at most, and none after an upgrade.
func (s *Socket) startProbe(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == stateClosed || s.polling == nil || s.polling.probe != nil {
		return false
	}
	s.polling.probe = &probe{conn: c, timeout: time.AfterFunc(s.server.opts.UpgradeTimeout, c.close)}
	return true
}

// runProbe reads the candidate until it has become the transport, and then for the session.
// When it fails the session goes on with polling.
func (s *Socket) runProbe(c *conn) {
	if s.awaitUpgrade(c) {
		s.read(c)
		return
	}
	s.endProbe(c)
	c.goodbye(0, endLinger, c.raw == nil)
	c.drainInput()
	c.release()
	c.close()
}

func (s *Socket) endProbe(c *conn) {
	s.server.metrics.UpgradeFailed()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.polling != nil && s.polling.probe != nil && s.polling.probe.conn == c {
		s.polling.probe.stop()
		s.polling.probe = nil
	}
}

// awaitUpgrade talks with the candidate until it has upgraded (true) or failed (false).
func (s *Socket) awaitUpgrade(c *conn) bool {
	for {
		op, payload, ok, err := c.frames.next()
		switch {
		case err != nil:
			return false
		case !ok:
			if c.fill() != nil {
				return false
			}
		default:
			if done, upgraded := s.onProbeFrame(c, op, payload); done {
				return upgraded
			}
		}
	}
}

func (s *Socket) onProbeFrame(c *conn, op ws.OpCode, payload []byte) (done, upgraded bool) {
	switch op {
	case ws.OpPing:
		_, err := c.write(controlOf(ws.OpPong, payload).frame, true)
		return err != nil, false
	case ws.OpPong:
		return false, false
	case ws.OpText:
	default:
		return true, false
	}
	p, ok := decodeText(payload, c.form&formV3 != 0)
	switch {
	case ok && p.kind == packetPing && string(p.data) == "probe":
		_, err := c.write(probePacket.frame, true)
		return err != nil || !s.probed(c), false
	case ok && p.kind == packetUpgrade:
		return true, s.upgrade(c)
	default:
		return true, false
	}
}

// probed answers the waiting GET and sees to later ones.
func (s *Socket) probed(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.polling.probeOf(c)
	if p == nil {
		return false
	}
	if p.check == nil {
		p.check = time.AfterFunc(firstNoop, func() { s.checkPoll(c) })
	}
	s.answerWaiting()
	return true
}

func (s *Socket) checkPoll(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.polling.probeOf(c); p != nil {
		s.answerWaiting()
		p.check.Reset(noopInterval)
	}
}

func (s *Socket) answerWaiting() {
	s.polling.noop = s.polling.get != nil
	s.polling.wake()
}

// probeOf returns the probe if c is the candidate.
func (p *pollingState) probeOf(c *conn) *probe {
	if p == nil || p.probe == nil || p.probe.conn != c {
		return nil
	}
	return p.probe
}

// upgrade makes the candidate the transport: what is queued goes out on it, and what it brings is
// handled behind the body that is being handled, if there is one.
func (s *Socket) upgrade(c *conn) bool {
	s.mu.Lock()
	polling := s.polling
	p := polling.probeOf(c)
	if s.state == stateClosed || p == nil {
		s.mu.Unlock()
		return false
	}
	p.stop()
	polling.probe = nil
	s.ws, s.polling = c, nil
	if get := polling.get; get != nil && get.late { // it and the upgrade packet overtook each other
		get.refused = refuseRequest
	}
	polling.end(s.server, closePacket)
	s.server.metrics.Upgraded()
	if s.state == stateClosing {
		s.pushCloseFrame()
	}
	s.startDrain(drainOnce)
	s.mu.Unlock()

	polling.awaitBody()
	return true
}

// awaitBody returns when no body of the ended transport is being handled: none begins any more.
func (p *pollingState) awaitBody() {
	p.body.Lock()
	defer p.body.Unlock()
}
