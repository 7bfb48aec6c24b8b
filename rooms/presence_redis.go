package rooms

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"xabar/chat"
)

// Presence in Redis is
//
//   - a hash for each of presenceBuckets parts of all users, user's 16 bytes -> the ids, of 8
//     bytes each, of the nodes that hold a connection (or are in its grace). Few entries each,
//     so that Redis keeps them as lists in one piece of memory: 30 to 40 bytes a user;
//   - a sorted set of the nodes by when their lease ends. A node renews its lease, that is the
//     time to live of all its connections at once, every few seconds;
//   - a channel on which every change of a user is told to all nodes.
//
// Scripts change a bucket and tell the change in one step: the one that adds the first node says
// online, the one that removes the last says offline, and a user's changes are heard in the
// order in which they happened. Whoever sees that a lease has run out removes that node
// from all buckets.
//
// Nothing here is waited for by a socket: connections are counted in memory, and what Redis
// must hear of is written by one goroutine, which looks at the last state and so catches up
// by itself after an outage. A part of the buckets is compared as a whole in each round, so that
// whatever Redis has lost comes back.
const (
	presenceBuckets  = 1024
	presenceRounds   = 16  // rounds in which all buckets are compared
	presencePipeline = 128 // scripts in one round trip
	presenceQuery    = time.Second
	presenceVersion  = 1
)

// presenceRecord is the size of one change on the channel: state, user, time in milliseconds.
const presenceRecord = 1 + 16 + 8

// RedisPresence is chat.Presence of a node among others.
type RedisPresence struct {
	r        *Redis
	clock    chat.Clock
	lastSeen LastSeen
	node     string // 8 bytes
	channel  string
	lease    time.Duration
	wake     chan struct{} // holds one: dirty has something
	missed   chan struct{} // holds one: changes of other nodes may not have been heard

	mu      sync.Mutex // guards the fields below
	users   map[chat.ID]*onlineUser
	dirty   map[chat.ID]time.Time // users whose state Redis has not heard of, with when they left
	watch   func(chat.PresenceState)
	watched func() []chat.ID
	closed  bool
	alone   map[chat.ID]struct{} // users who were told here without Redis
	healthy bool                 // the last round trip worked
	renewed time.Time            // when the lease was last renewed

	round int // of run's goroutine
}

// Presence makes the node's presence, which stores last times through lastSeen. Call it once,
// before Run.
func (r *Redis) Presence(clock chat.Clock, lastSeen LastSeen) *RedisPresence {
	p := &RedisPresence{
		r: r, clock: clock, lastSeen: lastSeen, node: string(r.node[:8]), channel: r.name("presence"),
		// A dead node's last renewal was up to a round before, and another round passes until
		// somebody looks.
		lease: r.opts.PresenceTTL - 2*presenceRound(r.opts.PresenceTTL),
		wake:  make(chan struct{}, 1), missed: make(chan struct{}, 1),
		users: map[chat.ID]*onlineUser{}, dirty: map[chat.ID]time.Time{}, alone: map[chat.ID]struct{}{},
		watch: func(chat.PresenceState) {}, watched: func() []chat.ID { return nil },
	}
	r.pres = p
	r.sub.touch(classic, p.channel, p)
	r.OnRecovered(func(time.Time) {
		select {
		case p.missed <- struct{}{}:
		default:
		}
	})
	return p
}

// presenceRound is the time between two renewals.
func presenceRound(ttl time.Duration) time.Duration { return ttl / 10 }

// Watch implements chat.Presence. Changes of all nodes' users come, in each user's order; f must
// not wait for anything.
func (p *RedisPresence) Watch(f func(chat.PresenceState)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch = f
}

// Watched sets who knows whose changes this node must hear. After an outage these are looked up and
// told to Watch whether they have changed or not, without a last time. Set it before Run.
func (p *RedisPresence) Watched(f func() []chat.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watched = f
}

// Connect implements chat.Presence. It never waits for Redis.
func (p *RedisPresence) Connect(_ context.Context, user chat.ID, connection string) error {
	p.mu.Lock()
	u := p.users[user]
	first := u == nil
	if first {
		u = &onlineUser{connections: map[string]struct{}{}}
		p.users[user] = u
		p.dirty[user] = time.Time{}
	}
	if u.grace != nil {
		u.grace.Stop()
		u.grace = nil
	}
	u.connections[connection] = struct{}{}
	alone, watch := first && !p.healthy, p.watch
	if alone {
		p.alone[user] = struct{}{}
	}
	p.mu.Unlock()
	if first {
		p.poke()
	}
	if alone { // Redis tells nobody now, and whoever connects here is online
		watch(chat.PresenceState{UserID: user, Online: true})
	}
	return nil
}

