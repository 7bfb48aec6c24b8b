package rooms

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"xabar/gateway/socketio"
)

// requestTimeout is how long other servers have for an answer, as in Node's adapters, unless
// the caller's context ends before.
const requestTimeout = 5 * time.Second

// redisAdapter is the socketio.Adapter of a namespace whose sockets are on several servers. Its
// local part is the memory adapter. dialect is which of Node's two adapters it speaks with.
type redisAdapter struct {
	*socketio.MemoryAdapter
	ns      *socketio.Namespace
	redis   *Redis
	dialect dialect
	uid     string
	log     *slog.Logger
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	slow    *serial

	mu       sync.Mutex // guards the fields below
	closed   bool
	oddIDs   map[string]struct{} // ids of local sockets that do not look like one
	requests map[string]func(*message)
}

// dialect is the wire format of one of Node's adapters, and the names of its channels.
type dialect interface {
	// base are the channels that are heard as long as the adapter is open.
	base() []topic
	// room is the channel of a room of its own, if it has one.
	room(name string) (topic, bool)
	// member is the room that a channel made by room belongs to.
	member(channel string) string
	encode(m *message) (publication, error)
	decode(channel string, payload []byte) (*message, error)
	// counted is the channel whose subscribers are the servers.
	counted() topic
}

// topic is a channel, or pattern, and how it is subscribed to.
type topic struct {
	verb verb
	name string
}

func newAdapter(r *Redis, ns *socketio.Namespace) *redisAdapter {
	a := &redisAdapter{
		MemoryAdapter: socketio.NewMemory(ns), ns: ns, redis: r, uid: randomID(),
		log: r.log.With("namespace", ns.Name()), slow: newSerial(&r.tasks),
		oddIDs: map[string]struct{}{}, requests: map[string]func(*message){},
	}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	if r.opts.Sharded {
		a.dialect = newShardedDialect(r.opts.Key, ns.Name(), a.uid)
	} else {
		a.dialect = newClassicDialect(r.opts.Key, ns.Name(), a.uid)
	}
	for _, t := range a.dialect.base() {
		r.sub.touch(t.verb, t.name, a)
	}
	return a
}

