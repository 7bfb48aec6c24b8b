package socketio

import "encoding/json"

// socketHandlers are the handlers of one socket. A set is never changed but replaced, so that
// the reader takes no lock; a socket without handlers of its own has none.
type socketHandlers struct {
	events        []socketHandler
	any           []func(*Event)
	anyOut        []func(event string, args Args)
	use           []func(*Event) error
	disconnecting []func(reason string)
	disconnect    []func(reason string)
	errors        []func(error)
}

type socketHandler struct {
	event string
	fn    func(*Event)
	once  *bool // not nil for Once; true when it has run; touched by the reader only
}

func (s *Socket) changeHandlers(f func(h *socketHandlers)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var h socketHandlers
	if old := s.handlers.Load(); old != nil {
		h = *old
	}
	f(&h)
	s.handlers.Store(&h)
}

// On adds a handler of an event. Handlers of one connection run in order, on its reader: while
// one blocks, that connection is not read. To answer later, keep the Event.
func (s *Socket) On(event string, h func(*Event)) {
	s.changeHandlers(func(hs *socketHandlers) {
		hs.events = extended(hs.events, socketHandler{event: event, fn: h})
	})
}

// Once adds a handler of the next such event only.
func (s *Socket) Once(event string, h func(*Event)) {
	s.changeHandlers(func(hs *socketHandlers) {
		hs.events = extended(hs.events, socketHandler{event: event, fn: h, once: new(bool)})
	})
}

// Off removes the socket's handlers of an event (those of Namespace.Handle stay).
func (s *Socket) Off(event string) {
	s.changeHandlers(func(hs *socketHandlers) { hs.events = without(hs.events, event) })
}

func without(list []socketHandler, event string) []socketHandler {
	kept := make([]socketHandler, 0, len(list))
	for _, h := range list {
		if h.event != event && (h.once == nil || !*h.once) {
			kept = append(kept, h)
		}
	}
	return kept
}

// OnAny adds a handler of all events. It runs before Use and the handlers of the event.
func (s *Socket) OnAny(h func(*Event)) {
	s.changeHandlers(func(hs *socketHandlers) { hs.any = extended(hs.any, h) })
}

// PrependAny is OnAny at the front.
func (s *Socket) PrependAny(h func(*Event)) {
	s.changeHandlers(func(hs *socketHandlers) { hs.any = append([]func(*Event){h}, hs.any...) })
}

// OffAny removes all handlers of OnAny.
func (s *Socket) OffAny() { s.changeHandlers(func(hs *socketHandlers) { hs.any = nil }) }

// OnAnyOutgoing adds a handler of all events that are sent to this socket, broadcasts included,
// called by whoever sends. Acknowledgements are not events. args are valid during the call.
func (s *Socket) OnAnyOutgoing(h func(event string, args Args)) {
	s.changeHandlers(func(hs *socketHandlers) { hs.anyOut = extended(hs.anyOut, h) })
}

// OffAnyOutgoing removes all handlers of OnAnyOutgoing.
func (s *Socket) OffAnyOutgoing() { s.changeHandlers(func(hs *socketHandlers) { hs.anyOut = nil }) }

// Use adds a middleware of the socket's events: an error drops the event and goes to the
// handlers of OnError. The client is told nothing, unless f acknowledges the event.
func (s *Socket) Use(f func(ev *Event) error) {
	s.changeHandlers(func(hs *socketHandlers) { hs.use = extended(hs.use, f) })
}

// OnError adds a handler of errors of this socket: what Use returned, and malformed packets
// (ErrMalformed), after which the connection is closed.
func (s *Socket) OnError(f func(err error)) {
	s.changeHandlers(func(hs *socketHandlers) { hs.errors = extended(hs.errors, f) })
}

// OnDisconnecting adds a handler that runs once when the socket is going, while it is still in
// its rooms. Handlers of disconnection run on the goroutine that noticed it, the reader or the
// one that called Disconnect; never before handlers of OnConnection have returned, so what these
// register is called.
func (s *Socket) OnDisconnecting(f func(reason string)) {
	s.changeHandlers(func(hs *socketHandlers) { hs.disconnecting = extended(hs.disconnecting, f) })
}

