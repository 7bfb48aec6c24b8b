package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"xabar/rooms"
)

// RedisInput is what Redis needs.
type RedisInput struct {
	URL     string // as --redis-url
	Sharded bool   // --redis-sharded
	Now     func() time.Time
}

const sectionRedis = "redis"

// Redis examines it as nodes use it: with their commands, channels and keys. The samples are of
// its clock.
func Redis(ctx context.Context, r *Report, in RedisInput) []ClockSample {
	s := r.Section(sectionRedis)
	r.HideURL(in.URL)
	client, kind, err := rooms.Client(in.URL)
	if err != nil {
		s.Problem("address", "give it as redis://user:password@host:6379/0", "%v", err)
		return nil
	}
	defer client.Close()
	c := &redisCheck{ctx: ctx, s: s, client: client, kind: kind, in: in}
	if !c.reachable() {
		return nil
	}
	if c.servers() {
		c.encryption()
		c.pubsub()
		c.keys()
	}
	sample, err := sampleClock("Redis", in.Now, func() (time.Time, error) { return client.Time(ctx).Result() })
	if err != nil {
		s.Problem("clock", redisAdvice(err), "cannot be read: %s", short(err))
		return nil
	}
	return []ClockSample{sample}
}

// redisCheck asks one deployment.
type redisCheck struct {
	ctx    context.Context
	s      Section
	client redis.UniversalClient
	kind   rooms.Kind
	in     RedisInput
}

// redisAdvice is what to do about an error of Redis's own, or of the way to it.
func redisAdvice(err error) string {
	text := err.Error()
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("WRONGPASS", "NOAUTH", "invalid password", "AUTH"):
		return "look at user and password in --redis-url (redis://user:password@host:6379)"
	case has("NOPERM", "no permissions"):
		return "ACL SETUSER xabar on >PASSWORD ~xabar:* &* +@all -@dangerous +info +cluster"
	case has("MOVED", "CLUSTERDOWN", "CROSSSLOT"):
		return "add ?cluster=true to --redis-url"
	case has("all sentinels", "No such master", "sentinel"):
		return "look at master_name and the Sentinels' addresses in --redis-url"
	case has("READONLY"):
		return "name the master in --redis-url, or use Sentinel (?master_name=NAME)"
	case has("MISCONF"):
		return "Redis cannot save: switch persistence off, nodes need none (save \"\", appendonly no)"
	case isCertificate(err):
		return "trust the server's certificate (SSL_CERT_FILE), and use the name that is in it"
	}
	return "is Redis running there, does it listen on that address (bind), and does no firewall stand between?"
}

// slowPing is from when on a Redis is far away.
const slowPing = 5 * time.Millisecond

func (c *redisCheck) reachable() bool {
	if err := c.client.Ping(c.ctx).Err(); err != nil {
		c.s.Problem("reachable", redisAdvice(err), "%s", short(err))
		return false
	}
	took, err := times(statements, func() error { return c.client.Ping(c.ctx).Err() })
	if err != nil {
		c.s.Problem("reachable", redisAdvice(err), "at times: %s", short(err))
		return false
	}
	if ping := median(took); ping > slowPing {
		c.s.Warn("reachable", "put nodes near Redis: a message to another node waits for it", "%s, %s, a ping takes %s", redisAddress(c.in.URL), c.kind, rounded(ping))
	} else {
		c.s.OK("reachable", "%s, %s, a ping takes %s", redisAddress(c.in.URL), c.kind, rounded(ping))
	}
	return true
}

// redisAddress is the URL's host.
func redisAddress(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return "a socket"
}

// servers looks at each server that holds keys. It is false where nothing else makes sense.
func (c *redisCheck) servers() bool {
	cluster, ok := c.client.(*redis.ClusterClient)
	if !ok {
		return c.server(c.client)
	}
	var mu sync.Mutex // ForEachMaster asks all at the same time
	fine := true
	err := cluster.ForEachMaster(c.ctx, func(_ context.Context, master *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		fine = c.server(master) && fine
		return nil
	})
	if err != nil {
		c.s.Problem("cluster", redisAdvice(err), "%s", short(err))
		return false
	}
	return fine && c.cluster(cluster)
}

func (c *redisCheck) cluster(cluster *redis.ClusterClient) bool {
	info, err := cluster.ClusterInfo(c.ctx).Result()
	if err != nil {
		c.s.Problem("cluster", redisAdvice(err), "%s", short(err))
		return false
	}
	f := fields(info)
	if f["cluster_state"] != "ok" {
		c.s.Problem("cluster", "redis-cli --cluster fix", "its state is %s: %s of 16384 slots are served", f["cluster_state"], f["cluster_slots_ok"])
		return false
	}
	found := fmt.Sprintf("%s masters and replicas, all slots served", f["cluster_known_nodes"])
	if !c.in.Sharded {
		c.s.Warn("cluster", "--redis-sharded, on all nodes", "%s; ordinary pub/sub goes through every server of it", found)
		return true
	}
	c.s.OK("cluster", "%s, sharded pub/sub", found)
	return true
}

