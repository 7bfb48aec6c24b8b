package events_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"xabar/chat"
	"xabar/gateway/events"
	"xabar/gateway/socketio"
	"xabar/gateway/socketio/socketiotest"
	"xabar/persistence"
	"xabar/rooms"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is a hub with its own service and server, on a store that others share.
type node struct {
	hub     *events.Hub
	service *chat.Service
	url     string
}

// bus is a chat.Broadcaster that delivers at once on its own node and lets the
// test decide what becomes of an event on the way to the other.
type bus struct {
	own   *events.Hub
	other func(chat.Event)
}

func (b *bus) Publish(ctx context.Context, event chat.Event) error {
	err := b.own.Publish(ctx, event)
	b.other(event)
	return err
}

func openStore(t *testing.T) chat.Store {
	t.Helper()
	store, err := persistence.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "test.db"), persistence.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// start makes a node; tokens are users' external ids.
func start(t *testing.T, store chat.Store, other func(chat.Event)) *node {
	t.Helper()
	n := &node{hub: events.New(events.Config{
		Cluster: true,
		Authenticate: func(ctx context.Context, token string) (chat.Actor, error) {
			user, err := store.EnsureUser(ctx, chat.UserRef(token), "")
			return chat.Actor{User: user}, err
		},
	})}
	presence := rooms.NewMemoryPresence(chat.SystemClock{}, store.SetLastSeen, nil)
	n.service = chat.NewService(chat.ServiceConfig{Store: store, Broadcaster: &bus{n.hub, other}, Presence: presence})
	io := socketio.NewServer(socketio.Options{})
	n.hub.Attach(n.service, presence, io.Of("/"))
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = n.hub.Run(ctx) })
	t.Cleanup(func() { // after the server's, which Start registers below
		presence.Close()
		stop()
		running.Wait()
	})
	n.url = socketiotest.Start(t, io)
	return n
}

// dial connects a user that syncs, and returns when its session is open.
func dial(t *testing.T, n *node, user string) *socketiotest.Client {
	t.Helper()
	c := socketiotest.Dial(t, n.url, socketiotest.Options{})
	c.Connect("/", fmt.Sprintf(`{"token":%q,"sync":true}`, user))
	if got := c.Next(); !strings.Contains(got, `"session"`) {
		t.Fatalf("the first event is %s", got)
	}
	return c
}

// nextMessage is the seq of the next message event; everything else is passed over.
func nextMessage(t *testing.T, c *socketiotest.Client) int64 {
	t.Helper()
	_, seq := nextWithAck(t, c)
	return seq
}

func (n *node) send(t *testing.T, from chat.User, conversation chat.ID, id string) {
	t.Helper()
	done := make(chan error, 1)
	n.service.Send(t.Context(), chat.Actor{User: from}, chat.SendRequest{
		ConversationID: &conversation, ClientMsgID: id, Text: id,
	}, func(_ chat.Sent, err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// pair makes two users with a conversation.
func pair(t *testing.T, store chat.Store) (a, b chat.User, conversation chat.ID) {
	t.Helper()
	var users [2]chat.User
	for i, name := range []string{"a", "b"} {
		var err error
		if users[i], err = store.EnsureUser(t.Context(), chat.UserRef(name), name); err != nil {
			t.Fatal(err)
		}
	}
	opened, _, err := store.OpenDirect(t.Context(), users[0].ID, users[1].ID)
	if err != nil {
		t.Fatal(err)
	}
	return users[0], users[1], opened.ID
}

// DESIGN guarantee 3: live messages reach a socket in rising seq, however events
// of other nodes overtake each other, come twice, or not at all.
func TestLiveMessagesRiseWhateverTheWayDoes(t *testing.T) {
	store := openStore(t)
	a, _, conversation := pair(t, store)
	var mu sync.Mutex
	var onTheWay []chat.Event
	n2 := start(t, store, func(chat.Event) {})
	n1 := start(t, store, func(e chat.Event) {
		if _, ok := e.(*chat.MessageStored); ok {
			mu.Lock()
			onTheWay = append(onTheWay, e)
			mu.Unlock()
		}
	})
	b := dial(t, n2, "b")
	// arrive brings what n1 published, in the given order; each index is from 0.
	arrive := func(order ...int) {
		t.Helper()
		deadline := time.Now().Add(5 * time.Second)
		for {
			mu.Lock()
			n := len(onTheWay)
			mu.Unlock()
			if n > 0 && n >= slices.Max(order)+1 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d events were published", n)
			}
			time.Sleep(time.Millisecond)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, i := range order {
			if err := n2.hub.Receive(t.Context(), onTheWay[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	expect := func(seqs ...int64) {
		t.Helper()
		for _, want := range seqs {
			if got := nextMessage(t, b); got != want {
				t.Fatalf("seq %d came, want %d", got, want)
			}
		}
	}
	for i := range 10 {
		n1.send(t, a, conversation, fmt.Sprint("x", i+1))
	}
	arrive(0)
	expect(1)
	arrive(3, 2, 1) // overtaken
	expect(2, 3, 4)
	arrive(1, 2, 0) // repeated: nothing, as the next seqs show
	arrive(5)       // 5 is lost on the way: read after the wait
	expect(5, 6)
	arrive(4) // and comes after all: nothing
	arrive(9) // so are 7 to 9
	expect(7, 8, 9, 10)
}

// What is missed while events do not arrive at all comes by Repair.
func TestRepairBringsWhatDidNotArrive(t *testing.T) {
	store := openStore(t)
	a, _, conversation := pair(t, store)
	n2 := start(t, store, func(chat.Event) {})
	n1 := start(t, store, func(chat.Event) {})
	b := dial(t, n2, "b")
	began := time.Now()
	for i := range 60 {
		n1.send(t, a, conversation, fmt.Sprint("x", i+1))
	}
	n2.hub.Repair(began)
	for want := int64(1); want <= 60; want++ {
		packet, seq := nextWithAck(t, b)
		if seq != want {
			t.Fatalf("seq %d came, want %d", seq, want)
		}
		b.Send("3" + packet + "[]")
	}
	deadline := time.Now().Add(5 * time.Second)
	for {
		view, err := store.Conversation(t.Context(), mustUser(t, store, "b"), conversation)
		if err != nil {
			t.Fatal(err)
		}
		if view.LastDeliveredSeq == 60 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("delivered is %d", view.LastDeliveredSeq)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func mustUser(t *testing.T, store chat.Store, name string) chat.ID {
	t.Helper()
	users, err := store.ResolveUsers(t.Context(), []chat.UserRef{chat.UserRef(name)})
	if err != nil {
		t.Fatal(err)
	}
	return users[0].ID
}

// nextWithAck is the next message's acknowledgement id and seq.
func nextWithAck(t *testing.T, c *socketiotest.Client) (id string, seq int64) {
	t.Helper()
	for {
		packet := c.Next()
		at := strings.Index(packet, `["message",`)
		if at < 0 {
			continue
		}
		var args []json.RawMessage
		var m chat.Message
		if err := json.Unmarshal([]byte(packet[at:]), &args); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(args[1], &m); err != nil {
			t.Fatal(err)
		}
		return packet[2:at], m.Seq
	}
}
