package rooms

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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

	mu      sync.Mutex // guards the fields below
	users   map[chat.ID]*onlineUser
	dirty   map[chat.ID]time.Time // users whose state Redis has not heard of, with when they left
	watch   func(chat.PresenceState)
	closed  bool
	healthy bool      // the last round trip worked
	renewed time.Time // when the lease was last renewed

	round int // of run's goroutine

	announcements atomic.Int64
}

// Presence makes the node's presence, which stores last times through lastSeen. Call it once,
// before Run.
func (r *Redis) Presence(clock chat.Clock, lastSeen LastSeen) *RedisPresence {
	p := &RedisPresence{
		r: r, clock: clock, lastSeen: lastSeen, node: string(r.node[:8]), channel: r.name("presence"),
		// A dead node's last renewal was up to a round before, and another round passes until
		// somebody looks.
		lease: r.opts.PresenceTTL - 2*presenceRound(r.opts.PresenceTTL),
		wake:  make(chan struct{}, 1),
		users: map[chat.ID]*onlineUser{}, dirty: map[chat.ID]time.Time{},
		watch: func(chat.PresenceState) {},
	}
	r.pres = p
	r.sub.touch(classic, p.channel, p)
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
	p.dirty[user] = u.left
	p.poke()
}

// Online implements chat.Presence. Who is connected here is known; for the others Redis is asked,
// and while it does not answer they count as offline.
func (p *RedisPresence) Online(ctx context.Context, users []chat.ID) ([]bool, error) {
	online := make([]bool, len(users))
	var ask []int
	p.mu.Lock()
	for i, user := range users {
		if online[i] = p.users[user] != nil; !online[i] {
			ask = append(ask, i)
		}
	}
	healthy := p.healthy
	p.mu.Unlock()
	if len(ask) == 0 || !healthy {
		return online, nil
	}
	ctx, cancel := context.WithTimeout(ctx, presenceQuery)
	defer cancel()
	cmds := make([]*redis.BoolCmd, len(ask))
	_, err := p.r.server.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for n, i := range ask {
			cmds[n] = pipe.HExists(ctx, p.bucket(bucketOf(users[i])), string(users[i][:]))
		}
		return nil
	})
	if err != nil {
		p.r.log.Warn("presence of other nodes is not known", "error", err)
		return online, nil
	}
	for n, i := range ask {
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

// stale says that Redis has not taken this node's state for a while.
func (p *RedisPresence) stale() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.renewed.IsZero() && time.Since(p.renewed) > p.lease || !p.healthy && !p.renewed.IsZero()
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
		p.announcements.Add(1)
		watch(state)
	}
}

// run writes to Redis until ctx ends, and then has this node's lease end with the grace: users
// who have not come back elsewhere by then are announced by other nodes.
func (p *RedisPresence) run(ctx context.Context) {
	ticker := time.NewTicker(presenceRound(p.r.opts.PresenceTTL))
	defer ticker.Stop()
	p.beat(ctx)
	for {
		select {
		case <-ctx.Done():
			p.goodbye(context.WithoutCancel(ctx))
			return
		case <-p.wake:
			p.flush(ctx)
		case <-ticker.C:
			p.beat(ctx)
		}
	}
}

// beat renews the lease, writes what is pending, compares a part of the buckets and takes
// away dead nodes.
func (p *RedisPresence) beat(ctx context.Context) {
	known, dead, err := p.renew(ctx, p.lease)
	if err == nil && known {
		err = p.flush(ctx)
	}
	if err == nil {
		from, n := p.round*presenceBuckets/presenceRounds, presenceBuckets/presenceRounds
		if !known { // Redis has lost it all, or others have taken this node for dead
			from, n = 0, presenceBuckets
		}
		p.round = (p.round + 1) % presenceRounds
		err = p.compare(ctx, from, n)
	}
	if err == nil && !known {
		err = p.flush(ctx)
	}
	p.setHealthy(ctx, err)
	for _, d := range dead {
		if err := p.bury(ctx, d); err != nil {
			p.r.log.Warn("a dead node's users could not be taken away; somebody tries again", "error", err)
		}
	}
}

func (p *RedisPresence) setHealthy(ctx context.Context, err error) {
	p.mu.Lock()
	changed := p.healthy != (err == nil)
	p.healthy = err == nil
	if err == nil {
		p.renewed = time.Now()
	}
	p.mu.Unlock()
	if changed && err != nil && ctx.Err() == nil {
		p.r.log.Warn("presence is known for this node alone", "error", err)
	}
}

// deadNode is a node whose lease has run out.
type deadNode struct {
	id   string
	seen time.Time // when it was last alive, at least
}

