package rooms_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"xabar/chat"
	"xabar/gateway/engineio"
	"xabar/gateway/socketio"
	"xabar/gateway/socketio/socketiotest"
	"xabar/internal/testkit/redistest"
	"xabar/rooms"
)

// node is one node with what a hub would be.
type node struct {
	*rooms.Redis
	bus  *rooms.Bus
	stop func()

	mu        sync.Mutex // guards the fields below
	arrived   sync.Cond  // of remote
	local     []chat.Event
	remote    []chat.Event
	published []int64 // seqs
	recovered []time.Time
}

// Publish is the hub's.
func (n *node) Publish(_ context.Context, event chat.Event) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.local = append(n.local, event)
	return nil
}

func (n *node) receive(event chat.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.remote = append(n.remote, event)
	n.arrived.Broadcast()
}

// await waits until n events have come from other nodes.
func (n *node) await(count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.remote) < count {
		n.arrived.Wait()
	}
}

func newNode(t testing.TB, url string, opts rooms.Options) *node {
	t.Helper()
	n := &node{Redis: open(t, url, opts)}
	n.arrived.L = &n.mu
	n.bus = n.Bus(rooms.BusConfig{Local: n, Receive: n.receive, Published: func(e *chat.MessageStored) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.published = append(n.published, e.Message.Seq)
	}})
	n.OnRecovered(func(since time.Time) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.recovered = append(n.recovered, since)
	})
	return n
}

func startNode(t testing.TB, url string, opts rooms.Options) *node {
	n := newNode(t, url, opts)
	n.stop = run(t, n.Redis)
	return n
}

// seqs are those of the messages from other nodes, in the order in which they came.
func (n *node) seqs() []int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []int64
	for _, e := range n.remote {
		if m, ok := e.(*chat.MessageStored); ok {
			list = append(list, m.Message.Seq)
		}
	}
	return list
}

func (n *node) remoteLen() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.remote)
}

// hold hears users and groups until the test ends.
func (n *node) hold(t testing.TB, users, groups []chat.ID) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, _, err := n.bus.Hold(ctx, users, groups); err != nil {
		t.Fatal(err)
	}
}

func direct(seq int64, a, b chat.ID) *chat.MessageStored {
	m := chat.Message{ID: chat.NewID(), ConversationID: chat.NewID(), Seq: seq, Version: seq, SenderID: a, Text: "é", CreatedAt: chat.At(time.Now())}
	return &chat.MessageStored{Message: m, Kind: chat.Direct, MemberIDs: []chat.ID{a, b}, MemberCount: 2, JSON: m.AppendJSON(nil)}
}

// bothModes runs a test with ordinary and with sharded pub/sub.
func bothModes(t *testing.T, f func(t *testing.T, url string, opts rooms.Options)) {
	url := redistest.Start(t).URL
	for name, sharded := range map[string]bool{"classic": false, "sharded": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := isolated()
			opts.Sharded = sharded
			f(t, url, opts)
		})
	}
	t.Run("sharded in a cluster", func(t *testing.T) {
		t.Parallel()
		opts := isolated()
		opts.Sharded = true
		f(t, redistest.StartCluster(t).URL, opts)
	})
}

