package rooms

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"xabar/chat"
)

// PresenceGrace is how long after its last connection a user still counts as
// online: a shorter blip is no change.
const PresenceGrace = 3 * time.Second

// LastSeen stores when users were last connected.
type LastSeen func(ctx context.Context, seen map[chat.ID]time.Time) error

// MemoryPresence is chat.Presence of a node that runs alone.
type MemoryPresence struct {
	clock    chat.Clock
	lastSeen LastSeen
	log      *slog.Logger

	mu     sync.Mutex // guards the fields below
	users  map[chat.ID]*onlineUser
	watch  func(chat.PresenceState)
	closed bool

	// announcing is held while a change is told, so that the last thing told of a
	// user is true. It is taken before mu.
	announcing sync.Mutex
	leaving    sync.WaitGroup // announcements of who went offline
}

// onlineUser is a user with connections, or in grace.
type onlineUser struct {
	connections map[string]struct{}
	grace       *time.Timer
	left        time.Time
}

// NewMemoryPresence makes a presence that stores last times through lastSeen.
func NewMemoryPresence(clock chat.Clock, lastSeen LastSeen, log *slog.Logger) *MemoryPresence {
	return &MemoryPresence{
		clock: clock, lastSeen: lastSeen, log: log,
		users: map[chat.ID]*onlineUser{}, watch: func(chat.PresenceState) {},
	}
}

// Watch implements chat.Presence.
func (p *MemoryPresence) Watch(f func(chat.PresenceState)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch = f
}

// Connect implements chat.Presence.
func (p *MemoryPresence) Connect(_ context.Context, user chat.ID, connection string) error {
	p.mu.Lock()
	u := p.users[user]
	first := u == nil
	if first {
		u = &onlineUser{connections: map[string]struct{}{}}
		p.users[user] = u
	}
	if u.grace != nil {
		u.grace.Stop()
		u.grace = nil
	}
	u.connections[connection] = struct{}{}
	p.mu.Unlock()
	if first {
		p.announce(user, nil)
	}
	return nil
}

// announce tells what the user is now, which may not be what the caller saw.
func (p *MemoryPresence) announce(user chat.ID, lastSeen *chat.Time) {
	p.announcing.Lock()
	defer p.announcing.Unlock()
	p.mu.Lock()
	online, watch := p.users[user] != nil, p.watch
	p.mu.Unlock()
	if online {
		lastSeen = nil
	}
	watch(chat.PresenceState{UserID: user, Online: online, LastSeenAt: lastSeen})
}

// Disconnect implements chat.Presence.
func (p *MemoryPresence) Disconnect(_ context.Context, user chat.ID, connection string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.users[user]
	if u == nil {
		return nil
	}
	delete(u.connections, connection)
	if len(u.connections) > 0 || u.grace != nil || p.closed {
		return nil
	}
	u.left = p.clock.Now()
	u.grace = time.AfterFunc(PresenceGrace, func() { p.offline(user, u) })
	return nil
}

// offline ends a grace, unless the user came back meanwhile.
func (p *MemoryPresence) offline(user chat.ID, u *onlineUser) {
	p.mu.Lock()
	if p.closed || p.users[user] != u || len(u.connections) > 0 || u.grace == nil {
		p.mu.Unlock()
		return
	}
	delete(p.users, user)
	p.leaving.Add(1)
	p.mu.Unlock()
	defer p.leaving.Done()
	p.store(map[chat.ID]time.Time{user: u.left})
	at := chat.At(u.left)
	p.announce(user, &at)
}

func (p *MemoryPresence) store(seen map[chat.ID]time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := p.lastSeen(ctx, seen); err != nil {
		p.log.Warn("last times were not stored", "users", len(seen), "error", err)
	}
}

// Online implements chat.Presence.
func (p *MemoryPresence) Online(_ context.Context, users []chat.ID) ([]bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	online := make([]bool, len(users))
	for i, user := range users {
		online[i] = p.users[user] != nil
	}
	return online, nil
}

// Close ends every grace and stores the last times of all who are still counted.
// Nobody is announced: the node's sockets are gone.
func (p *MemoryPresence) Close() error {
	p.mu.Lock()
	p.closed = true
	now := p.clock.Now()
	seen := make(map[chat.ID]time.Time, len(p.users))
	for user, u := range p.users {
		seen[user] = now
		if u.grace != nil {
			u.grace.Stop()
			seen[user] = u.left
		}
	}
	clear(p.users)
	p.mu.Unlock()
	p.leaving.Wait()
	if len(seen) > 0 {
		p.store(seen)
	}
	return nil
}
