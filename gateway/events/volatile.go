package events

import (
	"context"
	"strings"
	"time"

	"xabar/chat"
	"xabar/gateway/socketio"
)

// maxTyped bounds the conversations of one socket whose last typing is remembered;
// a socket that types in more of them at once is forgotten and starts anew.
const maxTyped = 256

// typing lets through at most one event per interval and conversation. It has no
// answer: what is wrong with it is dropped, like anything volatile.
func (c *client) typing(e *socketio.Event) {
	req, err := decode[struct {
		ConversationID *string `json:"conversationId"`
	}](e)
	if err != nil {
		return
	}
	id, err := conversationID(req.ConversationID)
	if err != nil || !c.mayType(id, time.Now()) {
		return
	}
	// The service may have to ask the store once; a busy socket's typing is dropped.
	select {
	case c.slots <- struct{}{}:
	default:
		return
	}
	c.hub.reads.run(func() {
		defer func() { <-c.slots }()
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		if err := c.hub.service.Typing(ctx, c.caller(), id); err != nil {
			c.hub.log.Debug("typing was dropped", "socket", c.socket.ID(), "error", err)
		}
	})
}

func (c *client) mayType(conversation chat.ID, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, ok := c.typed[conversation]; ok && now.Sub(last) < chat.TypingInterval {
		return false
	}
	if c.typed == nil || len(c.typed) >= maxTyped {
		c.typed = map[chat.ID]time.Time{}
	}
	c.typed[conversation] = now
	return true
}

type typingPayload struct {
	ConversationID chat.ID `json:"conversationId"`
	UserID         chat.ID `json:"userId"`
	ExpiresInMs    int64   `json:"expiresInMs"`
}

// typing shows it to the other members' sockets of this node.
func (h *Hub) typing(e chat.TypingStarted) {
	var rooms []string
	if e.MemberIDs == nil {
		rooms = []string{conversationRoom(e.ConversationID)}
	}
	for _, member := range e.MemberIDs {
		if member != e.UserID {
			rooms = append(rooms, userRoom(member))
		}
	}
	err := h.ns.To(rooms...).Except(userRoom(e.UserID)).Local().Volatile().
		Emit("typing", typingPayload{e.ConversationID, e.UserID, chat.TypingExpires.Milliseconds()})
	if err != nil {
		h.log.Warn("typing was not sent", "error", err)
	}
}

type presenceRequest struct {
	UserIDs []chat.UserRef `json:"userIds"`
}

type presenceItem struct {
	UserID     string     `json:"userId"`
	Online     bool       `json:"online"`
	LastSeenAt *chat.Time `json:"lastSeenAt"`
}

type presenceAnswer struct {
	Presence []presenceItem `json:"presence"`
}

// presence answers, and from then on the socket hears changes of those users
// instead of any before. Whom the caller may not see is named as it was asked for.
func (c *client) presence(ctx context.Context, req presenceRequest) (presenceAnswer, error) {
	found, err := c.hub.service.Presence(ctx, c.caller(), req.UserIDs)
	if err != nil {
		return presenceAnswer{}, err
	}
	items := make([]presenceItem, len(found))
	rooms := make([]string, 0, len(found))
	for i, one := range found {
		items[i].UserID = string(one.Ref)
		if one.Visible {
			items[i] = presenceItem{one.State.UserID.String(), one.State.Online, one.State.LastSeenAt}
			rooms = append(rooms, presenceRoom(one.State.UserID))
		}
	}
	return presenceAnswer{items}, c.watchPresence(rooms)
}

// watchPresence puts the socket into the rooms of those users instead of the ones
// before.
func (c *client) watchPresence(rooms []string) error {
	c.mu.Lock()
	before := c.watch
	c.watch = rooms
	c.mu.Unlock()
	for _, room := range before {
		c.socket.Leave(room)
	}
	if len(rooms) == 0 {
		return nil
	}
	return c.socket.Join(rooms...)
}

// Watched are the users whose presence somebody hears here.
func (h *Hub) Watched() []chat.ID {
	local, ok := h.ns.Adapter().(interface{ Rooms() []string })
	if !ok {
		return nil
	}
	var users []chat.ID
	for _, room := range local.Rooms() {
		if text, ok := strings.CutPrefix(room, presencePrefix); ok {
			if id, ok := chat.UserRef(text).ID(); ok {
				users = append(users, id)
			}
		}
	}
	return users
}

func (h *Hub) presenceChanged(e chat.PresenceChanged) {
	if err := h.ns.To(presenceRoom(e.UserID)).Local().Emit("presence", e.PresenceState); err != nil {
		h.log.Warn("presence was not sent", "error", err)
	}
}
