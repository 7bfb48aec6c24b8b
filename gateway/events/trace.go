package events

import (
	"context"
	"sync"

	"xabar/chat"
	"xabar/gateway/socketio"
)

// trace begins the span of an event that the client has emitted, and is the context of
// what it does; nil: it is not recorded.
func (c *client) trace(ctx context.Context, event string) (context.Context, chat.Span) {
	span := chat.StartSpan(c.hub.cfg.Tracer, nil, chat.ServerSpan, event)
	if span == nil {
		return ctx, nil
	}
	span.ID("xabar.user.id", c.user.ID)
	span.Word("xabar.socket.id", c.socket.ID())
	if c.origin != nil {
		span.Link(c.origin)
	}
	return chat.WithSpan(ctx, span), span
}

// traceConnect begins the span of a handshake, which goes on with a trace of the client's
// if that has sent one, in auth or as a header.
func (h *Hub) traceConnect(s *socketio.Socket, traceparent string) chat.Span {
	if h.cfg.Tracer == nil {
		return nil
	}
	if traceparent == "" {
		traceparent = s.Conn().Handshake().Headers.Get("Traceparent")
	}
	span := h.cfg.Tracer.StartFrom(traceparent, chat.ServerSpan, "connect")
	if span != nil {
		span.Word("xabar.socket.id", s.ID())
	}
	return span
}

// maxTraced bounds the sockets of this node that have a span each for a message.
// Those beyond have one together.
const maxTraced = 16

// emission is what a delivery knows of its spans: one for the message's way to the
// sockets of this node, and in it one for each socket, from the emit to its acknowledgement.
type emission struct {
	span chat.Span

	mu    sync.Mutex             // guards the fields below
	each  map[*client]*recipient // at most maxTraced
	rest  chat.Span              // of those beyond; nil: there are none
	sent  int64                  // sockets that it went to
	asked int64                  // of the rest, that were asked to acknowledge it
	acked int64                  // and of them, that have
}

// recipient is a socket that was asked to acknowledge the message.
type recipient struct {
	span  chat.Span
	ended bool // its time is over, or it has acknowledged
	acked bool
}

// What became of an acknowledgement, as attribute "xabar.ack".
const (
	ackInTime = "in_time"
	ackLate   = "late"
	ackNone   = "none" // not in time
)

// traceEmission is nil for a message that is not recorded.
func (h *Hub) traceEmission(e *chat.MessageStored) *emission {
	span := chat.GoOn(h.cfg.Tracer, e.Trace, chat.InternalSpan, "message.emit")
	if span == nil {
		return nil
	}
	span.ID("xabar.message.id", e.Message.ID)
	span.Int("xabar.message.seq", e.Message.Seq)
	return &emission{span: span, each: map[*client]*recipient{}}
}

// emitting is called before the message goes to a socket: an acknowledgement may come at
// once.
func (t *emission) emitting(c *client, asks bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent++
	switch {
	case !asks:
	case len(t.each) < maxTraced:
		span := t.span.Child(chat.ProducerSpan, "message.deliver")
		span.ID("xabar.user.id", c.user.ID)
		span.Word("xabar.socket.id", c.socket.ID())
		t.each[c] = &recipient{span: span}
	default:
		if t.rest == nil {
			t.rest = t.span.Child(chat.ProducerSpan, "message.deliver.rest")
		}
		t.asked++
	}
}

// refused says that the socket has not taken the message.
func (t *emission) refused(c *client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent--
	if r := t.each[c]; r != nil {
		r.end(ackNone)
	} else {
		t.asked--
	}
}

func (r *recipient) end(ack string) {
	r.span.Word("xabar.ack", ack)
	r.span.End(nil)
	r.ended = true
}

// emitted says that the message has gone to all sockets of this node.
func (t *emission) emitted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.span.Int("xabar.sockets", t.sent)
	t.span.End(nil)
}

// acknowledged is the context of what a socket's acknowledgement leads to.
func (t *emission) acknowledged(ctx context.Context, c *client) context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.each[c]
	switch {
	case r == nil:
		t.acked++
		return ctx // they may be a thousand
	case r.acked:
		return ctx // it says so again
	}
	r.acked = true
	if r.ended {
		late := r.span.Child(chat.InternalSpan, "message.acknowledged")
		late.Word("xabar.ack", ackLate)
		late.End(nil)
		return chat.WithSpan(ctx, late)
	}
	r.end(ackInTime)
	return chat.WithSpan(ctx, r.span)
}

// over ends what still waits for an acknowledgement: their time is over.
func (t *emission) over() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.each {
		if !r.ended {
			r.end(ackNone)
		}
	}
	if t.rest != nil {
		t.rest.Int("xabar.sockets", t.asked)
		t.rest.Int("xabar.acknowledged", t.acked)
		t.rest.End(nil)
		t.rest = nil
	}
}

// tracePosition begins the span of a position's way to the sockets of this node.
func (h *Hub) tracePosition(e *chat.PositionMoved) chat.Span {
	span := chat.GoOn(h.cfg.Tracer, e.Trace, chat.ProducerSpan, "position.emit")
	if span != nil {
		span.Word("xabar.position.kind", e.Kind.String())
		span.ID("xabar.user.id", e.UserID)
		span.Int("xabar.message.seq", e.Seq)
	}
	return span
}
