package events

import (
	"context"

	"xabar/chat"
	"xabar/gateway/dialect"
	"xabar/gateway/socketio"
)

// view is how the sockets of a dialect see the events, in one namespace: what goes to
// them is translated once for each view, not for each socket. A client without a view
// (nil) has the standard events, which pay one look at a pointer for it.
type view struct {
	hub *Hub
	d   *dialect.Dialect
	ns  *socketio.Namespace
}

type viewKey struct {
	d  *dialect.Dialect
	ns *socketio.Namespace
}

// addViews makes the views of every dialect, and serves the namespaces of their own.
func (h *Hub) addViews() {
	h.spaces = []*socketio.Namespace{h.ns}
	h.views = map[viewKey]*view{}
	for _, d := range h.cfg.Dialects.All() {
		h.views[viewKey{d, h.ns}] = &view{h, d, h.ns}
		if d.Namespace == "" {
			continue
		}
		space := h.ns.Server().Of(d.Namespace)
		h.spaces = append(h.spaces, space)
		h.views[viewKey{d, space}] = &view{h, d, space}
		space.Use(h.authenticate)
		space.OnConnection(h.connected)
		space.OnDisconnect(h.disconnected)
		space.HandleUnknown(func(e *socketio.Event) {
			c := clientOf(e.Socket())
			c.view.receive(c, e)
		})
	}
	h.endsTyping = h.dialectsEndTyping()
}

// chooseView finds the view of a socket by what its client asked for, nil for the
// standard events. In a dialect's namespace there is nothing else to ask for. Errors:
// invalid_argument.
func (h *Hub) chooseView(s *socketio.Socket, asked string) (*view, error) {
	own := h.cfg.Dialects.ByNamespace(s.Namespace().Name())
	d, known := h.cfg.Dialects.Get(asked)
	if own != nil {
		if known = asked == "" || d == own; known {
			d = own
		}
	}
	if !known {
		return nil, chat.InvalidArgument("dialect", "there is no dialect %.64q here; there are %s", asked, h.cfg.Dialects.Names())
	}
	if d == nil {
		return nil, nil
	}
	return h.views[viewKey{d, s.Namespace()}], nil
}

// hides says whether the dialect shows nothing of a conversation with these members:
// those of a direct one, or nil.
func (v *view) hides(pair []chat.ID) bool { return v != nil && v.d.DirectOnly && pair == nil }

// catchesUp says whether the view's sockets are caught up by the server.
func (v *view) catchesUp() bool { return v.d.Server["message"] != nil }

// rangeRooms calls f for each client of this node that the options select, in every
// namespace.
func (h *Hub) rangeRooms(opts *socketio.BroadcastOptions, f func(*client)) {
	for _, space := range h.spaces {
		space.Adapter().Range(opts, func(s *socketio.Socket) bool {
			if c := clientOf(s); c != nil {
				f(c)
			}
			return true
		})
	}
}

// announce sends an event that has no place in the order to the clients that the
// options select, but those of whose view hidden says so.
func (h *Hub) announce(opts *socketio.BroadcastOptions, hidden func(*view) bool, event string, payload any) {
	if len(h.views) > 0 {
		h.announceTo(h.clientsOf(opts, hidden, event), opts.Flags.Volatile, event, payload)
		return
	}
	operator := h.ns.To(opts.Rooms...).Except(opts.Except...).Local()
	if opts.Flags.Volatile {
		operator = operator.Volatile()
	}
	if err := operator.Emit(event, payload); err != nil {
		h.log.Warn("an event was not sent", "event", event, "error", err)
	}
}

// clientsOf are the clients that the options select and that are told of the event, by
// view; those without one under nil.
func (h *Hub) clientsOf(opts *socketio.BroadcastOptions, hidden func(*view) bool, event string) map[*view][]*client {
	clients := map[*view][]*client{}
	h.rangeRooms(opts, func(c *client) {
		if !hidden(c.view) && (c.view == nil || c.view.d.Server[event] != nil) {
			clients[c.view] = append(clients[c.view], c)
		}
	})
	return clients
}

// announceTo encodes an event once for each view. What it is in a dialect may have to be
// looked up, in the pool.
func (h *Hub) announceTo(clients map[*view][]*client, volatile bool, event string, payload any) {
	if standard := clients[nil]; len(standard) > 0 {
		prepared, err := h.ns.Prepare(event, nil, payload)
		h.sendAll(standard, prepared, err, event, volatile)
	}
	delete(clients, nil)
	if len(clients) == 0 {
		return
	}
	h.reads.run(func() {
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		for v, list := range clients {
			prepared, err := v.prepare(ctx, chat.Actor{}, event, payload) // no message in it
			h.sendAll(list, prepared, err, event, volatile)
		}
	})
}

func (h *Hub) sendAll(clients []*client, prepared *socketio.Prepared, err error, event string, volatile bool) {
	if err != nil {
		h.log.Warn("an event was not sent", "event", event, "error", err)
		return
	}
	for _, c := range clients {
		send := c.socket.EmitPrepared
		if volatile {
			send = c.socket.Volatile().EmitPrepared
		}
		if _, err := send(prepared); err != nil {
			h.log.Debug("an event was not sent", "event", event, c.who(), "error", err)
		}
	}
}

// prepare encodes a standard event that the dialect is told of.
func (v *view) prepare(ctx context.Context, actor chat.Actor, event string, payload any) (*socketio.Prepared, error) {
	shape := v.d.Server[event]
	values, err := v.hub.announcement(ctx, actor, shape.Needs(), payload)
	if err != nil {
		return nil, err
	}
	args, err := shape.Args(v.d, values)
	if err != nil {
		return nil, err
	}
	return v.ns.PrepareRaw(shape.Name, nil, args)
}

// emit sends one socket an event that wants no acknowledgement, if the dialect has it.
func (v *view) emit(c *client, event string, payload any) {
	if v.d.Server[event] == nil {
		return
	}
	if shown, ok := payload.(chat.Conversation); ok && v.d.DirectOnly && shown.Kind == chat.Group {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	prepared, err := v.prepare(ctx, c.caller(), event, payload)
	v.hub.sendAll([]*client{c}, prepared, err, event, false)
}

// keepsHearing says whether the socket's rooms do not bring along what other nodes
// publish: only those of the main namespace do.
func (h *Hub) keepsHearing(c *client) bool { return c.socket.Namespace() != h.ns }

// hearGroup hears a group that a socket has joined after its beginning.
func (h *Hub) hearGroup(c *client, group chat.ID) {
	if h.cfg.Interest == nil || !h.keepsHearing(c) {
		return
	}
	h.reads.run(func() {
		release, _ := h.hear(context.Background(), nil, []chat.ID{group})
		c.keepHearing(release)
	})
}

// keepHearing keeps what a hold has begun until the socket ends.
func (c *client) keepHearing(release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		release()
		return
	}
	before := c.unhear
	c.unhear = func() {
		release()
		if before != nil {
			before()
		}
	}
}

// withoutHidden leaves out of what is to be caught up what the dialect does not show.
func (c *client) withoutHidden(from map[chat.ID]int64, groups []chat.ID) {
	switch {
	case c.view == nil:
	case !c.view.catchesUp():
		clear(from)
	case c.view.d.DirectOnly:
		for _, id := range groups {
			delete(from, id)
		}
	}
}
