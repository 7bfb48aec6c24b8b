package socketio

func (s *Server) hookConnect(namespace string) {
	if f := s.opts.Hooks.Connect; f != nil {
		f(namespace)
	}
}

func (s *Server) hookRefused(namespace string, err error) {
	if f := s.opts.Hooks.ConnectRefused; f != nil {
		f(namespace, err)
	}
}

func (s *Server) hookDisconnect(namespace, reason string) {
	if f := s.opts.Hooks.Disconnect; f != nil {
		f(namespace, reason)
	}
}

func (s *Server) hookEventIn(namespace, event string) {
	if f := s.opts.Hooks.EventIn; f != nil {
		f(namespace, event)
	}
}

func (s *Server) hookPendingAcks(delta int) {
	if f := s.opts.Hooks.PendingAcks; f != nil {
		f(delta)
	}
}

func (s *Server) hookAckTimeout(namespace string) {
	if f := s.opts.Hooks.AckTimeout; f != nil {
		f(namespace)
	}
}

func (s *Server) hookMalformed(err error) {
	if f := s.opts.Hooks.Malformed; f != nil {
		f(err)
	}
}

func (s *Server) hookBound(bound, sid string) {
	s.opts.Logger.Debug("bound hit", "bound", bound, "sid", sid)
	if f := s.opts.Hooks.Bound; f != nil {
		f(bound)
	}
}

func (s *Server) hookNamespace(name string, created bool) {
	if f := s.opts.Hooks.Namespace; f != nil {
		f(name, created)
	}
}
