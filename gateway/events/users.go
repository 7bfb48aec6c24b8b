package events

import (
	"slices"
	"sync"

	"xabar/chat"
)

const userShards = 64

// userTable knows the clients of each user on this node.
type userTable struct {
	shards [userShards]struct {
		mu sync.RWMutex // guards m
		m  map[chat.ID][]*client
	}
}

func (t *userTable) init() {
	for i := range t.shards {
		t.shards[i].m = map[chat.ID][]*client{}
	}
}

func shardOf(user chat.ID) int { return int(user[15]^user[7]) % userShards }

func (t *userTable) add(c *client) {
	s := &t.shards[shardOf(c.user.ID)]
	s.mu.Lock()
	defer s.mu.Unlock()
	// Copied, never changed in place: get hands the slice out.
	s.m[c.user.ID] = append(slices.Clone(s.m[c.user.ID]), c)
}

// remove says whether it was the user's last client here.
func (t *userTable) remove(c *client) (last bool) {
	s := &t.shards[shardOf(c.user.ID)]
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := slices.DeleteFunc(slices.Clone(s.m[c.user.ID]), func(o *client) bool { return o == c })
	if len(rest) == 0 {
		delete(s.m, c.user.ID)
		return true
	}
	s.m[c.user.ID] = rest
	return false
}

// get returns the user's clients; the slice must not be changed.
func (t *userTable) get(user chat.ID) []*client {
	s := &t.shards[shardOf(user)]
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.m[user]
}

func (t *userTable) len() int {
	n := 0
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.RLock()
		n += len(s.m)
		s.mu.RUnlock()
	}
	return n
}

// ids are the users who have clients here.
func (t *userTable) ids() []chat.ID {
	var ids []chat.ID
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.RLock()
		for id := range s.m {
			ids = append(ids, id)
		}
		s.mu.RUnlock()
	}
	return ids
}

func (t *userTable) all() []*client {
	var all []*client
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.RLock()
		for _, clients := range s.m {
			all = append(all, clients...)
		}
		s.mu.RUnlock()
	}
	return all
}