// OnDisconnect adds a handler that runs once when the socket has left all rooms. The reasons
// are Node's: "client namespace disconnect", "server namespace disconnect", "transport close",
// "transport error", "ping timeout", "parse error", "forced close", "forced server close",
// "server shutting down"; and "slow consumer".
func (s *Socket) OnDisconnect(f func(reason string)) {
	s.changeHandlers(func(hs *socketHandlers) { hs.disconnect = extended(hs.disconnect, f) })
}

func (s *Socket) notifyOutgoing(h *socketHandlers, event string, data json.RawMessage, bin [][]byte) {
	items, err := splitArray(data, nil, maxOwnDepth)
	if err != nil || len(items) == 0 {
		return // PrepareRaw was given something that is no JSON
	}
	args := Args{list: items[1:], bin: bin}
	for _, f := range h.anyOut {
		s.client.guard("handler", func() { f(event, args) })
	}
}

// onEvent handles an event packet, on the reader.
func (s *Socket) onEvent(p *Packet) {
	if len(p.Items) == 0 {
		return // as in Node, an event without any payload is nobody's
	}
	set, own := s.ns.handlers.load(), s.handlers.Load()
	ev := &Event{socket: s, id: p.ID, hasID: p.HasID}
	ev.args = Args{list: append(ev.inline[:0], p.Items[1:]...), bin: p.Attachments}
	shared := findShared(set, p.Items[0], ev)
	s.ns.server.hookEventIn(s.ns.name, ev.name)
	defer s.recoverEvent(ev)
	if own != nil && !s.admit(own, ev) {
		return
	}
	if s.state.Load() != stateConnected {
		return
	}
	handled := false
	if shared != nil {
		handled = true
		for _, f := range shared.fns {
			f(ev)
		}
	}
	// a middleware may have added handlers
	if own = s.handlers.Load(); own != nil && s.runOwn(own, ev) {
		handled = true
	}
	if !handled && set.unknown != nil {
		set.unknown(ev)
	}
}

// findShared finds the namespace's handlers and sets the event's name: without making a
// string of the name when there are some.
func findShared(set *handlerSet, rawName []byte, ev *Event) *eventHandlers {
	name := rawName
	if name[0] == '"' {
		name = name[1 : len(name)-1]
	}
	if h := set.events[string(name)]; h != nil {
		ev.name = h.name
		return h
	}
	ev.name = eventName(rawName)
	return set.events[ev.name] // the raw name may hold escapes
}

// admit runs the catch-all handlers and the middlewares.
func (s *Socket) admit(own *socketHandlers, ev *Event) bool {
	for _, f := range own.any {
		f(ev)
	}
	for _, f := range own.use {
		if err := f(ev); err != nil {
			s.onError(err)
			return false
		}
	}
	return true
}

func (s *Socket) runOwn(own *socketHandlers, ev *Event) (handled bool) {
	ran := false
	for i := range own.events {
		h := &own.events[i]
		if h.event != ev.name || (h.once != nil && *h.once) {
			continue
		}
		handled = true
		if h.once != nil {
			*h.once, ran = true, true
		}
		h.fn(ev)
	}
	if ran {
		s.changeHandlers(func(hs *socketHandlers) { hs.events = without(hs.events, "") })
	}
	return handled
}

func (s *Socket) onError(err error) {
	if h := s.handlers.Load(); h != nil {
		for _, f := range h.errors {
			s.client.guard("handler", func() { f(err) })
		}
	}
}

// recoverEvent is deferred around the handlers of an event: after a panic the client gets an
// answer, if it waits for one, and then its connection ends.
func (s *Socket) recoverEvent(ev *Event) {
	v := recover()
	if v == nil {
		return
	}
	s.client.panicked("handler", v, func() {
		if ev.hasID && !ev.acked.Load() {
			_ = ev.Ack(s.ns.server.opts.PanicAck...) // fails only if the connection is gone
		}
	})
}
