package socketio

import (
	"sync"
	"sync/atomic"
)

// handlerSet is what a namespace runs. A set is never changed: handlerTable replaces it, so
// that readers take no lock.
type handlerSet struct {
	middleware []func(*Socket) error
	connection []func(*Socket)
	disconnect []func(*Socket, string)
	events     map[string]*eventHandlers
	unknown    func(*Event)
	serverSide map[string][]func(Args, func(...any) error)
}

// eventHandlers are the handlers of one event; name saves making a string of the bytes on the wire.
type eventHandlers struct {
	name string
	fns  []func(*Event)
}

type handlerTable struct {
	mu  sync.Mutex // serialises writers
	set atomic.Pointer[handlerSet]
}

var noHandlers handlerSet

func (t *handlerTable) load() *handlerSet {
	if h := t.set.Load(); h != nil {
		return h
	}
	return &noHandlers
}

func (t *handlerTable) change(f func(h *handlerSet)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := *t.load()
	f(&h)
	t.set.Store(&h)
}

// extended returns a copy of list with v behind it.
func extended[T any](list []T, v T) []T {
	return append(list[:len(list):len(list)], v)
}

func cloneMap[K comparable, V any](m map[K]V) map[K]V {
	c := make(map[K]V, len(m)+1)
	for k, v := range m {
		c[k] = v
	}
	return c
}

func (t *handlerTable) use(f func(*Socket) error) {
	t.change(func(h *handlerSet) { h.middleware = extended(h.middleware, f) })
}

func (t *handlerTable) onConnection(f func(*Socket)) {
	t.change(func(h *handlerSet) { h.connection = extended(h.connection, f) })
}

func (t *handlerTable) onDisconnect(f func(*Socket, string)) {
	t.change(func(h *handlerSet) { h.disconnect = extended(h.disconnect, f) })
}

func (t *handlerTable) handle(event string, f func(*Event)) {
	t.change(func(h *handlerSet) {
		h.events = cloneMap(h.events)
		var old []func(*Event)
		if e := h.events[event]; e != nil {
			old = e.fns
		}
		h.events[event] = &eventHandlers{name: event, fns: extended(old, f)}
	})
}

func (t *handlerTable) handleUnknown(f func(*Event)) {
	t.change(func(h *handlerSet) { h.unknown = f })
}

func (t *handlerTable) onServerSide(event string, f func(Args, func(...any) error)) {
	t.change(func(h *handlerSet) {
		h.serverSide = cloneMap(h.serverSide)
		h.serverSide[event] = extended(h.serverSide[event], f)
	})
}