// wants implements sink: a room's channel while the room has members here, the others
// always.
func (a *redisAdapter) wants(channel string) bool {
	a.mu.Lock()
	closed := a.closed
	a.mu.Unlock()
	if closed {
		return false
	}
	for _, t := range a.dialect.base() {
		if t.name == channel {
			return true
		}
	}
	room := a.dialect.member(channel)
	if a.RoomLen(room) > 0 {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, odd := a.oddIDs[room]
	return odd
}

// AddAll implements socketio.Adapter.
func (a *redisAdapter) AddAll(s *socketio.Socket, rooms []string) int {
	added := a.MemoryAdapter.AddAll(s, rooms)
	if added == 0 {
		return 0
	}
	for _, room := range rooms {
		if room == s.ID() && !looksLikeSocketID(room) {
			a.mu.Lock()
			a.oddIDs[room] = struct{}{}
			a.mu.Unlock()
		}
		if t, ok := a.topic(room); ok {
			a.redis.sub.joined(t.verb, t.name, a)
		}
		a.redis.follow(a, room, a.redis.sub.joined)
	}
	return added
}

// Del implements socketio.Adapter.
func (a *redisAdapter) Del(s *socketio.Socket, room string) bool {
	had := a.MemoryAdapter.Del(s, room)
	if had {
		a.left(s, room)
	}
	return had
}

// DelAll implements socketio.Adapter.
func (a *redisAdapter) DelAll(s *socketio.Socket) {
	rooms := a.SocketRooms(s)
	a.MemoryAdapter.DelAll(s)
	for _, room := range rooms {
		a.left(s, room)
	}
}

// left looks after the channels of a room that somebody has left.
func (a *redisAdapter) left(s *socketio.Socket, room string) {
	if a.RoomLen(room) > 0 {
		return // whoever leaves last comes by here after that
	}
	if room == s.ID() {
		a.mu.Lock()
		delete(a.oddIDs, room)
		a.mu.Unlock()
	}
	if t, ok := a.topic(room); ok {
		a.redis.sub.touch(t.verb, t.name, a)
	}
	a.redis.follow(a, room, a.redis.sub.touch)
}

// topic is the room's own channel, if it has one.
func (a *redisAdapter) topic(room string) (topic, bool) {
	if a.redis.isLocal(room) {
		return topic{}, false
	}
	return a.dialect.room(room)
}

// publish sends a message to the other servers.
func (a *redisAdapter) publish(m *message) error {
	m.from, m.namespace = a.uid, a.ns.Name()
	p, err := a.dialect.encode(m)
	if err != nil {
		return fmt.Errorf("rooms: encode: %w", err)
	}
	return a.redis.pub.publish(&p)
}

// tell is publish, but for Local.
func (a *redisAdapter) tell(m *message) error {
	if m.opts.Flags.Local {
		return nil
	}
	return a.publish(m)
}

// Broadcast implements socketio.Adapter. With an error the sockets of this server have got it.
func (a *redisAdapter) Broadcast(p *socketio.Prepared, opts *socketio.BroadcastOptions) error {
	err := a.tell(&message{kind: kindBroadcast, data: p.Packet().Data, attachments: p.Packet().Attachments, opts: *opts})
	if local := a.MemoryAdapter.Broadcast(p, opts); local != nil {
		return local
	}
	return err
}

// BroadcastWithAck implements socketio.Adapter.
func (a *redisAdapter) BroadcastWithAck(ctx context.Context, p *socketio.Prepared, opts *socketio.BroadcastOptions, onServer func(int), onAck func(socketio.Args)) error {
	if !opts.Flags.Local {
		m := &message{kind: kindBroadcast, data: p.Packet().Data, attachments: p.Packet().Attachments, opts: *opts}
		if deadline, ok := ctx.Deadline(); ok && m.opts.Flags.Timeout == 0 {
			m.opts.Flags.Timeout = time.Until(deadline)
		}
		m.request = randomID()
		a.expect(m.request, func(answer *message) {
			switch answer.kind {
			case kindCount:
				onServer(answer.count)
			case kindAck:
				onAck(socketio.NewArgs(oneArg(answer.data), answer.attachments))
			}
		})
		context.AfterFunc(ctx, func() { a.forget(m.request) })
		if err := a.publish(m); err != nil {
			a.forget(m.request)
			return err
		}
	}
	return a.MemoryAdapter.BroadcastWithAck(ctx, p, opts, onServer, onAck)
}

// ServerCount implements socketio.Adapter.
func (a *redisAdapter) ServerCount(ctx context.Context) (int, error) {
	if !a.redis.hearing() {
		return 0, ErrUnavailable // its own subscription would not be counted
	}
	t := a.dialect.counted()
	n, err := a.redis.server.serverCount(ctx, t.verb, t.name)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return max(n, 1), nil
}

// AddSockets implements socketio.Adapter.
func (a *redisAdapter) AddSockets(opts *socketio.BroadcastOptions, rooms []string) error {
	err := a.tell(&message{kind: kindJoin, opts: *opts, rooms: rooms})
	if local := a.MemoryAdapter.AddSockets(opts, rooms); local != nil {
		return local
	}
	return err
}

// DelSockets implements socketio.Adapter.
func (a *redisAdapter) DelSockets(opts *socketio.BroadcastOptions, rooms []string) error {
	err := a.tell(&message{kind: kindLeave, opts: *opts, rooms: rooms})
	if local := a.MemoryAdapter.DelSockets(opts, rooms); local != nil {
		return local
	}
	return err
}

// DisconnectSockets implements socketio.Adapter.
func (a *redisAdapter) DisconnectSockets(opts *socketio.BroadcastOptions, close bool) error {
	err := a.tell(&message{kind: kindDisconnect, opts: *opts, close: close})
	if local := a.MemoryAdapter.DisconnectSockets(opts, close); local != nil {
		return local
	}
	return err
}

// ServerSideEmit implements socketio.Adapter.
func (a *redisAdapter) ServerSideEmit(event string, args socketio.Args) error {
	data, err := eventArray(event, args)
	if err != nil {
		return err
	}
	return a.publish(&message{kind: kindServerSide, data: data, attachments: args.Attachments()})
}

// Close implements socketio.Adapter.
func (a *redisAdapter) Close() error {
	a.cancel()
	a.mu.Lock()
	a.closed = true
	clear(a.requests)
	a.mu.Unlock()
	for _, t := range a.dialect.base() {
		a.redis.sub.touch(t.verb, t.name, a)
	}
	for _, room := range a.Rooms() {
		if t, ok := a.topic(room); ok {
			a.redis.sub.touch(t.verb, t.name, a)
		}
	}
	a.redis.forgetAdapter(a)
	return nil
}
