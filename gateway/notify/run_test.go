package notify_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"xabar/chat"
	"xabar/gateway/notify"
	"xabar/internal/testkit/pgtest"
	"xabar/persistence"
	"xabar/persistence/queue"
)

// nobody is online.
type nobody struct{}

func (nobody) Connect(context.Context, chat.ID, string) error    { return nil }
func (nobody) Disconnect(context.Context, chat.ID, string) error { return nil }
func (nobody) Watch(func(chat.PresenceState))                    {}
func (nobody) Online(_ context.Context, users []chat.ID) ([]bool, error) {
	return make([]bool, len(users)), nil
}

// channel hands what it is given to the test.
type channel chan chat.Notification

func (channel) Channel() string { return chat.ChannelWebhook }
func (c channel) Notify(_ context.Context, n chat.Notification, _ json.RawMessage) (chat.Outcome, error) {
	c <- n
	return chat.Outcome{Sent: true}, nil
}

// TestRun: the whole way in real time, with two nodes on one database, one of which
// stores and neither of which is told anything else.
func TestRun(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "xabar.db") },
		"postgres": func(t *testing.T) string { return pgtest.Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testRun(t, url(t))
		})
	}
}

func testRun(t *testing.T, url string) {
	const wait = 500 * time.Millisecond
	got := make(channel, 100)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	var running sync.WaitGroup
	var stores []chat.Store
	var nodes []*notify.Scheduler
	for range 2 {
		store, err := persistence.Open(t.Context(), url, persistence.Options{Logger: log, Migrate: true})
		if err != nil {
			t.Fatal(err)
		}
		q, err := queue.Open(t.Context(), url, queue.Options{Channels: []string{chat.ChannelWebhook}, Logger: log, Migrate: true, Poll: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		node := notify.New(notify.Options{
			Store: store, Presence: nobody{}, Queue: q, Notifiers: []chat.Notifier{got}, Logger: log,
			Policy: chat.NotifyPolicy{Wait: wait, Everybody: []string{chat.ChannelWebhook}},
		})
		running.Go(func() {
			if err := node.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(func() {
			stop()
			running.Wait()
			if err := q.Close(); err != nil {
				t.Error(err)
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
		stores, nodes = append(stores, store), append(nodes, node)
	}
	users := make([]chat.ID, 11)
	for i := range users {
		u, err := stores[0].EnsureUser(t.Context(), chat.UserRef(chat.NewID().String()), "user")
		if err != nil {
			t.Fatal(err)
		}
		users[i] = u.ID
	}
	group, err := stores[0].CreateGroup(t.Context(), users[0], "Team", users[1:])
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for n := range 5 {
		sent := make(chan error, 1)
		stores[n%2].Send(t.Context(), chat.SendMessage{SenderID: users[0], ConversationID: group.ID, ClientMsgID: chat.NewID().String(), Text: "hello"},
			func(r chat.SendResult, err error) {
				nodes[n%2].FannedOut(&chat.MessageStored{Message: r.Message, Kind: r.Kind, MemberIDs: r.MemberIDs, MemberCount: r.MemberCount})
				sent <- err
			})
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	notified := map[chat.ID]int{}
	deadline := time.After(30 * time.Second)
	for len(notified) < 10 {
		select {
		case n := <-got:
			notified[n.User.ID]++
			if c := n.Conversations; len(c) != 1 || c[0].Count != 5 || c[0].Title != "Team" || n.Badge != 5 {
				t.Errorf("notified of %+v, badge %d", c, n.Badge)
			}
			if after := time.Since(begun); after < wait {
				t.Errorf("notified after %v", after)
			}
		case <-deadline:
			t.Fatalf("%d of 10 were notified", len(notified))
		}
	}
	// Nobody twice, also when the wait would be over again.
	select {
	case n := <-got:
		t.Errorf("one too many: %+v", n)
	case <-time.After(3 * wait):
	}
	for _, node := range nodes {
		if n, err := node.Sweep(t.Context()); n != 0 || err != nil {
			t.Errorf("left over: %d, %v", n, err)
		}
	}
}
