package telegram

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"xabar/chat"
	"xabar/gateway/notify/notifytest"
	"xabar/gateway/notify/outbound"
	"xabar/persistence"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// world is a bot, its API and a store with two users.
type world struct {
	t        *testing.T
	api      *notifytest.Telegram
	bot      *Bot
	store    chat.Store
	links    *Links
	ada, bob chat.ID
}

func newWorld(t *testing.T) *world {
	t.Helper()
	store, err := persistence.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "x.db"), persistence.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &world{t: t, api: notifytest.NewTelegram(), store: store}
	server := httptest.NewServer(w.api)
	t.Cleanup(server.Close)
	caller := outbound.New(outbound.Options{MaxAnswer: UpdatesAnswer})
	t.Cleanup(caller.Close)
	if w.bot, err = NewBot(w.api.Token, server.URL, caller); err != nil {
		t.Fatal(err)
	}
	w.links = NewLinks(w.bot, store)
	w.ada, w.bob = w.user("ada"), w.user("bob")
	return w
}

func (w *world) user(name string) chat.ID {
	w.t.Helper()
	user, err := w.store.EnsureUser(w.t.Context(), chat.UserRef(name), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return user.ID
}

// run starts a node's Updates and returns how to stop it.
func (w *world) run(store chat.NotifyTargetStore) (stop func()) {
	w.t.Helper()
	u := NewUpdates(w.bot, w.links, store, slog.New(slog.DiscardHandler))
	u.waitTime = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := u.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); ended.Wait() })
	w.t.Cleanup(stop)
	return stop
}

func (w *world) code(user chat.ID) Code {
	w.t.Helper()
	code, err := w.links.New(w.t.Context(), user)
	if err != nil {
		w.t.Fatal(err)
	}
	return code
}

// linked lists the user's chats.
func (w *world) linked(user chat.ID) string {
	w.t.Helper()
	targets, err := w.store.NotifyTargets(w.t.Context(), user)
	if err != nil {
		w.t.Fatal(err)
	}
	var chats []string
	for _, t := range targets {
		if t.Channel == chat.ChannelTelegram && string(t.Target) == fmt.Sprintf(`{"chat_id":%s}`, t.Address) {
			chats = append(chats, t.Address)
		}
	}
	return strings.Join(chats, " ")
}

// say writes to the bot and waits for its answer.
func (w *world) say(chatID int64, text string) string {
	w.t.Helper()
	before := len(w.api.Messages())
	w.api.Write(chatID, "private", "en", text)
	eventually(w.t, "an answer to "+text, func() bool { return len(w.api.Messages()) > before })
	answer := w.api.Messages()[before]
	if answer.ChatID != chatID {
		w.t.Errorf("the answer went to %d", answer.ChatID)
	}
	return answer.Text
}

func TestACodeLinksAChatOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.store)
	code := w.code(w.ada)
	if code.URL != "https://t.me/xabar_test_bot?start="+code.Code || len(code.Code) < 22 || len(code.Code) > 64 {
		t.Errorf("%+v", code)
	}
	if left := time.Until(code.ExpiresAt); left < CodeLife-time.Minute || left > CodeLife {
		t.Errorf("it expires in %s", left)
	}
	if got := w.say(100, "/start "+code.Code); !strings.HasPrefix(got, "Done.") || w.linked(w.ada) != "100" {
		t.Errorf("%q, linked: %q", got, w.linked(w.ada))
	}
	if got := w.say(200, "/start "+code.Code); !strings.HasPrefix(got, "This link has been used") || w.linked(w.ada) != "100" {
		t.Errorf("again: %q, linked: %q", got, w.linked(w.ada))
	}
	if got := w.say(200, "/start "+w.code(w.ada).Code); !strings.HasPrefix(got, "Done.") || w.linked(w.ada) != "200" {
		t.Errorf("another chat: %q, linked: %q", got, w.linked(w.ada))
	}
	if got := w.say(200, "/start "+w.code(w.bob).Code); !strings.HasPrefix(got, "Done.") || w.linked(w.ada) != "" || w.linked(w.bob) != "200" {
		t.Errorf("another user: %q, linked: %q and %q", got, w.linked(w.ada), w.linked(w.bob))
	}
	if err := w.links.Unlink(t.Context(), w.bob); err != nil || w.linked(w.bob) != "" {
		t.Errorf("unlinked: %q, %v", w.linked(w.bob), err)
	}
}

func TestCodesThatDoNotLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.store)
	old := w.code(w.ada)
	newer := w.code(w.ada)
	expired := "expired"
	if err := w.store.AddLinkCode(t.Context(), w.bob, chat.ChannelTelegram, hash(expired), time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{old.Code, expired, hash(newer.Code), "x", strings.Repeat("x", 4000), "' OR 1=1"} {
		if got := w.say(100, "/start "+code); !strings.HasPrefix(got, "This link has been used") {
			t.Errorf("%q: %q", code, got)
		}
	}
	if got := w.say(100, "/start"); !strings.HasPrefix(got, "To get notifications") {
		t.Errorf("without a code: %q", got)
	}
	// None of these is answered; what comes after them is.
	w.api.Write(-100, "group", "en", "/start "+newer.Code)
	w.api.Write(-100, "supergroup", "en", "/start "+newer.Code)
	w.api.Write(100, "private", "en", newer.Code)
	w.api.Write(100, "private", "en", "")
	w.api.Other()
	before := len(w.api.Messages())
	if got := w.say(100, "/start "+newer.Code); !strings.HasPrefix(got, "Done.") || len(w.api.Messages()) != before+1 {
		t.Errorf("the right one: %q, %d answers", got, len(w.api.Messages())-before)
	}
	if w.linked(w.ada) != "100" || w.linked(w.bob) != "" {
		t.Errorf("linked: %q and %q", w.linked(w.ada), w.linked(w.bob))
	}
}

func TestAnswersAreInTheUsersLanguage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.store)
	for language, want := range map[string]string{"ru": "Готово", "uz": "Tayyor", "fr": "Done"} {
		before := len(w.api.Messages())
		w.api.Write(100, "private", language, "/start "+w.code(w.ada).Code)
		eventually(t, "an answer", func() bool { return len(w.api.Messages()) > before })
		if got := w.api.Messages()[before].Text; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q", language, got)
		}
	}
}

// A user who can't be answered is linked all the same, and holds up nobody.
func TestAFailedAnswerHoldsUpNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.store)
	w.api.Behave(notifytest.RefuseGone)
	w.api.Write(100, "private", "en", "/start "+w.code(w.ada).Code)
	w.api.Write(200, "private", "en", "/start "+w.code(w.bob).Code)
	eventually(t, "both are linked", func() bool { return w.linked(w.ada) == "100" && w.linked(w.bob) == "200" })
}

func TestOneNodePolls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stops := []func(){w.run(w.store), w.run(w.store), w.run(w.store)}
	eventually(t, "a poll", func() bool { return w.api.Polls() == 1 })
	for i, stop := range stops {
		if got := w.say(int64(100+i), "/start "+w.code(w.ada).Code); !strings.HasPrefix(got, "Done.") {
			t.Error(got)
		}
		stop() // one of them has the lease: another goes on
		if i < len(stops)-1 {
			eventually(t, "the next poll", func() bool { return w.api.Polls() == 1 })
		}
	}
	if w.api.MaxPolls() != 1 {
		t.Errorf("%d at the same time", w.api.MaxPolls())
	}
}

// flaky is a store that fails to take codes a few times.
type flaky struct {
	chat.NotifyTargetStore
	mu   sync.Mutex
	left int
}

func (f *flaky) TakeLinkCode(ctx context.Context, channel, code string) (chat.ID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left--; f.left >= 0 {
		return chat.ID{}, chat.Errorf(chat.CodeUnavailable, "")
	}
	return f.NotifyTargetStore.TakeLinkCode(ctx, channel, code)
}

// What the store could not take is fetched again.
func TestAStoreThatIsAwayLosesNoCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	away := &flaky{NotifyTargetStore: w.store, left: 1}
	w.links.store = away
	w.run(away)
	if got := w.say(100, "/start "+w.code(w.ada).Code); !strings.HasPrefix(got, "Done.") || w.linked(w.ada) != "100" {
		t.Errorf("%q, linked: %q", got, w.linked(w.ada))
	}
}

func TestAConflictIsWaitedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.api.SetConflict(true)
	w.run(w.store)
	code := w.code(w.ada)
	w.api.Write(100, "private", "en", "/start "+code.Code)
	if w.linked(w.ada) != "" {
		t.Error("linked in spite of the conflict")
	}
	w.api.SetConflict(false)
	eventually(t, "linked after the conflict", func() bool { return w.linked(w.ada) == "100" })
}

func TestLinkingWithoutTelegramIsUnavailable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot, err := NewBot("1:wrong", strings.TrimSuffix(w.bot.base, "/bot"+w.api.Token+"/"), w.bot.caller)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewLinks(bot, w.store).New(t.Context(), w.ada); chat.CodeOf(err) != chat.CodeUnavailable {
		t.Error(err)
	}
}
