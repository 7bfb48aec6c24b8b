package rooms

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"xabar/gateway/socketio"
)

// Options of Open. The zero value works.
type Options struct {
	// Sharded uses the sharded pub/sub of Redis 7 for rooms and conversations, with the wire format
	// of Node's createShardedAdapter; without it they use ordinary pub/sub, with that of
	// createAdapter and of @socket.io/redis-emitter. In a cluster, ordinary messages reach every
	// server of it, sharded ones only one. All servers that share rooms must agree.
	Sharded bool
	// Key is the first part of the Socket.IO channels' names, as Node's option of that name.
	// Default "socket.io".
	Key string
	// Prefix is the first part of all other names in Redis: nodes with different ones do
	// not see each other. Default "xabar".
	Prefix string
	// LocalRooms are prefixes of rooms that concern only their own node: they have no
	// channels, and broadcasts to them should be Local.
	LocalRooms []string
	// PresenceTTL is how long at most the users of a node that died count as online.
	// Default 30 s, at least 5 s.
	PresenceTTL time.Duration
	// Linger keeps a channel subscribed for 2 to 4 s after nobody on this node wants it any more: clients
	// that come back soon, as all do in a storm, then cost Redis no command.
	Linger bool
	// RoundTrip, if not nil, hears how long each round trip with publications took. It must be quick.
	RoundTrip func(took time.Duration)
	// Logger; default slog.Default().
	Logger *slog.Logger
}

// Redis connects this node with the others through Redis: rooms (Adapters), who is online
// (Presence) and chat events (Bus). Open it, take what is needed from it, and Run it.
//
// It uses one connection for all subscriptions (in a cluster with Sharded one more to each
// master) and a small pool for commands, however many rooms and users there are.
//
// While Redis cannot be reached, everything goes on for the sockets of this node, Health
// says why, and publications fail. When it is back, all channels are subscribed again and
// the functions of OnRecovered are called.
type Redis struct {
	opts   Options
	log    *slog.Logger
	server *server
	node   uuid.UUID // this process
	sub    *subscriber
	main   *link
	shards *shards // nil unless Sharded in a cluster
	pub    *publisher
	probe  *probe
	tasks  tasks
	bus    *Bus
	pres   *RedisPresence

	adapter atomic.Pointer[redisAdapter] // of the main namespace

	mu        sync.Mutex // guards the fields below
	recovered []func(since time.Time)
	since     time.Time     // of recoveries that are not told yet; zero: none
	recovery  chan struct{} // holds one
}

