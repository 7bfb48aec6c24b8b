package rooms

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"xabar/chat"
)

// BusConfig is what a Bus needs.
type BusConfig struct {
	// Local delivers to the sockets of this node. Required.
	Local chat.Broadcaster
	// Receive takes events of other nodes, for the sockets of this one. It must not wait
	// for anything but a bounded queue, and owns the event. Required. Of a MessageStored, Message
	// has the ids, seq, version, sender, time of creation and number; the whole message is JSON.
	Receive func(event chat.Event)
	// Published is told of each MessageStored that Redis has taken for the other nodes: from
	// then on a crash of this one can keep it from nobody. It must not block. Events that
	// it is not told of have to be published again (the outbox does that). May be nil.
	Published func(event *chat.MessageStored)
	// Tracer records the way of events between nodes; nil: nothing is recorded.
	Tracer chat.Tracer
}

// maxSeparate is up to how many users an event has a publication for each; beyond that all
// nodes get it.
const maxSeparate = 64

// recentEvents is how many events of other nodes are remembered to drop doubles.
const recentEvents = 8192

// Bus is the chat.Broadcaster of a node among others: it delivers here, and publishes to the
// nodes that hold a socket of somebody concerned, on a channel for each user (direct
// conversations) and each group. An event that concerns two users of one node comes there twice
// and is dropped once.
//
// A node hears the channels of the users and groups whose rooms ("user:<id>",
// "conversation:<id>" of the main namespace) have members on it, by the same mechanism that
// subscribes to the rooms' own channels, and those that somebody Holds.
type Bus struct {
	r       *Redis
	cfg     BusConfig
	verb    verb // of users' and groups' channels
	user    string
	group   string
	control string // every node hears it
	number  atomic.Uint64

	mu    sync.Mutex // guards holds
	holds map[string]int

	recent recentSet

	events, echoes, doubles, malformed, unknown atomic.Int64

	// unread is when the first event came that a newer version of the program has published, and
	// that this one can't read, since the last repair; Unix nanoseconds, 0: none has.
	unread atomic.Int64
}

// Bus makes the node's bus. Call it once, before the server has sockets.
func (r *Redis) Bus(cfg BusConfig) *Bus {
	b := &Bus{
		r: r, cfg: cfg, holds: map[string]int{},
		user: r.name("user", ""), group: r.name("conversation", ""), control: r.name("control"),
	}
	if r.opts.Sharded {
		b.verb = sharded
	}
	b.recent.init(recentEvents)
	r.bus = b
	r.sub.touch(classic, b.control, b)
	return b
}

// Channel names end in ids in base64: they are kept twice for each user in Redis.

func (b *Bus) userChannel(id chat.ID) string {
	return channelName(address{name: b.user, id: id, ofOne: true})
}

func (b *Bus) groupChannel(id chat.ID) string {
	return channelName(address{name: b.group, id: id, ofOne: true})
}

func channelName(a address) string { return string(a.append(make([]byte, 0, 64))) }

const (
	userRoomPrefix  = "user:"
	groupRoomPrefix = "conversation:"
)

// channelOf is the channel that a room brings along.
func (b *Bus) channelOf(room string) (string, bool) {
	if text, ok := strings.CutPrefix(room, userRoomPrefix); ok {
		if id, err := uuid.Parse(text); err == nil {
			return b.userChannel(id), true
		}
	}
	if text, ok := strings.CutPrefix(room, groupRoomPrefix); ok {
		if id, err := uuid.Parse(text); err == nil {
			return b.groupChannel(id), true
		}
	}
	return "", false
}

// roomOf is the reverse of channelOf.
func (b *Bus) roomOf(channel string) string {
	prefix := userRoomPrefix
	text, ok := strings.CutPrefix(channel, b.user)
	if !ok {
		prefix = groupRoomPrefix
		text = strings.TrimPrefix(channel, b.group)
	}
	var id uuid.UUID
	if n, err := base64.RawURLEncoding.Decode(id[:], []byte(text)); err != nil || n != len(id) {
		return ""
	}
	return prefix + id.String()
}

// wants implements sink.
func (b *Bus) wants(channel string) bool {
	if channel == b.control {
		return true
	}
	b.mu.Lock()
	held := b.holds[channel] > 0
	b.mu.Unlock()
	if held {
		return true
	}
	a := b.r.adapter.Load()
	return a != nil && a.RoomLen(b.roomOf(channel)) > 0
}

// Hold hears what concerns the users and groups from now on until release is called, and
// returns when Redis has confirmed it: whatever is published after that comes here, and what was
// published before is in the database. Rooms keep the channels open by themselves, so a hold
// is for the time until they are joined. fresh says that something was not heard before the call.
//
// Errors: ErrUnavailable, or ctx's; the hold stands all the same, and OnRecovered
// tells when everything is heard.
func (b *Bus) Hold(ctx context.Context, users, groups []chat.ID) (release func(), fresh bool, err error) {
	channels := make([]string, 0, len(users)+len(groups))
	for _, id := range users {
		channels = append(channels, b.userChannel(id))
	}
	for _, id := range groups {
		channels = append(channels, b.groupChannel(id))
	}
	b.mu.Lock()
	for _, channel := range channels {
		b.holds[channel]++
	}
	b.mu.Unlock()
	fresh, err = b.r.sub.await(ctx, b.verb, channels, b)
	return sync.OnceFunc(func() { b.release(channels) }), fresh, err
}

func (b *Bus) release(channels []string) {
	b.mu.Lock()
	for _, channel := range channels {
		if b.holds[channel]--; b.holds[channel] == 0 {
			delete(b.holds, channel)
		}
	}
	b.mu.Unlock()
	for _, channel := range channels {
		b.r.sub.touch(b.verb, channel, b)
	}
}

