package events

import (
	"context"
	"slices"
	"sync"
	"time"

	"xabar/chat"
)

// repairMargin is how much longer than the outage a repair looks back: clocks of
// nodes differ, and an event may have been lost a moment before anybody noticed.
const repairMargin = 10 * time.Second

// Repair shows every socket of this node the messages that were stored since then
// by other nodes, and whose events may not have arrived. Positions are no measure
// for it: another device of the user, on another node, may have acknowledged what
// the sockets here have missed. A message that was shown is not shown again, and
// none to a socket that came after it was stored: such a socket was caught up.
func (h *Hub) Repair(since time.Time) {
	since = since.Add(-repairMargin)
	var mu sync.Mutex
	seen := map[chat.ID]bool{}
	first := func(conversation chat.ID) bool {
		mu.Lock()
		defer mu.Unlock()
		before := seen[conversation]
		seen[conversation] = true
		return !before
	}
	for _, user := range h.users.ids() {
		h.reads.run(func() { h.repairUser(user, since, first) })
	}
}

// repairUser repairs the conversations of a user that were active since then.
func (h *Hub) repairUser(user chat.ID, since time.Time, first func(chat.ID) bool) {
	h.unread.changed(user)
	actor := chat.Actor{User: chat.User{ID: user}}
	page := chat.PageRequest{}
	for {
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		list, err := h.service.Conversations(ctx, actor, page)
		cancel()
		if err != nil {
			h.log.Warn("a user's sockets could not be repaired; they are closed and come back", "error", err)
			for _, c := range h.users.get(user) {
				c.socket.Conn().Close()
			}
			return
		}
		for i := range list.Conversations {
			c := &list.Conversations[i]
			if c.UpdatedAt.Before(since) {
				return
			}
			if c.LastSeq > 0 && first(c.ID) {
				h.repairConversation(user, c, since)
			}
		}
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			return
		}
	}
}

// repairConversation has the conversation's worker show what it has not shown up to
// the seq that is the last one now.
func (h *Hub) repairConversation(user chat.ID, c *chat.Conversation, since time.Time) {
	r := &repair{hub: h, conversation: c.ID, kind: c.Kind, memberCount: c.MemberCount, upTo: c.LastSeq, since: since}
	if c.Kind == chat.Direct && c.Peer != nil {
		r.members = []chat.ID{user, c.Peer.ID}
	}
	r.post(func(w *worker) {
		if last := w.stream(r.conversation).last; last > 0 {
			r.read(last + 1)
		} else {
			r.readBack(r.upTo, chat.PageLimit)
		}
	})
}

// repair reads a conversation from the store and shows what was not shown.
type repair struct {
	hub          *Hub
	conversation chat.ID
	kind         chat.Kind
	members      []chat.ID // of a direct conversation
	memberCount  int
	upTo         int64
	since        time.Time     // of a conversation that this node has shown nothing of: how far back to go
	done         func(*stream) // called on the worker in the end, also after a failure; may be nil
}

func (r *repair) post(do func(*worker)) {
	if err := r.hub.post(context.Background(), r.conversation, job{do: do}); err != nil {
		r.hub.log.Debug("a repair ends with the hub", "error", err)
	}
}

// between reads in the pool.
func (r *repair) between(from, upTo int64, then func([]chat.Message)) {
	r.hub.reads.run(func() {
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		messages, err := r.hub.service.MessagesBetween(ctx, r.conversation, from, upTo)
		if err != nil {
			r.hub.log.Warn("a conversation could not be read", "conversation", r.conversation, "error", err)
			r.post(func(w *worker) { r.end(w.stream(r.conversation)) })
			return
		}
		then(messages)
	})
}

// end lets go of the stream. A gap that was not filled is looked at again.
func (r *repair) end(s *stream) {
	s.since = time.Now()
	if r.done != nil {
		r.done(s)
	}
}

// readBack looks for the first message since then, page by page.
func (r *repair) readBack(upTo, page int64) {
	from := max(1, upTo-page+1)
	r.between(from, upTo, func(messages []chat.Message) {
		lately := slices.IndexFunc(messages, func(m chat.Message) bool { return !m.CreatedAt.Before(r.since) })
		switch {
		case lately < 0:
			r.read(upTo + 1)
		case lately == 0 && from > 1:
			r.readBack(from-1, chat.PageLimit)
		default:
			r.read(messages[lately].Seq)
		}
	})
}

// read shows a page from the seq on, and then the next.
func (r *repair) read(from int64) {
	if from > r.upTo {
		r.post(func(w *worker) {
			s := w.stream(r.conversation)
			s.last = max(s.last, r.upTo)
			r.end(s)
			w.emitBehind(s)
		})
		return
	}
	upTo := min(r.upTo, from+chat.PageLimit-1)
	r.between(from, upTo, func(messages []chat.Message) {
		r.post(func(w *worker) { r.show(w, messages, upTo) })
	})
}

func (r *repair) show(w *worker, messages []chat.Message, upTo int64) {
	s := w.stream(r.conversation)
	for i := range messages {
		if m := &messages[i]; m.Seq > s.last {
			w.emitNext(s, &chat.MessageStored{
				Message: *m, Kind: r.kind, MemberIDs: r.members, MemberCount: r.memberCount, JSON: m.AppendJSON(nil),
			}, true)
		}
	}
	s.last = max(s.last, upTo)
	r.read(upTo + 1)
}
