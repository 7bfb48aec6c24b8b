package socketio

// Deadlines is the number of timers that run, for tests.
func (s *Server) Deadlines() int { return s.timers.len() }

// SinkCount is the number of acknowledgement ids that the namespace remembers, for tests.
func (n *Namespace) SinkCount() int {
	total := 0
	for i := range n.sinks.shards {
		sh := &n.sinks.shards[i]
		sh.mu.RLock()
		total += len(sh.m)
		sh.mu.RUnlock()
	}
	return total
}

// Memory is the adapter of a namespace that has the in-process one, for tests.
func (n *Namespace) Memory() *MemoryAdapter { return n.adapter.(*MemoryAdapter) }

// AwaySessions is the number of sessions that may be recovered, for tests.
func (n *Namespace) AwaySessions() int {
	n.recovery.mu.Lock()
	defer n.recovery.mu.Unlock()
	return len(n.recovery.sessions)
}
