package chat

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"sync"
	"time"
)

// How soon a node knows what another one revoked, also without Redis, and how far
// the clocks of nodes may be apart without one of them missing it.
const (
	revocationInterval = time.Second
	revocationOverlap  = 30 * time.Second
)

// Revocations knows whose tokens are refused. What this node revokes it knows at
// once; what others do it learns from the store, every revocationInterval. Make it
// with NewRevocations, Load it before serving, and Run it.
type Revocations struct {
	store AdminStore
	close func(AccessRevoked)
	log   *slog.Logger
	news  chan struct{} // holds one

	mu    sync.RWMutex // guards the fields below
	known map[ID]Revocation
	// subjects are the moments up to which tokens of a subject are refused, also
	// when its user is erased and another one would be made for it.
	subjects map[string]time.Time
	newest   time.Time
}

// NewRevocations makes them. closeSockets is called for each revocation of another node
// that was learned after Load, by Run, and ends the user's sockets on this node.
func NewRevocations(store AdminStore, closeSockets func(AccessRevoked), log *slog.Logger) *Revocations {
	return &Revocations{
		store: store, close: closeSockets, log: log, news: make(chan struct{}, 1),
		known: map[ID]Revocation{}, subjects: map[string]time.Time{},
	}
}

// Load learns everything that was revoked before.
func (r *Revocations) Load(ctx context.Context) error {
	_, err := r.learn(ctx)
	return err
}

// Heard has Run learn at once: another node has said that it revoked something.
func (r *Revocations) Heard() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// Run learns what other nodes revoke until ctx ends.
func (r *Revocations) Run(ctx context.Context) error {
	ticker := time.NewTicker(revocationInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-r.news:
		}
		news, err := r.learn(ctx)
		if err != nil && ctx.Err() == nil {
			r.log.Warn("revocations could not be read; they act late", "error", err)
		}
		for _, revocation := range news {
			r.close(AccessRevoked{UserID: revocation.UserID, Before: revocation.At})
		}
	}
}

// learn reads what is new and returns it.
func (r *Revocations) learn(ctx context.Context) (news []Revocation, err error) {
	r.mu.RLock()
	since := r.newest
	r.mu.RUnlock()
	if !since.IsZero() {
		since = since.Add(-revocationOverlap)
	}
	found, err := r.store.Revocations(ctx, since)
	for _, revocation := range found {
		if r.note(revocation) {
			news = append(news, revocation)
		}
	}
	return news, err
}

// note says whether the revocation is new here.
func (r *Revocations) note(revocation Revocation) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.known[revocation.UserID]; ok && !revocation.At.After(old.At) {
		return false
	}
	r.known[revocation.UserID] = revocation
	if revocation.Subject != nil && !revocation.TokensBefore.IsZero() {
		r.subjects[string(revocation.Subject)] = revocation.TokensBefore
	}
	if revocation.At.After(r.newest) {
		r.newest = revocation.At
	}
	return true
}

// Of is the user's last revocation; zero if there was none.
func (r *Revocations) Of(user ID) Revocation {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.known[user]
}

// Check refuses an actor whose token was revoked. A token says in whole seconds when
// it was issued, so one of the same second counts as older; one that says nothing
// is older than anything. Errors: unauthenticated.
func (r *Revocations) Check(actor Actor) error {
	return refuse(r.Of(actor.User.ID).TokensBefore, actor.IssuedAt)
}

// CheckSubject is Check for a token whose user is not looked up yet.
func (r *Revocations) CheckSubject(ref UserRef, issued time.Time) error {
	if id, ok := ref.ID(); ok {
		return refuse(r.Of(id).TokensBefore, issued)
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.subjects) == 0 {
		return nil
	}
	return refuse(r.subjects[string(SubjectHash(string(ref)))], issued)
}

func refuse(before, issued time.Time) error {
	if !before.IsZero() && !issued.After(before) {
		return Errorf(CodeUnauthenticated, "the token was revoked")
	}
	return nil
}

// SubjectHash stands for an external id where the id itself is not to be kept.
func SubjectHash(externalID string) []byte {
	sum := sha256.Sum256([]byte(externalID))
	return sum[:]
}
