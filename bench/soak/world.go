package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"xabar/bench/soak/check"
	"xabar/chat"
)

// world is who talks to whom, and what was announced.
type world struct {
	mu       sync.Mutex // guards what follows
	byUser   map[int][]chat.ID
	direct   map[[2]int]chat.ID
	faults   *check.Faults
	announce func(position)
	highest  map[announced]int64
}

// position is a position as it is announced.
type position struct {
	ConversationID, UserID chat.ID
	Seq                    int64
	read                   bool
}

type announced struct {
	conversation, user chat.ID
	read               bool
}

func newWorld(faults *check.Faults) *world {
	w := &world{byUser: map[int][]chat.ID{}, direct: map[[2]int]chat.ID{}, faults: faults, highest: map[announced]int64{}}
	w.announce = func(p position) {
		w.mu.Lock()
		defer w.mu.Unlock()
		key := announced{p.ConversationID, p.UserID, p.read}
		w.highest[key] = max(w.highest[key], p.Seq)
	}
	return w
}

// pick chooses a conversation of a user.
func (w *world) pick(user int, rng *rand.Rand) (chat.ID, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.byUser[user]
	if len(list) == 0 {
		return chat.ID{}, false
	}
	return list[rng.IntN(len(list))], true
}

// addDirect adds the conversation of two users; there is one, whoever opens it.
func (w *world) addDirect(id chat.ID, a, b int) {
	pair := [2]int{min(a, b), max(a, b)}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch before, known := w.direct[pair]; {
	case !known:
		w.direct[pair] = id
		w.byUser[a] = append(w.byUser[a], id)
		w.byUser[b] = append(w.byUser[b], id)
	case before != id:
		w.faults.Add(check.Doubled, "users %d and %d have the direct conversations %s and %s", a, b, before, id)
	}
}

func (w *world) addGroup(id chat.ID, members []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range members {
		w.byUser[m] = append(w.byUser[m], id)
	}
}

// compareAnnounced says whether a position was announced that is not stored.
func (w *world) compareAnnounced(db *check.Snapshot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, seq := range w.highest {
		c := db.Conversations[key.conversation]
		if c == nil {
			w.faults.Add(check.Invented, "a position in %s was announced, which is not stored", key.conversation)
			continue
		}
		m := c.Members[key.user]
		stored, what := m.Delivered, "received"
		if key.read {
			stored, what = m.Read, "read"
		}
		if seq > stored {
			w.faults.Add(check.Positions, "%s: it was announced that %s has %s up to %d; %d is stored", key.conversation, key.user, what, seq, stored)
		}
	}
}

// openConversations makes the first conversations: everybody with the next and with one
// further on, groups of eight, and one of all.
func (s *soak) openConversations(ctx context.Context) error {
	n := len(s.users)
	for i := range n {
		for _, other := range []int{(i + 1) % n, (i + n/2) % n} {
			r, err := s.askAs(ctx, i, "conversation:open", obj{"userId": s.users[other].name})
			if err != nil {
				return err
			}
			s.world.addDirect(r.Conversation.ID, i, other)
		}
	}
	rng := s.random(2)
	var groups [][]int
	for range max(2, n/6) {
		groups = append(groups, rng.Perm(n)[:min(8, n)])
	}
	groups = append(groups, rng.Perm(n))
	for i, members := range groups {
		var names []string
		for _, m := range members[1:] {
			names = append(names, s.users[m].name)
		}
		r, err := s.askAs(ctx, members[0], "conversation:open", obj{"title": fmt.Sprint("group ", i), "memberIds": names})
		if err != nil {
			return err
		}
		s.world.addGroup(r.Conversation.ID, members)
	}
	return nil
}

// askAs asks by the connection of a user's first device, which must be well.
func (s *soak) askAs(ctx context.Context, user int, event string, payload any) (r *reply, err error) {
	for range 5 {
		c, ready := s.users[user].devices[0].connection()
		err = errNoAnswer
		if ready {
			if r, err = c.ask(ctx, event, payload); err == nil {
				return r, nil
			}
		}
		if !pause(ctx, 200*time.Millisecond) {
			break
		}
	}
	return nil, errors.Join(fmt.Errorf("%s of %s", event, s.users[user].name), err)
}
