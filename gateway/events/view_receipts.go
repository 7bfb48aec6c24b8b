package events

import (
	"context"

	"xabar/chat"
	"xabar/gateway/dialect"
	"xabar/gateway/socketio"
)

// maxReceipts bounds how many messages a single move of a position is told of, the
// newest ones: dialects have an event for each message, not for all up to one.
const maxReceipts = 1000

// receiptQueue are the moves of one conversation's positions that dialects are still to
// be told of, behind the one whose messages are being read: one of each user and kind,
// so that there are few.
type receiptQueue struct{ moves []chat.PositionMoved }

func (q *receiptQueue) add(e *chat.PositionMoved) {
	for i := range q.moves {
		if m := &q.moves[i]; m.UserID == e.UserID && m.Kind == e.Kind {
			m.Seq, m.At = max(m.Seq, e.Seq), e.At
			return
		}
	}
	q.moves = append(q.moves, *e)
}

// tellReceipts tells the senders of the messages that a position has passed, in order.
// The messages are read in the pool.
func (w *worker) tellReceipts(e *chat.PositionMoved) {
	if q := w.telling[e.ConversationID]; q != nil {
		q.add(e)
		return
	}
	w.telling[e.ConversationID] = &receiptQueue{}
	w.startTelling(*e)
}

func (w *worker) startTelling(e chat.PositionMoved) {
	h := w.hub
	h.reads.run(func() {
		if err := h.tell(&e); err != nil {
			h.log.Warn("receipts were not sent; history has them", "conversation", e.ConversationID, "error", err)
		}
		if err := h.post(context.Background(), e.ConversationID, job{do: func(w *worker) { w.tellNext(e.ConversationID) }}); err != nil {
			h.log.Debug("receipts end with the hub", "error", err)
		}
	})
}

func (w *worker) tellNext(conversation chat.ID) {
	q := w.telling[conversation]
	if len(q.moves) == 0 {
		delete(w.telling, conversation)
		return
	}
	next := q.moves[0]
	q.moves = q.moves[1:]
	w.startTelling(next)
}

// tell reads the messages page by page and tells of each.
func (h *Hub) tell(e *chat.PositionMoved) error {
	clients := h.receiptClients(e)
	for from := max(e.Old, e.Seq-maxReceipts) + 1; from <= e.Seq && len(clients) > 0; from += chat.PageLimit {
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		messages, err := h.service.MessagesBetween(ctx, e.ConversationID, from, min(e.Seq, from+chat.PageLimit-1))
		for i := range messages {
			if m := &messages[i]; err == nil && m.SenderID != e.UserID {
				err = h.tellOne(ctx, e, m, clients[m.SenderID])
			}
		}
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// receiptEvent is the standard name of what has happened.
func receiptEvent(e *chat.PositionMoved) string {
	if e.Kind == chat.Read {
		return "message:read"
	}
	return "message:delivered"
}

// receiptClients are the members' clients whose dialect is told of it, by user.
func (h *Hub) receiptClients(e *chat.PositionMoved) map[chat.ID][]*client {
	clients := map[chat.ID][]*client{}
	h.members(e.ConversationID, e.MemberIDs, func(c *client) {
		if c.view.told(e) && c.user.ID != e.UserID && c.live.Load() {
			clients[c.user.ID] = append(clients[c.user.ID], c)
		}
	})
	return clients
}

// told says whether the view's dialect is told of such a move at all.
func (v *view) told(e *chat.PositionMoved) bool {
	return v != nil && v.d.Server[receiptEvent(e)] != nil && !v.hides(e.MemberIDs)
}

func (h *Hub) tellOne(ctx context.Context, e *chat.PositionMoved, m *chat.Message, clients []*client) error {
	prepared := map[*view]*socketio.Prepared{}
	for _, c := range clients {
		p := prepared[c.view]
		if p == nil {
			var err error
			if p, err = c.view.prepareReceipt(ctx, e, m); err != nil {
				return err
			}
			prepared[c.view] = p
		}
		if _, err := c.socket.EmitPrepared(p); err != nil {
			h.log.Debug("a receipt was not sent", c.who(), "error", err)
		}
	}
	return nil
}

func (v *view) prepareReceipt(ctx context.Context, e *chat.PositionMoved, m *chat.Message) (*socketio.Prepared, error) {
	event := v.d.Server[receiptEvent(e)]
	message := &dialect.Message{Message: *m}
	values := dialect.Values{
		"message": message, "conversationId": e.ConversationID.String(), "seq": m.Seq, "at": e.At, "user": nil,
	}
	if event.Needs()&dialect.NeedUsers != 0 {
		users, err := v.hub.names.find(ctx, e.UserID)
		if err != nil {
			return nil, err
		}
		values["user"] = users[e.UserID]
		if err := v.hub.dressUsers(ctx, e.MemberIDs, []*dialect.Message{message}); err != nil {
			return nil, err
		}
	}
	args, err := event.Args(v.d, values)
	if err != nil {
		return nil, err
	}
	return v.ns.PrepareRaw(event.Name, nil, args)
}