// Open prepares the connection to the Redis that url names, and connects nothing yet. Forms of url:
//
//	redis://user:password@host:6379/0                      one server
//	rediss://…                                             with TLS; also in the next two
//	redis://host:26379?master_name=NAME&addr=host2:26379   found through Sentinels
//	redis://host:6379?cluster=true&addr=host2:6379         Cluster
//
// With Sentinels, user:password@ is theirs and the servers' is ?username=…&password=…. Errors: a url
// that is none of these; it never repeats the url, which may hold a password.
func Open(url string, opts Options) (*Redis, error) {
	if opts.Key == "" {
		opts.Key = "socket.io"
	}
	if opts.Prefix == "" {
		opts.Prefix = "xabar"
	}
	if opts.PresenceTTL == 0 {
		opts.PresenceTTL = 30 * time.Second
	}
	if opts.PresenceTTL < 5*time.Second {
		return nil, fmt.Errorf("rooms: a presence TTL of %v is below 5 s", opts.PresenceTTL)
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	s, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	logDriver.Do(func() { redis.SetLogger(driverLog{opts.Logger}) })
	r := &Redis{
		opts: opts, log: opts.Logger.With("component", "redis"), server: s, node: uuid.New(),
		sub: newSubscriber(), recovery: make(chan struct{}, 1),
	}
	r.sub.linger = opts.Linger
	r.pub = newPublisher(s, r.log)
	r.pub.tripped = opts.RoundTrip
	r.main = newLink(r.sub, r.log, s.conn, s.master)
	r.main.recovered = r.recover
	if s.cluster != nil { // the master that it was connected to may be one no more
		r.main.failed = func(error) { s.cluster.ReloadState(context.Background()) }
	}
	if opts.Sharded && s.cluster != nil {
		r.shards = newShards(s, r.sub, r.log, r.recover)
	}
	r.sub.route = r.route
	r.probe = newProbe(r)
	return r, nil
}

// logDriver is done once: go-redis has one logger in a process, and it writes to stderr.
var logDriver sync.Once

// driverLog has go-redis write to slog: what matters is logged by who calls it.
type driverLog struct{ log *slog.Logger }

func (l driverLog) Printf(ctx context.Context, format string, v ...any) {
	l.log.DebugContext(ctx, "go-redis: "+fmt.Sprintf(format, v...))
}

func (r *Redis) route(v verb, channel string) *link {
	if v == sharded && r.shards != nil {
		return r.shards.link(channel)
	}
	return r.main
}

// name is a key or channel of this deployment. The 1 is the version of what is in it.
func (r *Redis) name(parts ...string) string {
	return r.opts.Prefix + ":1:" + strings.Join(parts, ":")
}

// Adapters makes the adapters of a Socket.IO server's namespaces.
func (r *Redis) Adapters() socketio.AdapterFactory {
	return func(ns *socketio.Namespace) socketio.Adapter {
		a := newAdapter(r, ns)
		if ns.Name() == "/" {
			r.adapter.Store(a)
		}
		return a
	}
}

func (r *Redis) forgetAdapter(a *redisAdapter) { r.adapter.CompareAndSwap(a, nil) }

func (r *Redis) isLocal(room string) bool {
	return slices.ContainsFunc(r.opts.LocalRooms, func(prefix string) bool { return strings.HasPrefix(room, prefix) })
}

// follow has the bus hear what concerns a room of the main namespace, while it has members.
func (r *Redis) follow(a *redisAdapter, room string, touch func(verb, string, sink)) {
	if r.bus == nil || a.ns.Name() != "/" {
		return
	}
	if channel, ok := r.bus.channelOf(room); ok {
		touch(r.bus.verb, channel, r.bus)
	}
}

// OnRecovered adds a function that is called after an outage of the subscriptions, when all of them
// work again: whatever was published since then may have been missed and must be read from the
// database. Calls don't overlap; until f returns, further outages are merged into the
// next call. Add functions before Run.
func (r *Redis) OnRecovered(f func(since time.Time)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recovered = append(r.recovered, f)
}

// recover notes a recovery for tellRecoveries. It is called on links' goroutines.
func (r *Redis) recover(since time.Time) {
	r.mu.Lock()
	if r.since.IsZero() || since.Before(r.since) {
		r.since = since
	}
	r.mu.Unlock()
	select {
	case r.recovery <- struct{}{}:
	default:
	}
}

func (r *Redis) tellRecoveries(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.recovery:
		}
		r.mu.Lock()
		since, list := r.since, r.recovered
		r.since = time.Time{}
		r.mu.Unlock()
		for _, f := range list {
			f(since)
		}
	}
}

// Run keeps everything going until ctx ends. Then it says goodbye: presence of this node ends
// after the grace, what is queued is published, and connections are closed. It returns
// when all its goroutines have ended. Close the sockets before.
func (r *Redis) Run(ctx context.Context) error {
	var front, back sync.WaitGroup
	closing, stop := context.WithCancel(context.WithoutCancel(ctx)) // for what ends last
	defer stop()
	front.Go(func() { r.probe.run(ctx) })
	front.Go(func() { r.tellRecoveries(ctx) })
	if r.pres != nil {
		front.Go(func() { r.pres.run(ctx) })
	}
	back.Go(func() { r.pub.run(closing) })
	back.Go(func() { r.main.run(closing) })
	if r.shards != nil {
		back.Go(func() { r.shards.run(closing) })
	}
	<-ctx.Done()
	front.Wait()
	r.tasks.close()
	stop()
	back.Wait()
	return r.server.client.Close()
}

