package events

import (
	"context"
	"sync"
	"time"

	"xabar/chat"
)

// Bounds of what waits for gaps. Beyond them a claim is dropped: the position
// then lags until the user's next catch-up or sync.
const (
	maxGapClaims = 64      // of one user in one conversation
	maxGapKeys   = 100_000 // users and conversations, in all
)

// claimRetry is the time between two tries of claims that the database did not take.
const claimRetry = time.Second

// gapTable keeps acknowledgements beyond a gap: what the user's devices hold is
// claimed once the position has reached the beginning of it. It also keeps those
// that the database could not take just then, for another try.
type gapTable struct {
	mu      sync.Mutex // guards the fields below
	claims  map[gapKey][]gapClaim
	retries map[gapKey]struct{} // keys whose first claim is to be tried again
}

type gapKey struct{ user, conversation chat.ID }

// gapClaim is after < seq <= upTo. The claims of a key are sorted and do not touch.
type gapClaim struct {
	after, upTo int64
	socket      string
}

func (t *gapTable) init() {
	t.claims = map[gapKey][]gapClaim{}
	t.retries = map[gapKey]struct{}{}
}

func (t *gapTable) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, list := range t.claims {
		n += len(list)
	}
	return n
}

// add keeps a claim beyond a gap and tries it once more: the position may have moved
// between the first try and now, with nobody left to wake the claim.
func (t *gapTable) add(c *client, conversation chat.ID, after, upTo int64) {
	key := gapKey{c.user.ID, conversation}
	claim := gapClaim{after, upTo, c.socket.ID()}
	if t.keepFor(c, key, claim) {
		c.hub.claimKept(key, claim)
	}
}

// postpone keeps a claim that the database could not take now.
func (t *gapTable) postpone(c *client, conversation chat.ID, after, upTo int64) {
	key := gapKey{c.user.ID, conversation}
	if t.keepFor(c, key, gapClaim{after, upTo, c.socket.ID()}) {
		t.retry(key)
	}
}

// keepFor is keep for a client that may be gone by now: what nobody would forget any
// more is not kept.
func (t *gapTable) keepFor(c *client, key gapKey, claim gapClaim) bool {
	if !t.keep(key, claim) {
		return false
	}
	if c.closed.Load() && len(c.hub.users.get(key.user)) == 0 {
		t.forget(key.user)
		return false
	}
	return true
}

func (t *gapTable) retry(key gapKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.claims[key]) > 0 {
		t.retries[key] = struct{}{}
	}
}

// takeRetries returns what is to be tried again.
func (t *gapTable) takeRetries() map[gapKey]gapClaim {
	t.mu.Lock()
	defer t.mu.Unlock()
	due := make(map[gapKey]gapClaim, len(t.retries))
	for key := range t.retries {
		if list := t.claims[key]; len(list) > 0 {
			due[key] = list[0]
		}
	}
	clear(t.retries)
	return due
}

// claimKept tries a claim that is in the table.
func (h *Hub) claimKept(key gapKey, claim gapClaim) {
	a := chat.Acknowledgement{
		UserID: key.user, ConversationID: key.conversation, After: claim.after, UpTo: claim.upTo, Socket: claim.socket,
	}
	h.service.Acknowledge(context.Background(), a,
		func(r chat.PositionResult, err error) {
			if err != nil {
				if chat.AsError(err).Code.Retryable() {
					h.gaps.retry(key)
				} else {
					h.gaps.drop(key)
				}
				return
			}
			if _, more := h.gaps.reached(key, r.NewDelivered); more {
				h.gaps.retry(key)
			}
		})
}

// retryClaims tries again until ctx ends what the database did not take.
func (h *Hub) retryClaims(ctx context.Context) {
	ticker := time.NewTicker(claimRetry)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for key, claim := range h.gaps.takeRetries() {
			h.claimKept(key, claim)
		}
	}
}

// drop forgets what can never be claimed: the user is no longer a member.
func (t *gapTable) drop(key gapKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.claims, key)
	delete(t.retries, key)
}

// keep says whether there was room.
func (t *gapTable) keep(key gapKey, claim gapClaim) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	list, known := t.claims[key]
	if !known && len(t.claims) >= maxGapKeys {
		return false
	}
	merged, ok := insertClaim(list, claim)
	if ok {
		t.claims[key] = merged
	}
	return ok
}

// insertClaim puts a claim into a sorted list and joins what touches.
func insertClaim(list []gapClaim, claim gapClaim) ([]gapClaim, bool) {
	merged := make([]gapClaim, 0, len(list)+1)
	for i, other := range list {
		switch {
		case other.upTo < claim.after:
			merged = append(merged, other)
		case other.after > claim.upTo:
			merged = append(append(merged, claim), list[i:]...)
			return merged, len(merged) <= maxGapClaims
		default:
			claim.after, claim.upTo = min(claim.after, other.after), max(claim.upTo, other.upTo)
		}
	}
	merged = append(merged, claim)
	return merged, len(merged) <= maxGapClaims
}

// reached tells that the position is at seq: what it has passed is dropped, and
// the claim that it has reached, if any, is returned.
func (t *gapTable) reached(key gapKey, seq int64) (gapClaim, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.claims[key]
	for len(list) > 0 && list[0].upTo <= seq {
		list = list[1:]
	}
	if len(list) == 0 {
		delete(t.claims, key)
		return gapClaim{}, false
	}
	t.claims[key] = list
	return list[0], list[0].after <= seq
}

// forget drops the claims of a user without sockets here. It walks the table,
// which is small: gaps are rare.
func (t *gapTable) forget(user chat.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.claims {
		if key.user == user {
			delete(t.claims, key)
			delete(t.retries, key)
		}
	}
}
