package chat_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xabar/chat"
)

var quiet = slog.New(slog.DiscardHandler)

// fakeStore answers what these tests ask; everything else panics.
type fakeStore struct {
	chat.Store

	mu          sync.Mutex // guards the fields below
	revocations []chat.Revocation
	asked       []time.Time
	err         error
	exists      bool // the direct conversation that is opened
	blocked     []chat.ID
}

func (f *fakeStore) Revocations(_ context.Context, since time.Time) ([]chat.Revocation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, since)
	var found []chat.Revocation
	for _, r := range f.revocations {
		if !r.At.Before(since) {
			found = append(found, r)
		}
	}
	return found, f.err
}

func (f *fakeStore) ResolveUsers(_ context.Context, refs []chat.UserRef) ([]chat.User, error) {
	users := make([]chat.User, len(refs))
	for i, ref := range refs {
		id, ok := ref.ID()
		if !ok {
			return nil, chat.Errorf(chat.CodeNotFound, "")
		}
		users[i].ID = id
	}
	return users, nil
}

func (f *fakeStore) OpenDirect(context.Context, chat.ID, chat.ID) (chat.Conversation, bool, error) {
	return chat.Conversation{ID: chat.NewID()}, !f.exists, f.err
}

func (f *fakeStore) CreateGroup(context.Context, chat.ID, string, []chat.ID) (chat.Conversation, error) {
	return chat.Conversation{ID: chat.NewID()}, f.err
}

func (f *fakeStore) Conversation(_ context.Context, user, id chat.ID) (chat.Conversation, error) {
	return chat.Conversation{ID: id, Kind: chat.Direct, Peer: &chat.User{ID: chat.ID{1}}}, nil
}

func (f *fakeStore) BlockedAmong(_ context.Context, _ chat.ID, others []chat.ID) ([]chat.ID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(others), func(id chat.ID) bool { return !slices.Contains(f.blocked, id) }), nil
}

func (f *fakeStore) Block(_ context.Context, _, blocked chat.ID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blocked = append(f.blocked, blocked)
	return nil
}

func (f *fakeStore) Unblock(context.Context, chat.ID, chat.ID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blocked = nil
	return nil
}

// purse is a Limiter with so many tokens, and none come back.
type purse struct{ tokens int }

func (p *purse) Take(chat.ID) (time.Duration, bool) {
	if p.tokens == 0 {
		return 1500 * time.Microsecond, false
	}
	p.tokens--
	return 0, true
}

func (p *purse) Return(chat.ID) { p.tokens++ }

// heard collects what a service publishes.
type heard struct {
	mu     sync.Mutex // guards events
	events []chat.Event
}

func (h *heard) Publish(_ context.Context, e chat.Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
	return nil
}

func actor() chat.Actor { return chat.Actor{User: chat.User{ID: chat.NewID()}} }

func TestOnlyConversationsThatAreMadeCount(t *testing.T) {
	t.Parallel()
	store, opens := &fakeStore{}, &purse{tokens: 2}
	s := chat.NewService(chat.ServiceConfig{Store: store, Broadcaster: &heard{}, Opens: opens, Logger: quiet})
	me, other := actor(), chat.UserRef(chat.NewID().String())
	open := func() error {
		_, _, err := s.OpenDirect(t.Context(), me, other)
		return err
	}
	store.exists = true
	for range 5 {
		if err := open(); err != nil || opens.tokens != 2 {
			t.Fatalf("an old one costs: %v, %d left", err, opens.tokens)
		}
	}
	store.err = errors.New("down")
	if err := open(); err == nil || opens.tokens != 2 {
		t.Fatalf("a failure costs: %v, %d left", err, opens.tokens)
	}
	if _, err := s.CreateGroup(t.Context(), me, "x", []chat.UserRef{other}); err == nil || opens.tokens != 2 {
		t.Fatalf("a group that was not made costs: %v, %d left", err, opens.tokens)
	}
	store.err, store.exists = nil, false
	if err := open(); err != nil || opens.tokens != 1 {
		t.Fatalf("%v, %d left", err, opens.tokens)
	}
	if _, err := s.CreateGroup(t.Context(), me, "x", []chat.UserRef{other}); err != nil || opens.tokens != 0 {
		t.Fatalf("%v, %d left", err, opens.tokens)
	}
	if err := open(); err != nil {
		t.Errorf("one that was made a moment ago: %v", err)
	}
	other = chat.UserRef(chat.NewID().String())
	err := open()
	if chat.CodeOf(err) != chat.CodeRateLimited || chat.AsError(err).RetryAfter != 2*time.Millisecond {
		t.Errorf("%v, after %v", err, chat.AsError(err).RetryAfter)
	}
}

