package events

import (
	"sync"
	"time"

	"xabar/chat"
	"xabar/gateway/socketio"
)

// maxTypingEnds bounds the users whose typing is to be ended; beyond it dialects that
// want to be told of the end are not told of the beginning either.
const maxTypingEnds = 1 << 14

// typingEnds tells dialects when a user has stopped typing: their clients know no time
// after which they drop it by themselves. Timers run only while somebody types.
type typingEnds struct {
	mu     sync.Mutex // guards the fields below
	timers map[typingEnd]*time.Timer
	closed bool
}

type typingEnd struct{ conversation, user chat.ID }

// start ends the user's typing after chat.TypingExpires, counted from the last call. It
// says whether there was room.
func (t *typingEnds) start(key typingEnd, end func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if timer := t.timers[key]; timer != nil && timer.Stop() {
		timer.Reset(chat.TypingExpires)
		return true
	}
	if t.closed || len(t.timers) >= maxTypingEnds {
		return false
	}
	if t.timers == nil {
		t.timers = map[typingEnd]*time.Timer{}
	}
	t.timers[key] = time.AfterFunc(chat.TypingExpires, end)
	return true
}

// stop says whether the user was typing.
func (t *typingEnds) stop(key typingEnd) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	timer := t.timers[key]
	if timer == nil {
		return false
	}
	timer.Stop()
	delete(t.timers, key)
	return true
}

func (t *typingEnds) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, timer := range t.timers {
		timer.Stop()
	}
	t.timers = nil
}

// dialectsEndTyping says whether some dialect is told of the end.
func (h *Hub) dialectsEndTyping() bool {
	for _, v := range h.views {
		if v.d.Server["typing:ended"] != nil {
			return true
		}
	}
	return false
}

type typingEndedPayload struct {
	ConversationID chat.ID `json:"conversationId"`
	UserID         chat.ID `json:"userId"`
}

// endTyping tells dialects that the user has stopped, because the time is over or a
// message has come.
func (h *Hub) endTyping(conversation, user chat.ID, pair []chat.ID) {
	if !h.ends.stop(typingEnd{conversation, user}) {
		return
	}
	opts := othersRooms(conversation, user, pair)
	h.announceTo(h.clientsOf(&opts, func(v *view) bool { return v == nil || v.hides(pair) }, "typing:ended"),
		false, "typing:ended", typingEndedPayload{conversation, user})
}

// othersRooms selects the other members of a direct conversation, or of a group (pair is
// nil).
func othersRooms(conversation, user chat.ID, pair []chat.ID) socketio.BroadcastOptions {
	opts := socketio.BroadcastOptions{Except: []string{userRoom(user)}}
	if pair == nil {
		opts.Rooms = []string{conversationRoom(conversation)}
	}
	for _, member := range pair {
		if member != user {
			opts.Rooms = append(opts.Rooms, userRoom(member))
		}
	}
	return opts
}
