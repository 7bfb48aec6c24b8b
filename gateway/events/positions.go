package events

import (
	"context"
	"errors"

	"xabar/chat"
	"xabar/gateway/socketio"
)

// positionMoved tells the other members and the user's own other devices, behind
// the messages that the position speaks of. Large groups hear nothing: there
// `receipts` answers.
func (w *worker) positionMoved(e *chat.PositionMoved) {
	h := w.hub
	if e.Kind == chat.Read {
		h.unread.changed(e.UserID)
	} else if claim, ok := h.gaps.reached(gapKey{e.UserID, e.ConversationID}, e.Seq); ok {
		h.claimKept(gapKey{e.UserID, e.ConversationID}, claim)
	}
	if e.MemberCount > chat.ReceiptMembers {
		return
	}
	if e.MemberIDs != nil {
		w.tellPair(e)
	} else {
		w.tellGroup(e)
	}
}

func (w *worker) tellPair(e *chat.PositionMoved) {
	n := positionNews{w: w, e: e}
	for _, member := range e.MemberIDs {
		for _, c := range w.hub.users.get(member) {
			n.to(c)
		}
	}
	n.end()
}

func (w *worker) tellGroup(e *chat.PositionMoved) {
	n := positionNews{w: w, e: e}
	w.hub.members(e.ConversationID, nil, n.to)
	n.end()
}

// positionNews tells one socket after the other of a position. It encodes when the first one
// takes it.
type positionNews struct {
	w        *worker
	e        *chat.PositionMoved
	prepared *socketio.Prepared
	broken   bool // it could not be encoded
	told     bool // a dialect is to be told
	sockets  int
	span     chat.Span
}

func (n *positionNews) to(c *client) {
	h, e := n.w.hub, n.e
	if c.view != nil {
		n.told = n.told || c.user.ID != e.UserID && c.view.told(e)
		return
	}
	if c.socket.ID() == e.OriginSocket || !c.live.Load() || n.broken {
		return
	}
	if n.prepared == nil {
		n.span = h.tracePosition(e)
		var err error
		if n.prepared, err = h.ns.PrepareRaw(receiptEvent(e), nil, e.AppendJSON(make([]byte, 0, 160))); err != nil {
			h.log.Error("a position could not be encoded", "error", err)
			n.broken = true
			return
		}
	}
	if _, err := c.socket.EmitPrepared(n.prepared); err != nil {
		h.log.Debug("a position was not sent", c.who(), "error", err)
	}
	n.sockets++
}

func (n *positionNews) end() {
	if n.span != nil {
		n.span.Int("xabar.sockets", int64(n.sockets))
		n.span.End(nil)
	}
	if n.told {
		n.w.tellReceipts(n.e)
	}
}

// members calls f for each client of a conversation's members on this node.
func (h *Hub) members(conversation chat.ID, pair []chat.ID, f func(*client)) {
	if pair != nil {
		for _, member := range pair {
			for _, c := range h.users.get(member) {
				f(c)
			}
		}
		return
	}
	h.rangeRooms(&socketio.BroadcastOptions{Rooms: []string{conversationRoom(conversation)}}, f)
}

type leftPayload struct {
	ConversationID chat.ID `json:"conversationId"`
}

// conversationChanged moves sockets in and out of a group's room at once, in order
// with the messages, and then shows each member its own view.
func (w *worker) conversationChanged(e *chat.ConversationChanged) {
	h := w.hub
	room := conversationRoom(e.ConversationID)
	for _, user := range e.Left {
		for _, c := range h.users.get(user) {
			c.mu.Lock()
			if !c.ready {
				if c.left == nil {
					c.left = map[chat.ID]bool{}
				}
				c.left[e.ConversationID] = true
			}
			c.unhold(e.ConversationID)
			c.mu.Unlock()
			c.socket.Leave(room)
			c.emit("conversation:left", leftPayload{e.ConversationID})
		}
		h.unread.changed(user)
	}
	users := map[chat.ID]bool{}
	for _, user := range e.UserIDs {
		users[user] = true
	}
	if e.UserIDs == nil {
		h.members(e.ConversationID, nil, func(c *client) { users[c.user.ID] = true })
	}
	for _, user := range e.Joined {
		users[user] = true
	}
	for user := range users {
		if clients := h.users.get(user); len(clients) > 0 {
			h.showConversation(e, user, clients)
		}
	}
}

// showConversation puts a new member's sockets into a group's room and sends a
// user the conversation as that user sees it.
func (h *Hub) showConversation(e *chat.ConversationChanged, user chat.ID, clients []*client) {
	for _, joined := range e.Joined {
		if joined != user {
			continue
		}
		for _, c := range clients {
			if err := c.socket.Join(conversationRoom(e.ConversationID)); err != nil && !errors.Is(err, socketio.ErrDisconnected) {
				h.log.Warn("a socket could not join a conversation", c.who(), "error", err)
			}
			h.hearGroup(c, e.ConversationID)
		}
		h.unread.changed(user)
	}
	conversation := e.ConversationID
	h.reads.run(func() {
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		view, err := h.service.Conversation(ctx, user, conversation)
		if err != nil {
			h.log.Debug("a changed conversation was not shown", "error", err)
			return
		}
		for _, c := range h.users.get(user) {
			c.emit("conversation", view)
		}
	})
}