// hearing says that all subscriptions work.
func (r *Redis) hearing() bool {
	return r.main.up() && (r.shards == nil || r.shards.up())
}

// Health gives the reasons why this node may not hear others, or not be heard; none if all
// is well. They follow within 10 s what happens.
func (r *Redis) Health() []string {
	var reasons []string
	if !r.hearing() {
		reasons = append(reasons, "redis: not all subscriptions work")
	}
	if r.pub.isDown() {
		reasons = append(reasons, "redis: publishing fails")
	}
	if r.probe.lost() {
		reasons = append(reasons, "redis: no message comes through pub/sub")
	}
	if r.pres != nil && r.pres.stale() {
		reasons = append(reasons, "redis: presence is not up to date")
	}
	return reasons
}

// Stats are this node's figures, for metrics and tests.
type Stats struct {
	Subscriptions int   // channels that are heard, or about to be
	Connects      int64 // pub/sub connections made so far
	Queued        int   // publications that wait now
	Published     int64 // publications that Redis has taken
	RoundTrips    int64 // that it took for them
	Refused       int64 // because Redis was down or the queue full
	Failed        int64 // on the way
	Events        int64 // chat events that came from other nodes and were delivered here
	Echoes        int64 // own chat events that came back
	Doubles       int64 // chat events that came on a second channel
	Malformed     int64 // that could not be understood
	Unknown       int64 // of a newer version of the program: read from the database instead
}

// QueueBound is how many publications can wait.
const QueueBound = maxQueued

// Stats reads the figures.
func (r *Redis) Stats() Stats {
	s := Stats{
		Subscriptions: r.sub.len(), Connects: r.main.connects.Load(), Queued: r.pub.waiting(),
		Published: r.pub.published.Load(), RoundTrips: r.pub.trips.Load(),
		Refused: r.pub.refused.Load(), Failed: r.pub.failed.Load(),
	}
	if r.bus != nil {
		s.Events, s.Echoes = r.bus.events.Load(), r.bus.echoes.Load()
		s.Doubles, s.Malformed = r.bus.doubles.Load(), r.bus.malformed.Load()
		s.Unknown = r.bus.unknown.Load()
	}
	return s
}

// Times of the probe.
const (
	probeInterval = 2 * time.Second
	probeDown     = 500 * time.Millisecond // between two tries while publishing fails
	probeLimit    = 3                      // probes that may be on their way
)

// probe sends this node messages through Redis: the way that all others take.
type probe struct {
	r       *Redis
	channel string
	sent    uint64       // of run's goroutine
	missing atomic.Int64 // that Redis has taken, and that have not come
}

func newProbe(r *Redis) *probe {
	p := &probe{r: r, channel: r.name("probe", hex.EncodeToString(r.node[:8]))}
	r.sub.touch(classic, p.channel, p)
	return p
}

func (p *probe) wants(string) bool { return true }

func (p *probe) receive(string, []byte) { p.missing.Store(0) }

// lost says that what Redis takes does not come.
func (p *probe) lost() bool { return p.missing.Load() >= probeLimit }

func (p *probe) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if !p.r.main.up() {
			p.missing.Store(0)
		}
		if p.lost() {
			p.r.log.Warn("nothing comes through pub/sub: connecting anew")
			p.missing.Store(0)
			p.r.main.reset()
		}
		p.send()
		if p.r.bus != nil {
			p.r.bus.repairUnread()
		}
		wait := probeInterval
		if p.r.pub.isDown() {
			wait = probeDown
		}
		timer.Reset(wait)
	}
}

func (p *probe) send() {
	p.sent++
	what := publicationTo(classic, p.channel, binary.BigEndian.AppendUint64(nil, p.sent))
	what.probe = true
	what.done = func(err error) {
		if err == nil {
			p.missing.Add(1)
		}
	}
	err := p.r.pub.publish(&what)
	if err != nil { // the queue is full
		p.r.log.Debug("the probe was not sent", "error", err)
	}
}