func (p *RedisPresence) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Disconnect implements chat.Presence. It never waits for Redis.
func (p *RedisPresence) Disconnect(_ context.Context, user chat.ID, connection string) error {
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
	u.grace = time.AfterFunc(PresenceGrace, func() { p.leave(user, u) })
	return nil
}

// leave ends a grace, unless the user came back meanwhile.
func (p *RedisPresence) leave(user chat.ID, u *onlineUser) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.users[user] != u || len(u.connections) > 0 || u.grace == nil {
		return
	}
	delete(p.users, user)
	delete(p.alone, user)
	p.dirty[user] = u.left
	p.poke()
}

// Online implements chat.Presence. Who is connected here is known; for the others Redis is asked,
// and while it does not answer they count as offline.
func (p *RedisPresence) Online(ctx context.Context, users []chat.ID) ([]bool, error) {
	online, err := p.ask(ctx, users)
	if err != nil {
		p.r.log.Debug("presence of other nodes is not known", "error", err)
	}
	return online, nil
}

// ask is Online, with the error for which only this node's part of the answer is known.
func (p *RedisPresence) ask(ctx context.Context, users []chat.ID) ([]bool, error) {
	online := make([]bool, len(users))
	var unknown []int
	p.mu.Lock()
	for i, user := range users {
		if online[i] = p.users[user] != nil; !online[i] {
			unknown = append(unknown, i)
		}
	}
	healthy := p.healthy
	p.mu.Unlock()
	if len(unknown) == 0 {
		return online, nil
	}
	if !healthy {
		return online, ErrUnavailable
	}
	ctx, cancel := context.WithTimeout(ctx, presenceQuery)
	defer cancel()
	cmds := make([]*redis.BoolCmd, len(unknown))
	_, err := p.r.server.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for n, i := range unknown {
			cmds[n] = pipe.HExists(ctx, p.bucket(bucketOf(users[i])), string(users[i][:]))
		}
		return nil
	})
	if err != nil {
		return online, err
	}
	for n, i := range unknown {
		online[i] = cmds[n].Val()
	}
	return online, nil
}

// bucketOf folds the id: some part of a UUID is random in every version of them.
func bucketOf(user chat.ID) int {
	var fold uint16
	for i := 0; i < len(user); i += 2 {
		fold ^= uint16(user[i])<<8 | uint16(user[i+1])
	}
	return int(fold % presenceBuckets)
}

// bucket is the key of a part; the braces spread parts over a cluster evenly.
func (p *RedisPresence) bucket(n int) string { return fmt.Sprintf("%s{%d}", p.r.name("on", ""), n) }

func (p *RedisPresence) nodesKey() string { return p.r.name("nodes") }

// stale says that Redis has not taken this node's state.
func (p *RedisPresence) stale() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.healthy || time.Since(p.renewed) > p.lease
}

// wants and receive implement sink.
func (p *RedisPresence) wants(string) bool { return true }

func (p *RedisPresence) receive(_ string, payload []byte) {
	if len(payload) == 0 || payload[0] != presenceVersion || (len(payload)-1)%presenceRecord != 0 {
		return // another version's
	}
	p.mu.Lock()
	watch := p.watch
	p.mu.Unlock()
	for rec := payload[1:]; len(rec) > 0; rec = rec[presenceRecord:] {
		state := chat.PresenceState{UserID: uuid.UUID(rec[1:17]), Online: rec[0] == 1}
		if ms := int64(binary.BigEndian.Uint64(rec[17:25])); !state.Online && ms > 0 {
			at := chat.FromMillis(ms)
			state.LastSeenAt = &at
		}
		if !p.toldBefore(state) {
			watch(state)
		}
	}
}

// toldBefore says that the sockets of this node have heard it when Redis could not.
func (p *RedisPresence) toldBefore(state chat.PresenceState) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, told := p.alone[state.UserID]
	delete(p.alone, state.UserID)
	return told && state.Online
}
