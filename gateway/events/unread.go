package events

import (
	"context"
	"slices"
	"sync"
	"time"

	"xabar/chat"
)

// unreadInterval is the shortest time between two `unread` events to a user.
const unreadInterval = time.Second

// unreadTracker tells connected users their total of unread when it changed, at
// most one per unreadInterval. It counts nothing itself: it asks the store, once
// for all that changed meanwhile.
type unreadTracker struct {
	hub  *Hub
	wake chan struct{}

	mu    sync.Mutex // guards the fields below
	users map[chat.ID]*unreadState
	dirty map[chat.ID]struct{} // of users
}

type unreadState struct {
	total int64
	next  time.Time // not before
}

func newUnreadTracker(h *Hub) *unreadTracker {
	return &unreadTracker{
		hub: h, wake: make(chan struct{}, 1),
		users: map[chat.ID]*unreadState{}, dirty: map[chat.ID]struct{}{},
	}
}

// seed is what `session` has told a new socket. If another device knows another
// number, both hear the right one.
func (t *unreadTracker) seed(user chat.ID, total int64) {
	t.mu.Lock()
	state := t.users[user]
	if state == nil {
		t.users[user] = &unreadState{total: total}
	}
	t.mu.Unlock()
	if state != nil {
		t.changed(user)
	}
}

func (t *unreadTracker) forget(user chat.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.users, user)
	delete(t.dirty, user)
}

// changed notes that a connected user's total may be another one.
func (t *unreadTracker) changed(user chat.ID) {
	t.mu.Lock()
	_, known := t.users[user]
	if known {
		t.dirty[user] = struct{}{}
	}
	t.mu.Unlock()
	if known {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// run tells until ctx ends. A short pause after the first change gathers those
// that come together, a read behind a message for one.
func (t *unreadTracker) run(ctx context.Context) {
	const gather = 50 * time.Millisecond
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	armed := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
			if armed {
				continue
			}
			timer.Reset(gather)
			armed = true
		case now := <-timer.C:
			if armed = t.tell(now); armed {
				timer.Reset(gather)
			}
		}
	}
}

// unreadBatch bounds the users of one query.
const unreadBatch = 500

// tell handles the users whose turn it is and says whether others wait.
func (t *unreadTracker) tell(now time.Time) (more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var due []chat.ID
	for user := range t.dirty {
		state := t.users[user]
		if state == nil {
			delete(t.dirty, user)
			continue
		}
		if now.Before(state.next) {
			more = true
			continue
		}
		delete(t.dirty, user)
		state.next = now.Add(unreadInterval)
		due = append(due, user)
	}
	for batch := range slices.Chunk(due, unreadBatch) {
		t.hub.reads.run(func() { t.ask(batch) })
	}
	return more
}

// ask reads the users' totals in one query and tells those that changed.
func (t *unreadTracker) ask(users []chat.ID) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	totals, err := t.hub.service.UnreadTotals(ctx, users)
	if err != nil {
		t.hub.log.Debug("unread totals could not be read", "error", err)
		for _, user := range users {
			t.changed(user) // again in a while
		}
		return
	}
	for _, user := range users {
		t.emit(user, totals[user])
	}
}

// emit tells a user's sockets the total, if it is another one than they know.
func (t *unreadTracker) emit(user chat.ID, total int64) {
	t.mu.Lock()
	state := t.users[user]
	news := state != nil && state.total != total
	if news {
		state.total = total
	}
	t.mu.Unlock()
	if !news {
		return
	}
	for _, c := range t.hub.users.get(user) {
		c.emit("unread", struct {
			Total int64 `json:"total"`
		}{total})
	}
}
