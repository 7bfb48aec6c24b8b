package events

import (
	"context"
	"encoding/json"
	"errors"
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
func (c *client) typing(payload json.RawMessage) {
	req, err := decode[struct {
		ConversationID *string `json:"conversationId"`
	}](payload)
	if err != nil {
		return
	}
	id, err := conversationID(req.ConversationID)
	if err != nil || !c.mayType(typingKey{conversation: id}, time.Now()) {
		return
	}
	c.typeIn(func(context.Context) (chat.ID, error) { return id, nil })
}

// typeIn shows that the caller is typing where says where. The service may have to ask
// the store once; a busy socket's typing is dropped.
func (c *client) typeIn(where func(context.Context) (chat.ID, error)) {
	select {
	case c.slots <- struct{}{}:
	default:
		return
	}
	c.hub.reads.run(func() {
		defer func() { <-c.slots }()
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		id, err := where(ctx)
		if err == nil {
			err = c.hub.service.Typing(ctx, c.caller(), id)
		}
		if err != nil {
			c.hub.log.Debug("typing was dropped", c.who(), "error", err)
		}
	})
}

// typingKey is where a client types: in a conversation, or, as dialects have it, to a
// user.
type typingKey struct {
	conversation chat.ID
	peer         string
}

func (c *client) mayType(where typingKey, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, ok := c.typed[where]; ok && now.Sub(last) < chat.TypingInterval {
		return false
	}
	if c.typed == nil || len(c.typed) >= maxTyped {
		c.typed = map[typingKey]time.Time{}
	}
	c.typed[where] = now
	return true
}

type typingPayload struct {
	ConversationID chat.ID `json:"conversationId"`
	UserID         chat.ID `json:"userId"`
	ExpiresInMs    int64   `json:"expiresInMs"`
}

// typing shows it to the other members' sockets of this node.
func (h *Hub) typing(e chat.TypingStarted) {
	hidden := func(v *view) bool { return v.hides(e.MemberIDs) }
	if h.endsTyping {
		end := func() { h.endTyping(e.ConversationID, e.UserID, e.MemberIDs) }
		if !h.ends.start(typingEnd{e.ConversationID, e.UserID}, end) {
			hidden = func(v *view) bool { return v.hides(e.MemberIDs) || v != nil && v.d.Server["typing:ended"] != nil }
		}
	}
	opts := othersRooms(e.ConversationID, e.UserID, e.MemberIDs)
	opts.Flags.Volatile = true
	h.announce(&opts, hidden, "typing", typingPayload{e.ConversationID, e.UserID, chat.TypingExpires.Milliseconds()})
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
	if err := c.socket.Join(rooms...); !errors.Is(err, socketio.ErrDisconnected) {
		return err
	}
	return nil // who has left meanwhile hears nothing, this answer included
}

// Watched are the users whose presence somebody hears here.
func (h *Hub) Watched() []chat.ID {
	var users []chat.ID
	for _, space := range h.spaces {
		local, ok := space.Adapter().(interface{ Rooms() []string })
		if !ok {
			continue
		}
		for _, room := range local.Rooms() {
			if text, ok := strings.CutPrefix(room, presencePrefix); ok {
				if id, ok := chat.UserRef(text).ID(); ok {
					users = append(users, id)
				}
			}
		}
	}
	return users
}

func (h *Hub) presenceChanged(e chat.PresenceChanged) {
	opts := socketio.BroadcastOptions{Rooms: []string{presenceRoom(e.UserID)}}
	h.announce(&opts, func(*view) bool { return false }, "presence", e.PresenceState)
}
