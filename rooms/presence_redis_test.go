package rooms_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"xabar/chat"
	"xabar/internal/testkit/faultproxy"
	"xabar/internal/testkit/redistest"
	"xabar/rooms"
)

// watcher is a node's presence with everything that it has announced and stored.
type watcher struct {
	*rooms.Redis
	pres *rooms.RedisPresence
	stop func()

	mu        sync.Mutex // guards the fields below
	announced []chat.PresenceState
	stored    map[chat.ID][]time.Time
}

func startWatcher(t testing.TB, url string, opts rooms.Options) *watcher {
	t.Helper()
	w := &watcher{Redis: open(t, url, opts), stored: map[chat.ID][]time.Time{}}
	w.pres = w.Presence(chat.SystemClock{}, w.store)
	w.pres.Watch(w.hear)
	w.stop = run(t, w.Redis)
	return w
}

func (w *watcher) hear(s chat.PresenceState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.announced = append(w.announced, s)
}

// store takes last times.
func (w *watcher) store(_ context.Context, seen map[chat.ID]time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for user, at := range seen {
		w.stored[user] = append(w.stored[user], at)
	}
	return nil
}

// story is what was announced of a user: "+" for online, "-" for offline.
func (w *watcher) story(user chat.ID) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := ""
	for _, a := range w.announced {
		switch {
		case a.UserID != user:
		case a.Online:
			s += "+"
		default:
			s += "-"
			if a.LastSeenAt == nil {
				s += "?"
			}
		}
	}
	return s
}

func (w *watcher) lastSeen(user chat.ID) []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stored[user]
}

func (w *watcher) connect(t testing.TB, user chat.ID, connection string) {
	t.Helper()
	if err := w.pres.Connect(t.Context(), user, connection); err != nil {
		t.Fatal(err)
	}
}

func (w *watcher) disconnect(t testing.TB, user chat.ID, connection string) {
	t.Helper()
	if err := w.pres.Disconnect(t.Context(), user, connection); err != nil {
		t.Fatal(err)
	}
}

func (w *watcher) online(t testing.TB, users ...chat.ID) []bool {
	t.Helper()
	online, err := w.pres.Online(t.Context(), users)
	if err != nil {
		t.Fatal(err)
	}
	return online
}

// told waits for a story at every watcher.
func told(t testing.TB, user chat.ID, story string, watchers ...*watcher) {
	t.Helper()
	for i, w := range watchers {
		what := fmt.Sprintf("node %d tells %q", i, story)
		eventually(t, what, func() bool {
			got := w.story(user)
			if len(got) > len(story) {
				t.Fatalf("%s, but told %q", what, got)
			}
			return got == story
		})
	}
}

func onBoth(t *testing.T, f func(t *testing.T, url string)) {
	t.Run("one server", func(t *testing.T) { t.Parallel(); f(t, redistest.Start(t).URL) })
	t.Run("cluster", func(t *testing.T) { t.Parallel(); f(t, redistest.StartCluster(t).URL) })
}

func TestSeveralTabsAreOneUser(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		opts := isolated()
		a, b := startWatcher(t, url, opts), startWatcher(t, url, opts)
		healthy(t, a.Redis, b.Redis)
		user, nobody := chat.NewID(), chat.NewID()
		a.connect(t, user, "tab 1")
		told(t, user, "+", a, b)
		a.connect(t, user, "tab 2")
		b.connect(t, user, "phone")
		if got := b.online(t, user, nobody); !got[0] || got[1] {
			t.Fatalf("online %v", got)
		}
		a.disconnect(t, user, "tab 1")
		b.disconnect(t, user, "phone")
		time.Sleep(rooms.PresenceGrace + 500*time.Millisecond) // that nothing happens takes its time
		told(t, user, "+", a, b)
		left := time.Now()
		a.disconnect(t, user, "tab 2")
		if got := b.online(t, user); !got[0] {
			t.Fatal("offline within the grace")
		}
		told(t, user, "+-", a, b)
		if took := time.Since(left); took < rooms.PresenceGrace || took > rooms.PresenceGrace+2*time.Second {
			t.Errorf("offline after %v", took)
		}
		if got := append(a.online(t, user), b.online(t, user)...); got[0] || got[1] {
			t.Errorf("online %v", got)
		}
		eventually(t, "the last time is stored", func() bool { return len(a.lastSeen(user)) == 1 })
		if at := a.lastSeen(user)[0]; at.Sub(left) > time.Second || len(b.lastSeen(user)) > 0 {
			t.Errorf("last seen %v after leaving, by the other node %v", at.Sub(left), b.lastSeen(user))
		}
	})
}

func TestABlipIsNoChangeWhereverTheUserComesBack(t *testing.T) {
	t.Parallel()
	url, opts := redistest.Start(t).URL, isolated()
	a, b := startWatcher(t, url, opts), startWatcher(t, url, opts)
	healthy(t, a.Redis, b.Redis)
	user := chat.NewID()
	a.connect(t, user, "1")
	told(t, user, "+", a, b)
	a.disconnect(t, user, "1")
	a.connect(t, user, "2")
	a.disconnect(t, user, "2")
	b.connect(t, user, "3")
	time.Sleep(rooms.PresenceGrace + time.Second) // that nothing happens takes its time
	told(t, user, "+", a, b)
	if got := a.online(t, user); !got[0] {
		t.Error("offline at the first node")
	}
}

