package engineio

// In protocol 4 the server pings every PingInterval and the client has PingTimeout to answer. In
// protocol 3 the client pings and the server waits for PingInterval + PingTimeout.

// startHeartbeat sets the first deadline of a new session.
func (s *Socket) startHeartbeat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == stateOpen {
		s.rearm(s.idleTime())
	}
}

func (s *Socket) idleTime() int64 {
	d := s.server.opts.PingInterval
	if s.protocol == 3 {
		d += s.server.opts.PingTimeout
	}
	return int64(d)
}

// rearm sets the deadline to d nanoseconds from now.
func (s *Socket) rearm(d int64) {
	s.due = s.server.wheel.now() + d
	s.server.wheel.schedule(s, s.due)
}

// onPing answers a ping of protocol 3.
func (s *Socket) onPing() {
	s.mu.Lock()
	if s.state == stateOpen && s.protocol == 3 {
		s.rearm(s.idleTime())
	}
	s.mu.Unlock()
	s.sendControl(pongPacket)
}

// onPong takes the answer to a ping of protocol 4. As in Node, one that was not asked for
// puts off the next ping.
func (s *Socket) onPong() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == stateOpen && s.protocol == 4 {
		s.awaiting = false
		s.rearm(s.idleTime())
	}
}

// onTimer is called by the wheel.
func (s *Socket) onTimer(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state == stateClosed:
	case now < s.due: // it was moved after the wheel took it out
		s.server.wheel.schedule(s, s.due)
	case s.state == stateClosing:
		s.closeLocked(s.reason, errCloseTimeout, endCut)
	case s.protocol == 4 && !s.awaiting:
		s.ping(now)
	case s.busy.Load():
		// The answer may lie unread behind a slow call of the session: that is not the client's fault.
		s.rearm(int64(s.server.opts.PingTimeout))
	default:
		s.closeLocked(ReasonPingTimeout, nil, endCut)
	}
}

// ping sends the heartbeat of protocol 4. The answer's deadline counts from when the ping was due,
// not from the coarse tick, unless the process was held up.
func (s *Socket) ping(now int64) {
	from := s.due
	if now-from > 2*int64(s.server.wheel.tick) {
		from = now
	}
	s.awaiting = true
	s.due = from + int64(s.server.opts.PingTimeout)
	s.server.wheel.schedule(s, s.due)
	s.push(pingPacket.Size(), pingPacket)
	s.kick(false)
}

// expireLocked closes a session whose deadline has passed since the wheel's last tick, so that no
// request reaches it any more. It reports whether the session is closed.
func (s *Socket) expireLocked() bool {
	over := s.due
	if s.protocol == 4 && !s.awaiting {
		over += int64(s.server.opts.PingTimeout)
	}
	if s.state == stateOpen && !s.busy.Load() && s.server.wheel.now() >= over {
		s.closeLocked(ReasonPingTimeout, nil, endCut)
	}
	return s.state == stateClosed
}

// expired is expireLocked for the router.
func (s *Socket) expired() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.expireLocked()
}