// Publish implements chat.Broadcaster. It delivers here and queues for the other nodes; an error
// of the latter (ErrUnavailable, ErrOverloaded) says that they may have missed it.
func (b *Bus) Publish(ctx context.Context, event chat.Event) error {
	local := b.cfg.Local.Publish(ctx, event)
	remote := b.publish(event)
	return errors.Join(local, remote)
}

func (b *Bus) publish(event chat.Event) error {
	if _, volatile := event.(chat.TypingStarted); volatile && b.r.pub.crowded() {
		return nil
	}
	var p publication
	b.direct(&p, event)
	channels := len(p.addresses())
	if channels == 0 {
		return nil
	}
	span := chat.GoOn(b.cfg.Tracer, chat.Traced(event), chat.ProducerSpan, "bus.publish")
	if span != nil {
		span.Int("xabar.channels", int64(channels))
		event = chat.WithTrace(event, span.Context())
	}
	p.pooled = envelopes.Get().(*[]byte)
	var err error
	if *p.pooled, err = appendEnvelope((*p.pooled)[:0], identity{b.r.node, b.number.Add(1)}, event); err != nil {
		chat.EndSpan(span, err)
		return err
	}
	if p.payload = *p.pooled; cap(p.payload) > maxPooled {
		p.pooled = nil
	}
	p.done = b.taken(event, span)
	if err = b.r.pub.publish(&p); err != nil { // nobody else will say so
		chat.EndSpan(span, err)
	}
	return err
}

// taken is what to do when Redis has taken an event for all of its channels, or failed to: nil if
// nobody wants to know.
func (b *Bus) taken(event chat.Event, span chat.Span) func(error) {
	e, stored := event.(*chat.MessageStored)
	if stored = stored && b.cfg.Published != nil; !stored && span == nil {
		return nil
	}
	return func(err error) {
		if stored && err == nil {
			b.cfg.Published(e)
		}
		chat.EndSpan(span, err)
	}
}

// direct adds the channels of whoever an event concerns.
func (b *Bus) direct(p *publication, event chat.Event) {
	switch e := event.(type) {
	case *chat.MessageStored:
		b.members(p, e.Message.ConversationID, e.MemberIDs)
	case *chat.PositionMoved:
		b.members(p, e.ConversationID, e.MemberIDs)
	case chat.TypingStarted:
		others := e.MemberIDs
		if others != nil {
			others = slices.DeleteFunc(slices.Clone(others), func(id chat.ID) bool { return id == e.UserID })
		}
		b.members(p, e.ConversationID, others)
	case chat.ConversationChanged:
		b.changed(p, &e)
	default:
		p.add(address{verb: classic, name: b.control})
	}
}

// members are users, or a group if they are not named.
func (b *Bus) members(p *publication, conversation chat.ID, users []chat.ID) {
	if users == nil {
		p.add(address{verb: b.verb, name: b.group, id: conversation, ofOne: true})
	}
	for _, id := range users {
		p.add(address{verb: b.verb, name: b.user, id: id, ofOne: true})
	}
}

// changed tells the users and, as some of them are no members of it yet or any more, those who
// come and go too.
func (b *Bus) changed(p *publication, e *chat.ConversationChanged) {
	var users []chat.ID
	for _, part := range [][]chat.ID{e.UserIDs, e.Joined, e.Left} {
		for _, id := range part {
			if !slices.Contains(users, id) {
				users = append(users, id)
			}
		}
		if len(users) > maxSeparate {
			p.add(address{verb: classic, name: b.control})
			return
		}
	}
	if e.UserIDs == nil {
		b.members(p, e.ConversationID, nil)
	}
	if len(users) > 0 {
		b.members(p, e.ConversationID, users)
	}
}

// receive implements sink.
func (b *Bus) receive(channel string, payload []byte) {
	id, err := envelopeIdentity(payload)
	if err == nil && id.node == b.r.node {
		b.echoes.Add(1)
		return
	}
	if err == nil && !b.recent.add(id) {
		b.doubles.Add(1)
		return
	}
	var event chat.Event
	if err == nil {
		event, err = decodeEnvelope(payload)
	}
	switch {
	case errors.Is(err, errUnknownEnvelope):
		b.unknown.Add(1)
		b.unread.CompareAndSwap(0, time.Now().UnixNano())
		return
	case err != nil:
		b.malformed.Add(1)
		b.r.log.Warn("a chat event of another node was dropped", "channel", channel, "error", fmt.Errorf("%w, %d bytes", err, len(payload)))
		return
	}
	b.events.Add(1)
	span := chat.GoOn(b.cfg.Tracer, chat.Traced(event), chat.ConsumerSpan, "bus.receive")
	if span != nil {
		event = chat.WithTrace(event, span.Context())
	}
	b.cfg.Receive(event)
	chat.EndSpan(span, nil)
}

// repairUnread has the database asked for what nodes of a newer version have published and this one
// can't read. It is called every probeInterval: one repair for all that came meanwhile.
func (b *Bus) repairUnread() {
	if since := b.unread.Swap(0); since != 0 {
		b.r.recover(time.Unix(0, since))
	}
}

// recentSet remembers the last n identities.
type recentSet struct {
	mu   sync.Mutex // guards the fields below; several connections may receive
	set  map[identity]struct{}
	ring []identity
	next int
}

func (s *recentSet) init(n int) {
	s.set = make(map[identity]struct{})
	s.ring = make([]identity, n)
}

// add says whether id is new.
func (s *recentSet) add(id identity) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.set[id]; known {
		return false
	}
	delete(s.set, s.ring[s.next])
	s.ring[s.next] = id
	s.next = (s.next + 1) % len(s.ring)
	s.set[id] = struct{}{}
	return true
}
