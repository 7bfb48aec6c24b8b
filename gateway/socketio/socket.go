package socketio

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"xabar/gateway/engineio"
)

// states of a Socket; it only moves forward.
const (
	stateConnecting    int32 = iota // middlewares run
	stateConnected                  // CONNECT is queued
	stateDisconnecting              // handlers of OnDisconnecting run, it is still in its rooms
	stateDisconnected               // it is in no room, and never will be
)

// Socket is one client's membership in one namespace; a connection carries a Socket for each
// namespace that its client has joined. All methods are safe for concurrent use.
type Socket struct {
	// What a broadcast looks at comes first: each socket is cold then, and a cache line is what it costs.
	conn     *engineio.Socket // the client's
	handlers atomic.Pointer[socketHandlers]
	state    atomic.Int32 // written under gate
	client   *client
	ns       *Namespace

	id        string
	auth      json.RawMessage
	pid       string     // what recovers the session, known to its client only; with recovery on
	recovered *recovered // nil if it took over no session

	gate    sync.Mutex // serialises connecting, joining, leaving and closing; before mu
	rooms   int        // guarded by gate, as all up to reason
	slot    any        // the adapter's
	greeted bool       // handlers of OnConnection are through
	reason  string     // of the disconnection

	mu         sync.Mutex // guards the rest
	acks       map[uint64]*pendingAck
	acksClosed bool
	data       any
	ctx        context.Context
	cancel     context.CancelFunc
}

// ID is the socket's id: random, known to the client, and a room of its own. (Clients
// of protocol 3 have the Engine.IO session's id, prefixed by the namespace's name and "#".)
func (s *Socket) ID() string { return s.id }

// Namespace is the socket's namespace.
func (s *Socket) Namespace() *Namespace { return s.ns }

// Conn is the Engine.IO session below, shared by all namespaces of the client.
func (s *Socket) Conn() *engineio.Socket { return s.conn }

// Connected says that the client has joined the namespace and not left it.
func (s *Socket) Connected() bool { return s.settledState() == stateConnected }

// settledState is the state, past the moment between a socket's becoming visible and the
// queueing of its CONNECT packet, which nothing may overtake.
func (s *Socket) settledState() int32 {
	if st := s.state.Load(); st != stateConnecting {
		return st
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	return s.state.Load()
}

// Data is what SetData stored: nil at first.
func (s *Socket) Data() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data
}

// SetData attaches a value to the socket. FetchSockets shows it, as JSON.
func (s *Socket) SetData(v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data = v
}

// Context ends when the socket is disconnected.
func (s *Socket) Context() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil {
		s.ctx, s.cancel = context.WithCancel(context.Background())
		if s.state.Load() >= stateDisconnecting { // endContext may have been here before
			s.cancel()
		}
	}
	return s.ctx
}

func (s *Socket) endContext() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel()
	}
}

// Rooms are the rooms the socket is in, its own id among them.
func (s *Socket) Rooms() []string {
	s.gate.Lock()
	defer s.gate.Unlock()
	return s.ns.adapter.SocketRooms(s)
}

// Join puts the socket into rooms. Errors: ErrDisconnected when it has left already,
// ErrTooManyRooms.
func (s *Socket) Join(rooms ...string) error {
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.state.Load() == stateDisconnected {
		return ErrDisconnected
	}
	if s.rooms+len(rooms) > s.ns.server.opts.MaxRooms && s.roomsWith(rooms) > s.ns.server.opts.MaxRooms {
		s.ns.server.hookBound("MaxRooms", s.conn.ID())
		return ErrTooManyRooms
	}
	s.rooms += s.ns.adapter.AddAll(s, rooms)
	return nil
}

// roomsWith is how many rooms there would be.
func (s *Socket) roomsWith(rooms []string) int {
	set := make(map[string]struct{}, s.rooms+len(rooms))
	for _, r := range s.ns.adapter.SocketRooms(s) {
		set[r] = struct{}{}
	}
	for _, r := range rooms {
		set[r] = struct{}{}
	}
	return len(set)
}

// Leave takes the socket out of a room.
func (s *Socket) Leave(room string) {
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.state.Load() != stateDisconnected && s.ns.adapter.Del(s, room) {
		s.rooms--
	}
}

// AdapterSlot is a place for what the namespace's adapter knows of the socket. Only adapters
// may use it, and only within AddAll, Del, DelAll and SocketRooms.
func (s *Socket) AdapterSlot() *any { return &s.slot }

// Auth is the auth payload of the client's CONNECT packet: a JSON object, {} if it sent none.
// From clients of protocol 3 it is the query of the namespace's name.
func (s *Socket) Auth() json.RawMessage {
	if s.auth == nil {
		return json.RawMessage("{}")
	}
	return s.auth
}