// renew renews the lease. known is false when Redis did not know this node.
func (p *RedisPresence) renew(ctx context.Context, lease time.Duration) (known bool, dead []deadNode, err error) {
	result, err := beatScript.Run(ctx, p.r.server.client, []string{p.nodesKey()},
		p.node, lease.Milliseconds(), buryTime.Milliseconds()).Slice()
	if err != nil {
		return false, nil, err
	}
	for i := 1; i+1 < len(result); i += 2 {
		id, _ := result[i].(string)
		expired, _ := result[i+1].(int64)
		dead = append(dead, deadNode{id: id, seen: time.UnixMilli(expired).Add(-p.lease)})
	}
	first, ok := result[0].(int64)
	if !ok {
		return false, nil, errors.New("rooms: unexpected answer of the beat script")
	}
	return first == 1, dead, nil
}

// flush writes the state of the users in dirty. What fails stays dirty.
func (p *RedisPresence) flush(ctx context.Context) error {
	for {
		changes := p.takeDirty()
		if len(changes) == 0 {
			return nil
		}
		if err := p.write(ctx, changes); err != nil {
			p.mu.Lock()
			for user, left := range changes {
				if _, newer := p.dirty[user]; !newer {
					p.dirty[user] = left
				}
			}
			p.mu.Unlock()
			p.setHealthy(ctx, err)
			return err
		}
	}
}

// takeDirty takes as many users as one round trip can write.
func (p *RedisPresence) takeDirty() map[chat.ID]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.dirty) == 0 {
		return nil
	}
	taken := make(map[chat.ID]time.Time)
	for user, left := range p.dirty {
		taken[user] = left
		delete(p.dirty, user)
		if len(taken) == presencePipeline*4 {
			break
		}
	}
	return taken
}

// change is one bucket's part of a write.
type change struct {
	join, leave []any // users; users and times in turn
	left        []chat.ID
}

func (p *RedisPresence) write(ctx context.Context, changes map[chat.ID]time.Time) error {
	buckets := map[int]*change{}
	p.mu.Lock()
	for user, left := range changes {
		c := buckets[bucketOf(user)]
		if c == nil {
			c = &change{}
			buckets[bucketOf(user)] = c
		}
		if p.users[user] != nil {
			c.join = append(c.join, string(user[:]))
		} else {
			c.leave = append(c.leave, string(user[:]), millis(left))
			c.left = append(c.left, user)
		}
	}
	p.mu.Unlock()
	leaves := map[int]*redis.Cmd{}
	err := p.pipelined(ctx, func(pipe redis.Pipeliner) {
		for n, c := range buckets {
			if len(c.join) > 0 {
				joinScript.EvalSha(ctx, pipe, []string{p.bucket(n)}, append([]any{p.channel, p.node}, c.join...)...)
			}
			if len(c.leave) > 0 {
				leaves[n] = leaveScript.EvalSha(ctx, pipe, []string{p.bucket(n)}, append([]any{p.channel, p.node}, c.leave...)...)
			}
		}
	})
	if err != nil {
		return err
	}
	seen := map[chat.ID]time.Time{}
	for n, cmd := range leaves {
		gone, err := cmd.Int64Slice()
		if err != nil {
			return err
		}
		for _, i := range gone {
			user := buckets[n].left[i]
			seen[user] = changes[user]
		}
	}
	p.store(ctx, seen)
	return nil
}

// millis is a time as 8 bytes.
func millis(t time.Time) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(t.UnixMilli())))
}

// pipelined runs scripts in one round trip, and once more with their texts if Redis does not
// know them (any more).
func (p *RedisPresence) pipelined(ctx context.Context, f func(pipe redis.Pipeliner)) error {
	exec := func() error {
		ctx, cancel := context.WithTimeout(ctx, 2*ioTimeout)
		defer cancel()
		_, err := p.r.server.client.Pipelined(ctx, func(pipe redis.Pipeliner) error { f(pipe); return nil })
		return err
	}
	err := exec()
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return err
	}
	if err := p.load(ctx); err != nil {
		return err
	}
	return exec() // what was done the first time is done again to no effect
}

// load teaches the scripts to Redis, to all masters of a cluster.
func (p *RedisPresence) load(ctx context.Context) error {
	for _, s := range []*redis.Script{joinScript, leaveScript, compareScript, buryScript} {
		if err := s.Load(ctx, p.r.server.client).Err(); err != nil {
			return err
		}
	}
	return nil
}

func (p *RedisPresence) store(ctx context.Context, seen map[chat.ID]time.Time) {
	if len(seen) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := p.lastSeen(ctx, seen); err != nil {
		p.r.log.Warn("last times were not stored", "users", len(seen), "error", err)
	}
}
