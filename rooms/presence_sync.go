package rooms

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"xabar/chat"
)

// run writes to Redis until ctx ends, and then has this node's lease end with the grace: users
// who have not come back elsewhere by then are announced by other nodes.
func (p *RedisPresence) run(ctx context.Context) {
	ticker := time.NewTicker(presenceRound(p.r.opts.PresenceTTL))
	defer ticker.Stop()
	// Other nodes, too, have to write to a Redis that has lost everything, before it is asked.
	settle := 2 * presenceRound(p.r.opts.PresenceTTL)
	recheck := time.NewTimer(0)
	<-recheck.C
	defer recheck.Stop()
	p.beat(ctx)
	for {
		select {
		case <-ctx.Done():
			p.goodbye(context.WithoutCancel(ctx))
			return
		case <-p.missed:
			recheck.Reset(settle)
		case <-recheck.C:
			p.recheck(ctx)
		case <-p.wake:
			p.flush(ctx)
		case <-ticker.C:
			p.beat(ctx)
		}
	}
}

// recheck tells what has become of the users whose changes may have been missed.
func (p *RedisPresence) recheck(ctx context.Context) {
	p.mu.Lock()
	watch, watched := p.watch, p.watched
	p.mu.Unlock()
	for users := range slices.Chunk(watched(), presencePipeline) {
		online, err := p.ask(ctx, users)
		if err != nil {
			p.r.log.Warn("presence of other nodes is not known; the next recovery asks again", "error", err)
			return
		}
		for i, user := range users {
			watch(chat.PresenceState{UserID: user, Online: online[i]})
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
