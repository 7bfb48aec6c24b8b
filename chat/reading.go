package chat

import "context"

// History is a page of a conversation. Errors: invalid_argument, not_found.
func (s *Service) History(ctx context.Context, actor Actor, q HistoryQuery) (HistoryPage, error) {
	switch {
	case q.BeforeSeq != nil && q.AfterSeq != nil:
		return HistoryPage{}, InvalidArgument("afterSeq", "beforeSeq and afterSeq exclude each other")
	case q.BeforeSeq != nil && *q.BeforeSeq < 1:
		return HistoryPage{}, InvalidArgument("beforeSeq", "beforeSeq is a seq, from 1")
	case q.AfterSeq != nil && *q.AfterSeq < 0:
		return HistoryPage{}, InvalidArgument("afterSeq", "afterSeq is a seq, or 0 for the beginning")
	}
	q.Limit = ClampLimit(q.Limit)
	return s.store.History(ctx, actor.User.ID, q)
}

// Sync gives what came after the positions that a client holds. Those positions
// count as delivered; what the answer brings does not until the client says so. Those that
// are not of the history that the database holds are reset: EpochStore.
// Errors: invalid_argument.
func (s *Service) Sync(ctx context.Context, actor Actor, q SyncQuery) (SyncPage, error) {
	if len(q.Positions) > MaxSyncPositions {
		return SyncPage{}, InvalidArgument("positions", "at most %d positions", MaxSyncPositions)
	}
	for _, position := range q.Positions {
		if position.Seq < 0 || position.Version < 0 {
			return SyncPage{}, InvalidArgument("positions", "a position is a seq, or 0 for nothing held")
		}
	}
	check, err := s.store.CheckPositions(ctx, actor.User.ID, q.Positions)
	if err != nil {
		return SyncPage{}, err
	}
	return s.syncChecked(ctx, actor, q, check)
}

// holdPositions counts the named positions of conversations as delivered. It
// does not wait: the moves are queued, and a repeat of the sync repeats them.
func (s *Service) holdPositions(ctx context.Context, actor Actor, conversations []ID, positions map[ID]SyncPosition) {
	// The moves are queued and outlive the request that names them. They may be many: none has
	// spans of its own.
	ctx = withoutSpan(context.WithoutCancel(ctx))
	for _, id := range conversations {
		s.MarkDelivered(ctx, actor, id, positions[id].Seq, func(_ PositionResult, err error) {
			if err != nil {
				s.log.WarnContext(ctx, "a position named in sync was not stored; the next sync repeats it", "error", err)
			}
		})
	}
}

// MessagesBetween are a conversation's messages with from <= seq <= upTo, oldest
// first, at most PageLimit. No caller: a node repairs a gap in its delivery.
func (s *Service) MessagesBetween(ctx context.Context, conversation ID, from, upTo int64) ([]Message, error) {
	return s.store.MessagesBetween(ctx, conversation, from, upTo)
}
