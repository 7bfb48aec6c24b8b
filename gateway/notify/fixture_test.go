package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"xabar/chat"
	"xabar/internal/testkit/pgtest"
	"xabar/persistence"
	"xabar/persistence/storetest"
)

func TestMain(m *testing.M) {
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

const patience = 30 * time.Second

// backends give an empty database each.
var backends = map[string]func(t *testing.T) (url string){
	"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "xabar.db") },
	"postgres": func(t *testing.T) string { return pgtest.Database(t) },
}

// onBoth runs a test against both stores.
func onBoth(t *testing.T, test func(f *fixture)) {
	t.Helper()
	t.Parallel()
	for name, url := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newFixture(t, url(t)))
		})
	}
}

// fixture is a Scheduler whose time is the test's, with a recording channel.
type fixture struct {
	*testing.T
	ctx      context.Context
	clock    *storetest.Clock
	store    *flakyStore
	presence *presence
	queue    *memoryQueue
	channel  *recorder
	s        *Scheduler
	metrics  *counts
	people   map[string]chat.ID
	started  time.Time
}

func silent() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func newFixture(t *testing.T, url string) *fixture {
	t.Helper()
	f := &fixture{T: t, clock: storetest.NewClock(), presence: &presence{online: map[chat.ID]bool{}},
		queue: &memoryQueue{known: map[string]bool{}}, metrics: &counts{suppressed: map[string]int{}}, people: map[string]chat.ID{}}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	f.ctx = ctx
	store, err := persistence.Open(ctx, url, persistence.Options{Clock: f.clock, Logger: silent(), Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	f.store = &flakyStore{Store: store}
	f.channel = &recorder{name: chat.ChannelWebPush, f: f}
	f.s = New(Options{
		Store: f.store, Presence: f.presence, Queue: f.queue, Clock: f.clock, Logger: silent(), Metrics: f.metrics,
		Notifiers: []chat.Notifier{f.channel},
	})
	f.queue.f = f
	f.started = f.clock.Now()
	return f
}

func (f *fixture) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// user makes a user who is offline and has one browser.
func (f *fixture) user(name string) chat.ID {
	f.Helper()
	u, err := f.store.EnsureUser(f.ctx, chat.UserRef(name), name)
	f.ok(err)
	f.people[name] = u.ID
	_, err = f.store.AddNotifyTarget(f.ctx, u.ID, chat.ChannelWebPush, "browser of "+name, json.RawMessage(`"browser of `+name+`"`))
	f.ok(err)
	return u.ID
}

func (f *fixture) direct(a, b chat.ID) chat.ID {
	f.Helper()
	c, _, err := f.store.OpenDirect(f.ctx, a, b)
	f.ok(err)
	return c.ID
}

// send stores and fans out a message.
func (f *fixture) send(from, conversation chat.ID, text string) int64 {
	f.Helper()
	type answer struct {
		chat.SendResult
		err error
	}
	done := make(chan answer, 1)
	f.store.Send(f.ctx, chat.SendMessage{SenderID: from, ConversationID: conversation, ClientMsgID: chat.NewID().String(), Text: text},
		func(r chat.SendResult, err error) { done <- answer{r, err} })
	a := <-done
	f.ok(a.err)
	f.s.FannedOut(&chat.MessageStored{Message: a.Message, Kind: a.Kind, MemberIDs: a.MemberIDs, MemberCount: a.MemberCount})
	f.s.closeBatch(f.ctx, []fanned{<-f.s.fanned})
	f.settled()
	return a.Message.Seq
}

// settled returns when every event that was closed up to now is stored: a wait of
// nobody's that is queued behind them is there.
func (f *fixture) settled() {
	f.Helper()
	mark := chat.Due{UserID: chat.NewID(), ConversationID: chat.NewID(), Reason: chat.NotDelivered, At: time.UnixMilli(1)}
	f.store.CloseOutbox(chat.OutboxKey{ConversationID: mark.ConversationID, Seq: 1}, mark)
	f.eventually("events are closed", func() bool {
		at, any, err := f.store.NextDue(f.ctx)
		f.ok(err)
		return any && at.Equal(mark.At)
	})
	claimed, err := f.store.ClaimDue(f.ctx, 1, time.Hour)
	f.ok(err)
	if len(claimed) != 1 || claimed[0].UserID != mark.UserID {
		f.Fatalf("claimed %+v", claimed)
	}
	f.ok(f.store.Store.FinishDue(f.ctx, []chat.DueDone{{ClaimedDue: claimed[0]}}))
}

func (f *fixture) eventually(what string, holds func() bool) {
	f.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func (f *fixture) move(kind chat.PositionKind, user, conversation chat.ID, upTo int64) {
	f.Helper()
	done := make(chan error, 1)
	f.store.MovePosition(f.ctx, chat.PositionMove{Kind: kind, UserID: user, ConversationID: conversation, UpTo: upTo},
		func(_ chat.PositionResult, err error) { done <- err })
	f.ok(<-done)
}

// elapse lets time pass: whatever ends in it is swept at its moment, and sent.
func (f *fixture) elapse(d time.Duration) {
	f.Helper()
	target := f.clock.Now().Add(d)
	for {
		f.sweep()
		f.queue.work()
		next, any, err := f.store.NextDue(f.ctx)
		f.ok(err)
		if at, some := f.queue.next(); some && (!any || at.Before(next)) {
			next, any = at, true
		}
		if !any || next.After(target) {
			break
		}
		f.clock.Step(max(next.Sub(f.clock.Now()), 0))
	}
	f.clock.Step(target.Sub(f.clock.Now()))
}

func (f *fixture) sweep() {
	f.Helper()
	for {
		n, err := f.s.Sweep(f.ctx)
		f.ok(err)
		if n == 0 {
			return
		}
	}
}

// set changes what a user wants.
func (f *fixture) set(user chat.ID, change chat.SettingsChange) {
	f.Helper()
	_, err := f.store.ChangeSettings(f.ctx, user, change)
	f.ok(err)
}

// sent checks everything that was sent since the last call.
func (f *fixture) sent(want ...string) {
	f.Helper()
	got := f.channel.take()
	if !slices.Equal(got, want) {
		f.Fatalf("sent\n\t%q\nwant\n\t%q", got, want)
	}
}

func (f *fixture) suppressed(why string, want int) {
	f.Helper()
	if got := f.metrics.of(why); got != want {
		f.Errorf("%d suppressed as %s, want %d; all: %v", got, why, want, f.metrics.suppressed)
	}
}

// recorder is a channel that notes what it is given, with when: the time since the
// test began.
type recorder struct {
	name string
	f    *fixture

	mu     sync.Mutex // guards the fields below
	answer func(n chat.Notification) (chat.Outcome, error)
	notes  []string
	all    []chat.Notification
}

func (r *recorder) Channel() string { return r.name }

func (r *recorder) Notify(_ context.Context, n chat.Notification, target json.RawMessage) (chat.Outcome, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, n)
	if r.answer != nil {
		if outcome, err := r.answer(n); err != nil || outcome != (chat.Outcome{Sent: true}) {
			return outcome, err
		}
	}
	var address string
	if err := json.Unmarshal(target, &address); err != nil && len(target) > 0 {
		return chat.Outcome{}, err
	}
	note := fmt.Sprintf("%v %s (%d)", r.f.clock.Now().Sub(r.f.started), n.User.Name, n.Badge)
	for _, c := range n.Conversations {
		note += fmt.Sprintf("; %s/%s %d %s", c.Title, c.SenderName, c.Count, c.Preview)
	}
	r.notes = append(r.notes, note)
	return chat.Outcome{Sent: true}, nil
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	notes := r.notes
	r.notes = nil
	return notes
}

// presence is what the test says.
type presence struct {
	mu     sync.Mutex // guards the fields below
	online map[chat.ID]bool
	fails  error
}

func (p *presence) set(user chat.ID, online bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.online[user] = online
}

func (p *presence) Connect(context.Context, chat.ID, string) error    { return nil }
func (p *presence) Disconnect(context.Context, chat.ID, string) error { return nil }
func (p *presence) Watch(func(chat.PresenceState))                    {}
func (p *presence) Online(_ context.Context, users []chat.ID) ([]bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	online := make([]bool, len(users))
	for i, user := range users {
		online[i] = p.online[user]
	}
	return online, p.fails
}

// memoryQueue keeps jobs and works on them when the test says so, in the test's time.
type memoryQueue struct {
	f     *fixture
	known map[string]bool
	jobs  []queued
	fails error
}

type queued struct {
	chat.NotifyAttempt
	at time.Time
}

func (q *memoryQueue) Insert(_ context.Context, jobs []chat.NotifyJob) error {
	if q.fails != nil {
		return q.fails
	}
	for _, j := range jobs {
		key := fmt.Sprint(j.Notification, j.Channel, j.TargetID)
		if !q.known[key] {
			q.known[key] = true
			q.jobs = append(q.jobs, queued{chat.NotifyAttempt{NotifyJob: j, Number: 1, CreatedAt: q.f.clock.Now()}, q.f.clock.Now()})
		}
	}
	return nil
}

// work makes an attempt of every job whose time has come.
func (q *memoryQueue) work() {
	jobs := q.jobs
	q.jobs = nil
	for _, j := range jobs {
		if j.at.After(q.f.clock.Now()) {
			q.jobs = append(q.jobs, j)
			continue
		}
		again, permanent, err := q.f.s.send(q.f.ctx, j.NotifyAttempt)
		switch {
		case err != nil && !permanent:
			j.Number++
			j.at = q.f.clock.Now().Add(10 * time.Second)
		case again > 0:
			j.at = q.f.clock.Now().Add(again)
		default:
			continue
		}
		q.jobs = append(q.jobs, j)
	}
}

func (q *memoryQueue) next() (at time.Time, any bool) {
	for _, j := range q.jobs {
		if !any || j.at.Before(at) {
			at, any = j.at, true
		}
	}
	return at, any
}

func (q *memoryQueue) Run(context.Context, chat.NotifyWork) error { return nil }
func (q *memoryQueue) Retry(context.Context, int64) error         { return nil }
func (q *memoryQueue) List(context.Context, chat.JobQuery) ([]chat.NotifyJobState, error) {
	return nil, nil
}

// flakyStore fails when the test says so.
type flakyStore struct {
	chat.Store
	finishFails error
}

func (s *flakyStore) FinishDue(ctx context.Context, done []chat.DueDone) error {
	if s.finishFails != nil {
		return s.finishFails
	}
	return s.Store.FinishDue(ctx, done)
}

// counts are metrics.
type counts struct {
	noMetrics
	mu          sync.Mutex // guards the fields below
	suppressed  map[string]int
	sentN, gone int
	failed      int
	retried     int
}

func (c *counts) Suppressed(why string) { c.add(func() { c.suppressed[why]++ }) }
func (c *counts) Sent(string)           { c.add(func() { c.sentN++ }) }
func (c *counts) Failed(string)         { c.add(func() { c.failed++ }) }
func (c *counts) Retried(string)        { c.add(func() { c.retried++ }) }
func (c *counts) TargetGone(string)     { c.add(func() { c.gone++ }) }

func (c *counts) add(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

func (c *counts) of(why string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.suppressed[why]
}
