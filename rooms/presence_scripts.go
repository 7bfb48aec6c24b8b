package rooms

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"xabar/chat"
)

// buryTime is how long one node has to take a dead one's users away before others try.
const buryTime = 10 * time.Second

// beatScript renews a lease. KEYS: the nodes. ARGV: node, lease and buryTime in milliseconds. It
// returns whether the node was known, and nodes whose lease has run out with when it did; for
// buryTime nobody else gets them.
var beatScript = redis.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local known = redis.call('ZSCORE', KEYS[1], ARGV[1]) and 1 or 0
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
local answer = {known}
local dead = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'WITHSCORES', 'LIMIT', 0, 16)
for i = 1, #dead, 2 do
  answer[#answer + 1] = dead[i]
  answer[#answer + 1] = math.floor(tonumber(dead[i + 1]))
  redis.call('ZADD', KEYS[1], now + ARGV[3], dead[i])
end
return answer`)

// The others change one bucket. KEYS: the bucket. ARGV: channel, node, and more. They tell all
// changes of users in one message.

// without is a Lua function: the nodes in list but one, or nil if it is not there.
const luaWithout = `
local function without(list, node)
  for i = 1, #list, 8 do
    if string.sub(list, i, i + 7) == node then
      return string.sub(list, 1, i - 1) .. string.sub(list, i + 8)
    end
  end
  return nil
end
`

// joinScript adds the node to users. ARGV 3…: users.
var joinScript = redis.NewScript(luaWithout + `
local told = {}
for i = 3, #ARGV do
  local nodes = redis.call('HGET', KEYS[1], ARGV[i])
  if not nodes then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[2])
    told[#told + 1] = '\1' .. ARGV[i] .. string.rep('\0', 8)
  elseif not without(nodes, ARGV[2]) then
    redis.call('HSET', KEYS[1], ARGV[i], nodes .. ARGV[2])
  end
end
if #told > 0 then redis.call('PUBLISH', ARGV[1], '\1' .. table.concat(told)) end
return #told`)

// leaveScript takes the node off users. ARGV 3…: user and when it left, in turn. It returns which
// of them (counted from 0) have gone offline by that. A user whom Redis does not know
// any more has too.
var leaveScript = redis.NewScript(luaWithout + `
local told, gone = {}, {}
for i = 3, #ARGV, 2 do
  local nodes = redis.call('HGET', KEYS[1], ARGV[i])
  local rest = nodes and without(nodes, ARGV[2])
  if rest and rest ~= '' then
    redis.call('HSET', KEYS[1], ARGV[i], rest)
  elseif rest or not nodes then
    redis.call('HDEL', KEYS[1], ARGV[i])
    told[#told + 1] = '\0' .. ARGV[i] .. ARGV[i + 1]
    gone[#gone + 1] = (i - 3) / 2
  end
end
if #told > 0 then redis.call('PUBLISH', ARGV[1], '\1' .. table.concat(told)) end
return gone`)

// compareScript makes a bucket say of the node what the node says. ARGV 3: the time, for those who
// have left without its saying so. ARGV 4…: all its users.
var compareScript = redis.NewScript(luaWithout + `
local told, mine = {}, {}
for i = 4, #ARGV do mine[ARGV[i]] = true end
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local user, nodes = all[i], all[i + 1]
  local rest = without(nodes, ARGV[2])
  if mine[user] then
    if not rest then redis.call('HSET', KEYS[1], user, nodes .. ARGV[2]) end
    mine[user] = nil
  elseif rest == '' then
    redis.call('HDEL', KEYS[1], user)
    told[#told + 1] = '\0' .. user .. ARGV[3]
  elseif rest then
    redis.call('HSET', KEYS[1], user, rest)
  end
end
for i = 4, #ARGV do
  if mine[ARGV[i]] then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[2])
    told[#told + 1] = '\1' .. ARGV[i] .. string.rep('\0', 8)
  end
end
if #told > 0 then redis.call('PUBLISH', ARGV[1], '\1' .. table.concat(told)) end
return #told`)

// buryScript takes a dead node off all users. ARGV 2 is that node, ARGV 3 when it was last seen. It
// returns the users who have gone offline by that.
var buryScript = redis.NewScript(luaWithout + `
local told, gone = {}, {}
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local rest = without(all[i + 1], ARGV[2])
  if rest == '' then
    redis.call('HDEL', KEYS[1], all[i])
    told[#told + 1] = '\0' .. all[i] .. ARGV[3]
    gone[#gone + 1] = all[i]
  elseif rest then
    redis.call('HSET', KEYS[1], all[i], rest)
  end
end
if #told > 0 then redis.call('PUBLISH', ARGV[1], '\1' .. table.concat(told)) end
return gone`)

// compare has n buckets from a number on say what this node knows.
func (p *RedisPresence) compare(ctx context.Context, from, n int) error {
	mine := make(map[int][]any, n)
	p.mu.Lock()
	for user := range p.users {
		if b := bucketOf(user); b >= from && b < from+n {
			mine[b] = append(mine[b], string(user[:]))
		}
	}
	p.mu.Unlock()
	now := millis(p.clock.Now())
	for at := from; at < from+n; at += presencePipeline {
		err := p.pipelined(ctx, func(pipe redis.Pipeliner) {
			for b := at; b < min(at+presencePipeline, from+n); b++ {
				compareScript.EvalSha(ctx, pipe, []string{p.bucket(b)}, append([]any{p.channel, p.node, now}, mine[b]...)...)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bury takes a dead node off all buckets, stores when its users were last seen, and forgets it.
func (p *RedisPresence) bury(ctx context.Context, d deadNode) error {
	p.r.log.Info("a node is gone: its users who are nowhere else go offline")
	for at := 0; at < presenceBuckets; at += presencePipeline {
		var cmds []*redis.Cmd
		err := p.pipelined(ctx, func(pipe redis.Pipeliner) {
			cmds = cmds[:0]
			for b := at; b < at+presencePipeline; b++ {
				cmds = append(cmds, buryScript.EvalSha(ctx, pipe, []string{p.bucket(b)}, p.channel, d.id, millis(d.seen)))
			}
		})
		if err != nil {
			return err
		}
		seen := map[chat.ID]time.Time{}
		for _, cmd := range cmds {
			gone, err := cmd.StringSlice()
			if err != nil {
				return err
			}
			for _, user := range gone {
				if len(user) == len(chat.ID{}) {
					seen[chat.ID([]byte(user))] = d.seen
				}
			}
		}
		p.store(ctx, seen)
	}
	return p.r.server.client.ZRem(ctx, p.nodesKey(), d.id).Err()
}

// goodbye ends presence of this node: last times are stored, and the lease ends with the grace.
// By then whoever went to another node is counted there.
func (p *RedisPresence) goodbye(ctx context.Context) {
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
	p.mu.Unlock()
	p.store(ctx, seen)
	if err := p.flush(ctx); err != nil {
		p.r.log.Warn("presence could not be written at the end", "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	if _, _, err := p.renew(ctx, PresenceGrace); err != nil {
		p.r.log.Warn("presence could not be ended; it is in its time", "error", err)
	}
}