// TestADeadNodesUsersGoOffline: one of the others announces them, within the time to live.
func TestADeadNodesUsersGoOffline(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
	opts := isolated()
	opts.PresenceTTL = 5 * time.Second
	dying := startWatcher(t, "redis://"+proxy.Addr, opts)
	b, c := startWatcher(t, server.URL, opts), startWatcher(t, server.URL, opts)
	healthy(t, dying.Redis, b.Redis, c.Redis)
	users := make([]chat.ID, 10)
	for i := range users {
		users[i] = chat.NewID()
		dying.connect(t, users[i], "1")
		told(t, users[i], "+", b, c)
	}
	elsewhere := users[9]
	c.connect(t, elsewhere, "2")
	start := time.Now()
	proxy.Cut()
	for _, user := range users[:9] {
		told(t, user, "+-", b, c)
	}
	if took := time.Since(start); took > opts.PresenceTTL {
		t.Errorf("that took %v", took)
	}
	told(t, elsewhere, "+", b, c)
	for _, user := range users[:9] {
		eventually(t, "the last time is stored", func() bool { return len(b.lastSeen(user))+len(c.lastSeen(user)) == 1 })
		for _, at := range append(b.lastSeen(user), c.lastSeen(user)...) {
			if age := start.Sub(at); age < -time.Second || age > 2*time.Second {
				t.Errorf("last seen %v before the node died", age)
			}
		}
	}
	// It was not dead: only cut off. Its users are back as soon as it is.
	proxy.Heal()
	for _, user := range users[:9] {
		told(t, user, "+-+", b, c)
	}
	healthy(t, dying.Redis)
}

// TestPresenceComesBackWithRedis: changes meanwhile are told then.
func TestPresenceComesBackWithRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	opts := isolated()
	opts.PresenceTTL = 5 * time.Second
	stays, leaves, comes := chat.NewID(), chat.NewID(), chat.NewID()
	a, b := startWatcher(t, server.URL, opts), startWatcher(t, server.URL, opts)
	b.pres.Watched(func() []chat.ID { return []chat.ID{stays, leaves, comes} })
	healthy(t, a.Redis, b.Redis)
	a.connect(t, stays, "1")
	a.connect(t, leaves, "1")
	told(t, stays, "+", a, b)
	told(t, leaves, "+", a, b)
	server.Kill()
	eventually(t, "it is said", func() bool { return len(a.Health()) > 0 && len(b.Health()) > 0 })
	a.disconnect(t, leaves, "1")
	eventually(t, "presence has noticed", func() bool {
		start := time.Now()
		user := chat.NewID()
		a.connect(t, user, "1")
		return time.Since(start) < 100*time.Millisecond && a.story(user) == "+"
	})
	a.connect(t, comes, "1") // told here at once
	told(t, comes, "+", a)
	if got := a.online(t, comes, stays, chat.NewID()); !got[0] || !got[1] || got[2] {
		t.Errorf("online without Redis: %v", got)
	}
	time.Sleep(rooms.PresenceGrace) // the user who left is gone for good
	server.Restart()
	healthy(t, a.Redis, b.Redis)
	for user, state := range map[chat.ID]string{leaves: "-", comes: "+", stays: "+"} {
		eventually(t, "b has heard "+state, func() bool {
			return strings.HasSuffix(strings.TrimRight(b.story(user), "?"), state)
		})
	}
	eventually(t, "everybody is there again", func() bool {
		got := b.online(t, stays, leaves, comes)
		return got[0] && !got[1] && got[2]
	})
}

// TestANodeSaysGoodbye: its users go offline after the grace, not after the time to live.
func TestANodeSaysGoodbye(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	opts := isolated()
	a, b := startWatcher(t, server.URL, opts), startWatcher(t, server.URL, opts)
	healthy(t, a.Redis, b.Redis)
	gone, moved := chat.NewID(), chat.NewID()
	a.connect(t, gone, "1")
	a.connect(t, moved, "1")
	told(t, gone, "+", b)
	told(t, moved, "+", b)
	start := time.Now()
	a.stop()
	b.connect(t, moved, "2")
	told(t, gone, "+-", b)
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("that took %v", took)
	}
	told(t, moved, "+", b)
	if len(a.lastSeen(gone)) == 0 {
		t.Error("the last time was not stored")
	}
}

// TestManyChangesAtOnce: what two nodes do to the same users at the same time ends as it must, and what
// is told last is true.
func TestManyChangesAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		opts := isolated()
		a, b, c := startWatcher(t, url, opts), startWatcher(t, url, opts), startWatcher(t, url, opts)
		healthy(t, a.Redis, b.Redis, c.Redis)
		users := make([]chat.ID, 200)
		for i := range users {
			users[i] = chat.NewID()
		}
		var both sync.WaitGroup
		for n, w := range []*watcher{a, b} {
			both.Go(func() {
				for round := range 5 {
					for i, user := range users {
						w.connect(t, user, "1")
						if round < 4 || (i+n)%3 == 0 {
							w.disconnect(t, user, "1")
						}
					}
				}
			})
		}
		both.Wait()
		for i, user := range users {
			want := i%3 != 0 || (i+1)%3 != 0 // connected at one of them at least
			eventually(t, "it is settled", func() bool { return c.online(t, user)[0] == want })
			eventually(t, "and told", func() bool {
				s := c.story(user)
				return len(s) > 0 && (s[len(s)-1] == '+') == want
			})
		}
	})
}
