package chat

import (
	"context"
	"maps"
	"slices"
)

// EpochStore knows which history the database holds. After an older backup was restored
// clients hold messages that are not in it, and whose seqs it gives to others: the
// epoch tells one history from another, and where a client names the message at its
// position, that tells too.
type EpochStore interface {
	// RenewEpoch says that the database holds another history than before. A Store does
	// it by itself when it opens a database at another place than it was last (restored into
	// another database, or a copy made by `xabar backup`). It returns the new epoch.
	RenewEpoch(ctx context.Context) (ID, error)
	// CheckPositions compares positions that a client holds with what is stored. It reads what
	// was committed before the call, so that a position beyond it is of another history.
	CheckPositions(ctx context.Context, user ID, positions map[ID]SyncPosition) (PositionCheck, error)
}

// PositionCheck says what a store thinks of positions. Conversations that are in none of
// the lists are held as far as they are known to be.
type PositionCheck struct {
	Epoch ID
	Gone  []ID // conversations that are not, or no longer, the user's
	// Reset are conversations of whose history the position is not: it lies beyond the end,
	// or the message there is another one.
	Reset []ID
	News  []ID // of this history, and beyond the user's delivered position
	// Current says that the positions name all of the user's conversations, as they are now: Sync
	// would bring nothing.
	Current bool
}

// reset are the conversations that the client must drop and be told anew. A client of
// another epoch holds nothing of this one.
func (c *PositionCheck) reset(q *SyncQuery) map[ID]bool {
	reset := make(map[ID]bool, len(c.Reset))
	for _, id := range c.Reset {
		reset[id] = true
	}
	if c.otherEpoch(q) {
		for id := range q.Positions {
			reset[id] = true
		}
	}
	return reset
}

func (c *PositionCheck) otherEpoch(q *SyncQuery) bool {
	return q.Epoch != "" && q.Epoch != c.Epoch.String()
}

// syncChecked answers a sync whose positions were compared with what is stored: without another look
// where they are all there is, as most are when many clients come back after a short while. What is
// reset is answered like a conversation that the client has not named.
func (s *Service) syncChecked(ctx context.Context, actor Actor, q SyncQuery, check PositionCheck) (SyncPage, error) {
	reset, other, first := check.reset(&q), check.otherEpoch(&q), q.Cursor == ""
	if first {
		held := slices.DeleteFunc(check.News, func(id ID) bool { return reset[id] })
		s.holdPositions(ctx, actor, held, q.Positions)
	}
	if len(reset) > 0 {
		q.Positions = maps.Clone(q.Positions)
		maps.DeleteFunc(q.Positions, func(id ID, _ SyncPosition) bool { return reset[id] })
	}
	page := SyncPage{Conversations: []SyncConversation{}}
	if !check.Current || !first || len(reset) > 0 {
		var err error
		if page, err = s.store.Sync(ctx, actor.User.ID, q); err != nil {
			return SyncPage{}, err
		}
	}
	for i := range page.Conversations {
		c := &page.Conversations[i]
		c.Reset = reset[c.Conversation.ID]
	}
	page.Epoch, page.Reset = check.Epoch, other
	if first {
		page.Gone = check.Gone
	}
	return page, nil
}
