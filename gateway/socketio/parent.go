package socketio

import "encoding/json"

// ParentNamespace is a family of namespaces that are made when clients ask for them, by a
// pattern or a function. What is added to it applies to all its children, those that exist
// already included; Socket.Namespace tells which child a socket is in.
type ParentNamespace struct {
	server   *Server
	allow    func(name string, auth json.RawMessage) (bool, error)
	handlers handlerTable          // what children start with
	children map[string]*Namespace // guarded by server.mu
}

// add changes the handlers of all children, now and later.
func (p *ParentNamespace) add(f func(t *handlerTable)) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	f(&p.handlers)
	for _, ns := range p.children {
		f(&ns.handlers)
	}
}

// Use adds a middleware of all children. See Namespace.Use.
func (p *ParentNamespace) Use(f func(s *Socket) error) {
	p.add(func(t *handlerTable) { t.use(f) })
}

// OnConnection adds a handler of new sockets of all children. See Namespace.OnConnection.
func (p *ParentNamespace) OnConnection(f func(s *Socket)) {
	p.add(func(t *handlerTable) { t.onConnection(f) })
}

// OnDisconnect adds a handler of sockets that leave. See Namespace.OnDisconnect.
func (p *ParentNamespace) OnDisconnect(f func(s *Socket, reason string)) {
	p.add(func(t *handlerTable) { t.onDisconnect(f) })
}

// Handle adds a handler of an event in all children. See Namespace.Handle.
func (p *ParentNamespace) Handle(event string, h func(*Event)) {
	p.add(func(t *handlerTable) { t.handle(event, h) })
}

// HandleUnknown sets the handler of events that have none. See Namespace.HandleUnknown.
func (p *ParentNamespace) HandleUnknown(h func(*Event)) {
	p.add(func(t *handlerTable) { t.handleUnknown(h) })
}

// Children are the namespaces of this server that exist now.
func (p *ParentNamespace) Children() []*Namespace {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	list := make([]*Namespace, 0, len(p.children))
	for _, ns := range p.children {
		list = append(list, ns)
	}
	return list
}

// Emit sends an event to all sockets of all children. The first error is returned.
func (p *ParentNamespace) Emit(event string, args ...any) error {
	var first error
	for _, ns := range p.Children() {
		if err := ns.Emit(event, args...); err != nil && first == nil {
			first = err
		}
	}
	return first
}