// fields reads what INFO and CLUSTER INFO answer.
func fields(info string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			all[name] = value
		}
	}
	return all
}

const oldestRedis = 7

// server looks at one server's version, role and memory.
func (c *redisCheck) server(server redis.Cmdable) bool {
	info := map[string]string{}
	for _, section := range []string{"server", "replication", "memory"} {
		text, err := server.Info(c.ctx, section).Result()
		if err != nil {
			c.s.Warn("version", redisAdvice(err), "INFO is refused: %s", short(err))
			return true
		}
		for name, value := range fields(text) {
			info[name] = value
		}
	}
	major, _, _ := strings.Cut(info["redis_version"], ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestRedis {
		c.s.Problem("version", "upgrade to Redis 7 or newer", "Redis %s", info["redis_version"])
	} else {
		c.s.OK("version", "Redis %s", info["redis_version"])
	}
	if !c.role(info) {
		return false
	}
	c.memory(info)
	c.buffers(server)
	return true
}

// role compares the form that the URL names with what the server is.
func (c *redisCheck) role(info map[string]string) bool {
	mode, role := info["redis_mode"], info["role"]
	switch {
	case mode == "sentinel" && c.kind != rooms.Sentinel:
		c.s.Problem("form", "add ?master_name=NAME to --redis-url", "this is a Sentinel, and --redis-url takes it for a server")
		return false
	case mode == "cluster" && c.kind != rooms.Cluster:
		c.s.Problem("form", "add ?cluster=true to --redis-url", "this server is part of a cluster, and --redis-url takes it for one that is alone")
		return false
	case mode != "cluster" && c.kind == rooms.Cluster:
		c.s.Problem("form", "leave cluster=true and addr out of --redis-url", "this server is no part of a cluster (cluster_enabled is off)")
		return false
	case role != "master":
		c.s.Problem("form", "name the master in --redis-url, or use Sentinel (?master_name=NAME)", "this server is a replica of %s", net.JoinHostPort(info["master_host"], info["master_port"]))
		return false
	}
	c.s.OK("form", "%s, master", c.kind)
	return true
}

func (c *redisCheck) memory(info map[string]string) {
	policy := info["maxmemory_policy"]
	bound, _ := strconv.ParseInt(info["maxmemory"], 10, 64)  // "" and what is no number: no bound
	used, _ := strconv.ParseInt(info["used_memory"], 10, 64) // as above
	do := "CONFIG SET maxmemory-policy noeviction, and in redis.conf"
	switch {
	case policy != "noeviction" && bound > 0:
		c.s.Problem("memory", do, "maxmemory-policy is %s: once %d MB are full, users who are online look offline", policy, bound>>20)
	case policy != "noeviction":
		c.s.Warn("memory", do, "maxmemory-policy is %s: with a maxmemory, users who are online would look offline", policy)
	case bound > 0 && used > bound/5*4:
		c.s.Warn("memory", "raise maxmemory: a connected user takes about 600 bytes", "%d of %d MB are used", used>>20, bound>>20)
	default:
		c.s.OK("memory", "noeviction, %d MB used", used>>20)
	}
}

// smallBuffer is a bound that a burst can pass, in bytes.
const smallBuffer = 8 << 20

// buffers: a node that reads slower than others publish is closed at these bounds.
func (c *redisCheck) buffers(server redis.Cmdable) {
	settings, err := server.ConfigGet(c.ctx, "*").Result()
	if err != nil {
		c.s.OK("buffers", "this user may not read the settings; the default, client-output-buffer-limit pubsub 32mb 8mb 60, is enough for most")
		return
	}
	words := strings.Fields(settings["client-output-buffer-limit"])
	for i := range words {
		if words[i] != "pubsub" || i+3 >= len(words) {
			continue
		}
		hard, _ := strconv.ParseInt(words[i+1], 10, 64) // Redis prints bytes
		limit := strings.Join(words[i+1:i+4], " ")
		switch {
		case hard == 0:
			c.s.Warn("buffers", "CONFIG SET client-output-buffer-limit \"pubsub 64mb 16mb 60\"", "client-output-buffer-limit pubsub %s: a node that hangs can fill Redis's memory", limit)
		case hard < smallBuffer:
			c.s.Warn("buffers", "CONFIG SET client-output-buffer-limit \"pubsub 32mb 8mb 60\"", "client-output-buffer-limit pubsub %s: a burst closes the connections of nodes, which then read the database", limit)
		default:
			c.s.OK("buffers", "client-output-buffer-limit pubsub %s", limit)
		}
	}
	if seconds := settings["timeout"]; seconds != "0" && seconds != "" {
		c.s.Warn("timeout", "CONFIG SET timeout 0", "idle connections are closed after %s s", seconds)
	}
}

// encryption is whether others on the way can read along.
func (c *redisCheck) encryption() {
	u, err := url.Parse(c.in.URL)
	if err != nil || u.Scheme != "redis" {
		return
	}
	addresses, err := net.DefaultResolver.LookupHost(c.ctx, u.Hostname())
	if err != nil {
		return // Ping has found it, in a way of its own
	}
	for _, address := range addresses {
		if isPublicAddress(address) {
			c.s.Warn("encryption", "use rediss://", "messages go to %s as plain text", address)
			return
		}
	}
}

// probeName is a name below those that nodes use.
func probeName() string { return "xabar:1:doctor:" + rand.Text() }

// pubsubPatience is how long a message may take through Redis.
const pubsubPatience = 3 * time.Second

// pubsub sends messages through Redis as nodes do: on our channels, on those of Socket.IO's adapter,
// by pattern, and sharded.
func (c *redisCheck) pubsub() {
	name := probeName()
	adapter := "socket.io#/doctor#" + name + "#"
	ways := []struct {
		name      string
		subscribe func(...string) *redis.PubSub
		publish   func(channel string) error
		topic     string
		channel   string
	}{
		{"pub/sub", c.subscribe, c.publish, name, name},
		{"pub/sub of rooms", c.subscribe, c.publish, adapter, adapter},
		{"pub/sub by pattern", c.subscribePattern, c.publish, adapter + "?", adapter + "1"},
	}
	if c.in.Sharded {
		ways = append(ways, ways[0])
		last := &ways[len(ways)-1]
		last.name, last.subscribe, last.publish = "sharded pub/sub", c.subscribeSharded, c.publishSharded
	}
	var failed bool
	var took time.Duration
	for _, way := range ways {
		heard := way.subscribe(way.topic)
		trip, err := roundTrip(c.ctx, heard, func() error { return way.publish(way.channel) })
		if closing := heard.Close(); err == nil {
			err = closing
		}
		if err != nil {
			failed = true
			c.s.Problem(way.name, redisAdvice(err), "no message comes through: %s", short(err))
		}
		took = max(took, trip)
	}
	if !failed {
		c.s.OK("pub/sub", "messages come through, in %s", rounded(took))
	}
}

func (c *redisCheck) subscribe(topics ...string) *redis.PubSub {
	return c.client.Subscribe(c.ctx, topics...)
}

func (c *redisCheck) subscribePattern(topics ...string) *redis.PubSub {
	return c.client.PSubscribe(c.ctx, topics...)
}

func (c *redisCheck) subscribeSharded(topics ...string) *redis.PubSub {
	return c.client.SSubscribe(c.ctx, topics...)
}

func (c *redisCheck) publish(channel string) error {
	return c.client.Publish(c.ctx, channel, "doctor").Err()
}

func (c *redisCheck) publishSharded(channel string) error {
	return c.client.SPublish(c.ctx, channel, "doctor").Err()
}

// roundTrip waits for the subscription, publishes, and waits for what comes.
func roundTrip(ctx context.Context, heard *redis.PubSub, publish func() error) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, pubsubPatience)
	defer cancel()
	if _, err := heard.Receive(ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	if err := publish(); err != nil {
		return 0, err
	}
	for {
		got, err := heard.Receive(ctx)
		if err != nil {
			return 0, err
		}
		if message, ok := got.(*redis.Message); ok {
			if message.Payload != "doctor" {
				return 0, errors.New("another message came")
			}
			return time.Since(start), nil
		}
	}
}

// keyScript does what presence does.
var keyScript = redis.NewScript(`
redis.call('TIME')
redis.call('HSET', KEYS[1], 'user', ARGV[1])
redis.call('PEXPIRE', KEYS[1], 10000)
redis.call('PUBLISH', ARGV[2], 'doctor')
local found = redis.call('HGET', KEYS[1], 'user')
redis.call('DEL', KEYS[1])
redis.call('ZADD', KEYS[1], 1, 'node')
redis.call('ZREM', KEYS[1], 'node')
return found`)

// keys tries the keys and scripts of presence.
func (c *redisCheck) keys() {
	name := probeName()
	found, err := keyScript.Run(c.ctx, c.client, []string{name}, "here", name).Text()
	switch {
	case err != nil:
		c.s.Problem("keys", redisAdvice(err), "presence cannot be kept: %s", short(err))
	case found != "here":
		c.s.Problem("keys", "see the server's log", "presence cannot be kept: %q was read for what was written", found)
	default:
		c.s.OK("keys", "keys and scripts of presence work")
	}
}
