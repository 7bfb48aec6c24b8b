package events

import (
	"context"
	"sync"

	"xabar/chat"
)

// Bounds of what waits for gaps. Beyond them a claim is dropped: the position
// then lags until the user's next catch-up or sync.
const (
	maxGapClaims = 64      // of one user in one conversation
	maxGapKeys   = 100_000 // users and conversations, in all
)

// gapTable keeps acknowledgements beyond a gap: what the user's devices hold is
// claimed once the position has reached the beginning of it.
type gapTable struct {
	mu     sync.Mutex // guards claims
	claims map[gapKey][]gapClaim
}

type gapKey struct{ user, conversation chat.ID }

// gapClaim is after < seq <= upTo. The claims of a key are sorted and do not touch.
type gapClaim struct {
	after, upTo int64
	socket      string
}

func (t *gapTable) init() { t.claims = map[gapKey][]gapClaim{} }

func (t *gapTable) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, list := range t.claims {
		n += len(list)
	}
	return n
}

// add keeps a claim and tries it once more: the position may have moved between
// the first try and now, with nobody left to wake the claim.
func (t *gapTable) add(c *client, conversation chat.ID, after, upTo int64) {
	key := gapKey{c.user.ID, conversation}
	if !t.keep(key, gapClaim{after, upTo, c.socket.ID()}) || c.closed.Load() {
		return
	}
	c.hub.service.Acknowledge(context.Background(), key.user, conversation, after, upTo, c.socket.ID(),
		func(r chat.PositionResult, err error) {
			if err == nil && r.NewDelivered >= upTo {
				t.reached(key, r.NewDelivered)
			}
		})
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
		}
	}
}
