package socketio

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"
)

// Namespace is a communication channel that shares connections with others: "/" or the name
// given to Server.Of. All methods are safe for concurrent use. Handlers and middlewares apply
// to sockets and events that come after they were added; add them before serving.
type Namespace struct {
	name     string
	server   *Server
	parent   *ParentNamespace // nil for a namespace that Of has made
	adapter  Adapter
	sinks    sinkTable
	ackIDs   atomic.Uint64
	handlers handlerTable
	recovery *recovery // nil if it is off

	mu      sync.RWMutex // guards sockets
	sockets map[string]*Socket

	refs   int  // connecting and connected sockets; guarded by server.mu
	pinned bool // Of has given it away; guarded by server.mu
}

func newNamespace(s *Server, name string, parent *ParentNamespace) *Namespace {
	n := &Namespace{name: name, server: s, parent: parent, sockets: make(map[string]*Socket)}
	if parent != nil {
		n.handlers.set.Store(parent.handlers.load())
	}
	n.adapter = s.opts.Adapter(n)
	if s.opts.Recovery != nil {
		n.recovery = newRecovery(n)
	}
	return n
}

// Name is the namespace's name, "/" for the main one.
func (n *Namespace) Name() string { return n.name }

// Server is the namespace's server.
func (n *Namespace) Server() *Server { return n.server }

// Adapter is the namespace's adapter.
func (n *Namespace) Adapter() Adapter { return n.adapter }

// Use adds a middleware, run for every socket before it is connected. An error refuses the
// socket with a connect_error (see ConnectError). It runs on the connection's reader and may
// block: later packets of that connection, and only they, wait.
func (n *Namespace) Use(f func(s *Socket) error) { n.handlers.use(f) }

// OnConnection adds a handler of new sockets. It runs on the connection's reader before any
// event of the socket is handled; register the socket's event handlers in it.
func (n *Namespace) OnConnection(f func(s *Socket)) { n.handlers.onConnection(f) }

// Handle adds a handler for an event of every socket of the namespace: like Socket.On, without
// the cost of a registration per socket. It runs before handlers of the socket itself.
func (n *Namespace) Handle(event string, h func(*Event)) { n.handlers.handle(event, h) }

// HandleUnknown sets the handler of events that neither the namespace nor the socket has a
// handler for. Without one they are ignored, as in Node.
func (n *Namespace) HandleUnknown(h func(*Event)) { n.handlers.handleUnknown(h) }

// OnDisconnect adds a handler that runs for every socket of the namespace when it has left
// all rooms, before the socket's own. See Socket.OnDisconnect.
func (n *Namespace) OnDisconnect(f func(s *Socket, reason string)) { n.handlers.onDisconnect(f) }

// OnServerSide adds a handler of events that other servers send with ServerSideEmit. ack
// answers a ServerSideEmitWithAck and is nil otherwise. args are valid during the call.
func (n *Namespace) OnServerSide(event string, f func(args Args, ack func(args ...any) error)) {
	n.handlers.onServerSide(event, f)
}

// Socket returns the connected socket with this id on this server, or nil.
func (n *Namespace) Socket(id string) *Socket {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.sockets[id]
}

// Sockets returns the connected sockets of this server.
func (n *Namespace) Sockets() []*Socket {
	n.mu.RLock()
	defer n.mu.RUnlock()
	list := make([]*Socket, 0, len(n.sockets))
	for _, s := range n.sockets {
		list = append(list, s)
	}
	return list
}

// Len is the number of connected sockets on this server.
func (n *Namespace) Len() int {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return len(n.sockets)
}

func (n *Namespace) add(s *Socket) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sockets[s.id] = s
}

func (n *Namespace) remove(s *Socket) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sockets[s.id] == s { // not one that has recovered its session already
		delete(n.sockets, s.id)
	}
}

func (n *Namespace) nextAckID() uint64 { return (n.ackIDs.Add(1) - 1) & MaxAckID }

func (n *Namespace) operator() *BroadcastOperator { return &BroadcastOperator{ns: n} }

// To selects the sockets in at least one of rooms.
func (n *Namespace) To(rooms ...string) *BroadcastOperator { return n.operator().To(rooms...) }

// In is To.
func (n *Namespace) In(rooms ...string) *BroadcastOperator { return n.To(rooms...) }

// Except selects all sockets but those in one of rooms.
func (n *Namespace) Except(rooms ...string) *BroadcastOperator { return n.operator().Except(rooms...) }

