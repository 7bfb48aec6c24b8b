package socketio

// Reasons of disconnection that this layer has; those of engineio.Reason come too.
const (
	ReasonClientDisconnect = "client namespace disconnect" // the client left the namespace
	ReasonServerDisconnect = "server namespace disconnect" // Disconnect was called
	ReasonForcedClose      = "forced server close"         // a handler panicked
	ReasonShutdown         = "server shutting down"
)

// Disconnect makes the socket leave its namespace. The client gets what was emitted before,
// then sees "io server disconnect" and does not come back by itself. close disconnects all other
// namespaces of the client too and closes the connection, after everything queued went out.
func (s *Socket) Disconnect(close bool) {
	if !s.Connected() {
		return
	}
	if close {
		s.client.disconnect()
		return
	}
	s.close(ReasonServerDisconnect, true)
}

// close ends the membership, once: whoever comes first does it and later calls return at once.
// notify sends the DISCONNECT packet. While handlers of OnConnection run nothing more is sent, but
// the rest waits for them, as they may be about to register what has to be told.
func (s *Socket) close(reason string, notify bool) {
	began, greeted := s.beginClose(reason)
	if !began {
		return
	}
	if notify {
		// fails only if the connection is gone, and then nobody needs it
		_ = s.send(&Packet{Type: PacketDisconnect, Namespace: s.ns.name})
	}
	s.endContext()
	if greeted {
		s.end(reason)
	}
}

// greet runs the handlers of OnConnection, and then what close has left to do meanwhile.
func (s *Socket) greet() {
	for _, f := range s.ns.handlers.load().connection {
		s.client.guard("connection", func() { f(s) })
	}
	s.gate.Lock()
	s.greeted = true
	ended := s.state.Load() != stateConnected
	s.gate.Unlock()
	if ended {
		s.end(s.reason)
	}
}

// end tells the application and cleans up.
func (s *Socket) end(reason string) {
	if h := s.handlers.Load(); h != nil {
		s.runReason(h.disconnecting, reason)
	}
	rooms := s.leaveAll()
	s.ns.remove(s)
	s.client.remove(s)
	s.failAcks()
	for _, f := range s.ns.handlers.load().disconnect {
		s.client.guard("disconnect", func() { f(s, reason) })
	}
	if h := s.handlers.Load(); h != nil {
		s.runReason(h.disconnect, reason)
	}
	if r := s.ns.recovery; r != nil && s.pid != "" && recoverable(reason) {
		r.leave(s, rooms)
	}
	s.ns.server.hookDisconnect(s.ns.name, reason)
	s.ns.server.release(s.ns)
}

func (s *Socket) runReason(fns []func(string), reason string) {
	for _, f := range fns {
		s.client.guard("disconnect", func() { f(reason) })
	}
}

// beginClose moves a connected socket to disconnecting, and tells whether the handlers of
// OnConnection are through. A socket that is still connecting is marked, and its connecting
// goroutine gives up.
func (s *Socket) beginClose(reason string) (began, greeted bool) {
	s.gate.Lock()
	defer s.gate.Unlock()
	switch s.state.Load() {
	case stateConnected:
		s.state.Store(stateDisconnecting)
		s.reason = reason
		return true, s.greeted
	case stateConnecting:
		s.state.Store(stateDisconnected)
		s.ns.adapter.DelAll(s)
	}
	return false, false
}

// leaveAll takes the socket out of all rooms and lets it join no more. It returns the rooms if
// they may be asked for again.
func (s *Socket) leaveAll() (rooms []string) {
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.ns.recovery != nil {
		rooms = s.ns.adapter.SocketRooms(s)
	}
	s.state.Store(stateDisconnected)
	s.ns.adapter.DelAll(s)
	s.rooms = 0
	return rooms
}

// discard cleans up a socket that was never connected.
func (s *Socket) discard() {
	s.beginClose("")
	s.failAcks()
	s.endContext()
	s.ns.server.release(s.ns)
}