func TestTypingStopsAtABlock(t *testing.T) {
	t.Parallel()
	store, out := &fakeStore{}, &heard{}
	s := chat.NewService(chat.ServiceConfig{Store: store, Broadcaster: out, Logger: quiet})
	me, peer, conversation := actor(), chat.ID{1}, chat.NewID()
	typing := func() error { return s.Typing(t.Context(), me, conversation) }
	for range 2 {
		if err := typing(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Block(t.Context(), me, chat.UserRef(peer.String())); err != nil {
		t.Fatal(err)
	}
	if err := typing(); chat.CodeOf(err) != chat.CodeForbidden {
		t.Errorf("after the block: %v", err)
	}
	if err := s.Unblock(t.Context(), me, chat.UserRef(peer.String())); err != nil {
		t.Fatal(err)
	}
	if err := typing(); err != nil {
		t.Errorf("after its end: %v", err)
	}
	if err := s.Block(t.Context(), me, chat.UserRef(me.User.ID.String())); chat.CodeOf(err) != chat.CodeInvalidArgument {
		t.Errorf("a block of oneself: %v", err)
	}
	if err := s.Unblock(t.Context(), me, "nobody"); err != nil {
		t.Errorf("of nobody: %v", err)
	}
	blocks := 0
	for _, e := range out.events {
		if e == chat.Event(chat.BlockChanged{A: me.User.ID, B: peer}) {
			blocks++
		}
	}
	if blocks != 2 {
		t.Errorf("%d changes were announced, want 2", blocks)
	}
}

func TestRevocationsOfOtherNodesAreLearned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &fakeStore{}
		begin := time.Now()
		old, ann, bob := chat.NewID(), chat.NewID(), chat.NewID()
		store.revocations = []chat.Revocation{{UserID: old, At: begin, TokensBefore: begin}}
		closed := map[chat.ID]int{}
		r := chat.NewRevocations(store, func(e chat.AccessRevoked) { closed[e.UserID]++ }, quiet)
		if err := r.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		add := func(revocation chat.Revocation) {
			store.mu.Lock()
			defer store.mu.Unlock()
			store.revocations = append(store.revocations, revocation)
		}
		time.Sleep(time.Minute)                                                  // of the bubble's clock
		add(chat.Revocation{UserID: ann, At: time.Now().Add(-20 * time.Second)}) // a node whose clock is behind
		add(chat.Revocation{UserID: bob, At: time.Now(), TokensBefore: time.Now(), Subject: chat.SubjectHash("bob")})
		time.Sleep(2 * time.Second)
		store.mu.Lock()
		store.err = errors.New("down")
		store.mu.Unlock()
		time.Sleep(time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if closed[old] != 0 || closed[ann] != 1 || closed[bob] != 1 {
			t.Errorf("closed %v; what was there at the start is not news, and news come once", closed)
		}
		for ref, refused := range map[chat.UserRef]bool{"bob": true, "ann": false, chat.UserRef(bob.String()): true} {
			if err := r.CheckSubject(ref, begin); (err != nil) != refused {
				t.Errorf("subject %s: %v", ref, err)
			}
			if err := r.CheckSubject(ref, time.Now()); err != nil {
				t.Errorf("a new token of %s: %v", ref, err)
			}
		}
		for user, refused := range map[chat.ID]bool{old: true, ann: false, bob: true, chat.NewID(): false} {
			err := r.Check(chat.Actor{User: chat.User{ID: user}, IssuedAt: begin})
			if (err != nil) != refused || err != nil && chat.CodeOf(err) != chat.CodeUnauthenticated {
				t.Errorf("%v, refused should be %v", err, refused)
			}
		}
	})
}

func TestQuietHoursAndNamesAreChecked(t *testing.T) {
	t.Parallel()
	s := chat.NewService(chat.ServiceConfig{Store: &fakeStore{}, Broadcaster: &heard{}, Logger: quiet})
	for _, q := range []chat.QuietHours{
		{From: -1, Until: 0, TimeZone: "UTC"}, {From: 0, Until: 1440, TimeZone: "UTC"}, {From: 1440, Until: 0, TimeZone: "UTC"},
		{TimeZone: ""}, {TimeZone: "Local"}, {TimeZone: "Asia/Nowhere"}, {TimeZone: "../../etc/passwd"},
	} {
		_, err := s.UpdateMe(t.Context(), actor(), chat.ProfileChange{SettingsChange: chat.SettingsChange{SetQuiet: true, Quiet: &q}})
		if chat.CodeOf(err) != chat.CodeInvalidArgument {
			t.Errorf("%+v: %v", q, err)
		}
	}
	long, link := "https://example.org/"+string(make([]byte, 2048)), "javascript:alert(1)"
	for _, change := range []chat.UserChange{
		{Name: new(string)}, {AvatarURL: &link}, {AvatarURL: &long},
	} {
		if _, err := s.CreateUser(t.Context(), "ann", change); chat.CodeOf(err) != chat.CodeInvalidArgument {
			t.Errorf("%v", err)
		}
	}
	if _, err := s.CreateUser(t.Context(), chat.UserRef(chat.SystemUserID.String()), chat.UserChange{}); chat.CodeOf(err) != chat.CodeInvalidArgument {
		t.Errorf("the system's own id: %v", err)
	}
}