// Local selects the sockets of this server only.
func (n *Namespace) Local() *BroadcastOperator { return n.operator().Local() }

// Volatile makes the next emit drop the event where the transport is not ready.
func (n *Namespace) Volatile() *BroadcastOperator { return n.operator().Volatile() }

// Compress switches per-message compression of the next emit.
func (n *Namespace) Compress(on bool) *BroadcastOperator { return n.operator().Compress(on) }

// Timeout bounds the wait of EmitWithAck.
func (n *Namespace) Timeout(d time.Duration) *BroadcastOperator { return n.operator().Timeout(d) }

// Emit sends an event to all sockets of the namespace.
func (n *Namespace) Emit(event string, args ...any) error { return n.operator().Emit(event, args...) }

// EmitPrepared sends a prepared event to all sockets of the namespace.
func (n *Namespace) EmitPrepared(p *Prepared) error { return n.operator().EmitPrepared(p) }

// EmitWithAck sends an event to all sockets and collects their acknowledgements:
// see BroadcastOperator.EmitWithAck.
func (n *Namespace) EmitWithAck(ctx context.Context, event string, args ...any) ([]Args, error) {
	return n.operator().EmitWithAck(ctx, event, args...)
}

// AllSockets are the ids of all sockets of the namespace, on all servers.
func (n *Namespace) AllSockets(ctx context.Context) ([]string, error) {
	return n.operator().AllSockets(ctx)
}

// FetchSockets describes all sockets of the namespace, on all servers.
func (n *Namespace) FetchSockets(ctx context.Context) ([]*RemoteSocket, error) {
	return n.operator().FetchSockets(ctx)
}

// SocketsJoin makes all sockets join rooms.
func (n *Namespace) SocketsJoin(rooms ...string) error { return n.operator().SocketsJoin(rooms...) }

// SocketsLeave makes all sockets leave rooms.
func (n *Namespace) SocketsLeave(rooms ...string) error { return n.operator().SocketsLeave(rooms...) }

// DisconnectSockets disconnects all sockets; close closes their connections too.
func (n *Namespace) DisconnectSockets(close bool) error { return n.operator().DisconnectSockets(close) }

// ServerSideEmit sends an event to the other servers of the cluster, where it fires handlers
// of OnServerSide. Binaries are allowed as far as the adapter carries them.
func (n *Namespace) ServerSideEmit(event string, args ...any) error {
	a, err := n.serverSideArgs(event, args)
	if err != nil {
		return err
	}
	return n.adapter.ServerSideEmit(event, a)
}

// ServerSideEmitWithAck sends it and collects one answer of each other server. When ctx ends
// before, it returns those that came, and ErrAckTimeout.
func (n *Namespace) ServerSideEmitWithAck(ctx context.Context, event string, args ...any) ([]Args, error) {
	a, err := n.serverSideArgs(event, args)
	if err != nil {
		return nil, err
	}
	return n.adapter.ServerSideEmitWithAck(ctx, event, a)
}

func (n *Namespace) serverSideArgs(event string, args []any) (Args, error) {
	switch event {
	case "connect", "connection", "new_namespace":
		return Args{}, ErrReservedEvent
	}
	return encodeArgs(args, n.server.opts.MaxAttachments)
}

// HandleServerSide fires the handlers of an event of another server. For adapters. ack is
// nil when no answer is wanted. A panic in a handler is logged.
func (n *Namespace) HandleServerSide(event string, args Args, ack func(args ...any) error) {
	for _, f := range n.handlers.load().serverSide[event] {
		n.server.guard("server side handler", func() { f(args, ack) })
	}
}

// RangeDetails describes the local sockets that opts select. For adapters.
func (n *Namespace) RangeDetails(opts *BroadcastOptions) ([]SocketDetails, error) {
	var list []SocketDetails
	var failed error
	n.adapter.Range(opts, func(s *Socket) bool {
		var d SocketDetails
		if d, failed = s.details(); failed != nil {
			return false
		}
		list = append(list, d)
		return true
	})
	return list, failed
}

func (s *Socket) details() (SocketDetails, error) {
	hs, err := json.Marshal(s.Handshake())
	if err != nil {
		return SocketDetails{}, err
	}
	data, err := marshalNoEscape(s.Data())
	if err != nil {
		return SocketDetails{}, err
	}
	return SocketDetails{ID: s.id, Handshake: hs, Rooms: s.Rooms(), Data: data}, nil
}