func TestAMessageDoesWorkOnlyWhereItsUsersAre(t *testing.T) {
	bothModes(t, func(t *testing.T, url string, opts rooms.Options) {
		var nodes []*node
		for range 8 {
			nodes = append(nodes, startNode(t, url, opts))
		}
		for _, n := range nodes {
			healthy(t, n.Redis)
		}
		alice, bob := chat.NewID(), chat.NewID()
		nodes[0].hold(t, []chat.ID{alice}, nil)
		nodes[1].hold(t, []chat.ID{bob}, nil)
		nodes[2].hold(t, []chat.ID{alice, bob}, nil) // their second devices
		const count = 200
		for seq := int64(1); seq <= count; seq++ {
			if err := nodes[0].bus.Publish(t.Context(), direct(seq, alice, bob)); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range nodes[1:3] {
			eventually(t, "all have come", func() bool { return len(n.seqs()) == count })
		}
		for i, seq := range nodes[1].seqs() {
			if seq != int64(i+1) {
				t.Fatalf("message %d is %d", i, seq)
			}
		}
		eventually(t, "Redis has them", func() bool { return nodes[0].Stats().Published >= 2*count })
		for i, n := range nodes {
			s := n.Stats()
			want := rooms.Stats{}
			switch i {
			case 0:
				want.Echoes = count
			case 1:
				want.Events = count
			case 2:
				want.Events, want.Doubles = count, count
			}
			eventually(t, "the figures", func() bool { s = n.Stats(); return s.Echoes == want.Echoes && s.Doubles == want.Doubles })
			if s.Events != want.Events || s.Malformed != 0 {
				t.Errorf("node %d: %+v", i, s)
			}
		}
		if n := len(nodes[0].published); n != count {
			t.Errorf("%d of %d are known to be published", n, count)
		}
	})
}

func TestEveryEventReachesWhomItConcerns(t *testing.T) {
	bothModes(t, func(t *testing.T, url string, opts rooms.Options) {
		a, b := startNode(t, url, opts), startNode(t, url, opts)
		healthy(t, a.Redis, b.Redis)
		user, other, group := chat.NewID(), chat.NewID(), chat.NewID()
		b.hold(t, []chat.ID{user}, []chat.ID{group})
		var crowd []chat.ID
		for range 200 {
			crowd = append(crowd, chat.NewID())
		}
		now := chat.At(time.Now())
		stored := direct(3, user, other)
		inGroup := direct(4, other, user)
		inGroup.Message.ConversationID, inGroup.Kind, inGroup.MemberIDs = group, chat.Group, nil
		events := []chat.Event{
			stored, inGroup,
			&chat.PositionMoved{Kind: chat.Read, ConversationID: group, ConversationKind: chat.Group, UserID: other, Old: 1, Seq: 3, At: now, MemberCount: 3},
			&chat.PositionMoved{Kind: chat.Delivered, ConversationID: chat.NewID(), ConversationKind: chat.Direct, UserID: other, Seq: 3, At: now, MemberIDs: []chat.ID{other, user}, MemberCount: 2},
			chat.TypingStarted{ConversationID: group, UserID: other},
			chat.TypingStarted{ConversationID: chat.NewID(), UserID: other, MemberIDs: []chat.ID{other, user}},
			chat.ConversationChanged{ConversationID: group, Joined: []chat.ID{other}},
			chat.ConversationChanged{ConversationID: chat.NewID(), UserIDs: []chat.ID{}, Left: []chat.ID{user}},
			chat.ConversationChanged{ConversationID: chat.NewID(), UserIDs: crowd, Joined: crowd},
			chat.PresenceChanged{PresenceState: chat.PresenceState{UserID: other, LastSeenAt: &now}},
			chat.AccessRevoked{UserID: other, Before: now.Time},
			chat.BlockChanged{A: user, B: other},
		}
		for _, e := range events {
			if err := a.bus.Publish(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		// Nobody here is concerned by these.
		for _, e := range []chat.Event{direct(9, other, chat.NewID()), chat.TypingStarted{UserID: user, MemberIDs: []chat.ID{user}}} {
			if err := a.bus.Publish(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "all have come", func() bool { return b.remoteLen() >= len(events) })
		b.mu.Lock()
		defer b.mu.Unlock()
		got := map[string]int{}
		for _, e := range b.remote {
			got[show(t, e)]++
		}
		for _, e := range events {
			if got[show(t, e)] != 1 {
				t.Errorf("%d times: %s", got[show(t, e)], show(t, e))
			}
		}
		if len(b.remote) != len(events) || len(a.local) != len(events)+2 {
			t.Errorf("%d events came, %d were delivered here", len(b.remote), len(a.local))
		}
	})
}

// show is what an envelope keeps of an event, with its type.
func show(t *testing.T, event chat.Event) string {
	if e, ok := event.(*chat.MessageStored); ok {
		textless := *e
		textless.Message.Text = ""
		event = &textless
	}
	text, err := json.Marshal([]any{typeName(event), event})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func typeName(event chat.Event) string {
	switch event.(type) {
	case *chat.MessageStored:
		return "message"
	case *chat.PositionMoved:
		return "position"
	case chat.TypingStarted:
		return "typing"
	case chat.ConversationChanged:
		return "conversation"
	case chat.PresenceChanged:
		return "presence"
	case chat.AccessRevoked:
		return "revoked"
	case chat.BlockChanged:
		return "block"
	}
	return "unknown"
}

// TestRoomsKeepTheirUsersHeard: a hold covers the time until the rooms are joined.
func TestRoomsKeepTheirUsersHeard(t *testing.T) {
	bothModes(t, func(t *testing.T, url string, opts rooms.Options) {
		a, b := startNode(t, url, opts), newNode(t, url, opts)
		io := socketio.NewServer(socketio.Options{
			Options: engineio.Options{Logger: slog.New(slog.DiscardHandler)}, Adapter: b.Adapters(),
		})
		run(t, b.Redis)
		server := socketiotest.Start(t, io)
		healthy(t, a.Redis, b.Redis)
		base := b.Stats().Subscriptions
		user, group := chat.NewID(), chat.NewID()
		send := func() {
			t.Helper()
			before := len(b.seqs())
			for _, e := range []*chat.MessageStored{direct(1, user, chat.NewID()), {Message: chat.Message{ConversationID: group, Seq: 2}}} {
				if err := a.bus.Publish(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "both have come", func() bool { return len(b.seqs()) == before+2 })
		}
		for range 50 { // whatever is published once Hold has returned comes
			release, fresh, err := b.bus.Hold(t.Context(), []chat.ID{user}, []chat.ID{group})
			if err != nil || !fresh {
				t.Fatalf("fresh %v, %v", fresh, err)
			}
			send()
			release()
			eventually(t, "nothing is held", func() bool { return b.Stats().Subscriptions == base })
		}
		release, _, err := b.bus.Hold(t.Context(), []chat.ID{user}, []chat.ID{group})
		if err != nil {
			t.Fatal(err)
		}
		c := socketiotest.Dial(t, server, socketiotest.Options{})
		s := io.Socket(c.Connect("/", ""))
		if err := s.Join("user:"+user.String(), "conversation:"+group.String(), "presence:x"); err != nil {
			t.Fatal(err)
		}
		release()
		send()
		if _, fresh, err := b.bus.Hold(t.Context(), []chat.ID{user}, nil); fresh || err != nil {
			t.Fatalf("what is heard already: fresh %v, %v", fresh, err)
		}
		if got := b.Stats().Subscriptions; got != base+4 { // two of the rooms, two of the bus
			t.Errorf("%d subscriptions, %d at base", got, base)
		}
	})
}

// TestHoldWithoutRedis: nobody waits for a Redis that is not there.
func TestHoldWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	server.Stop()
	n := startNode(t, server.URL, isolated())
	user := chat.NewID()
	start := time.Now()
	release, _, err := n.bus.Hold(t.Context(), []chat.ID{user}, nil)
	if !errors.Is(err, rooms.ErrUnavailable) || time.Since(start) > time.Second {
		t.Fatalf("%v after %v", err, time.Since(start))
	}
	defer release()
	eventually(t, "it is said", func() bool { return len(n.Health()) > 0 })
	server.Restart()
	healthy(t, n.Redis)
	eventually(t, "the recovery is told", func() bool { n.mu.Lock(); defer n.mu.Unlock(); return len(n.recovered) == 1 })
	other := startNode(t, server.URL, isolated())
	healthy(t, other.Redis)
}
