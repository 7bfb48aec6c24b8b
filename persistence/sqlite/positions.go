package sqlite

import (
	"context"

	"xabar/chat"
)

// MovePosition queues the move for the next batch.
func (s *Store) MovePosition(ctx context.Context, move chat.PositionMove, done func(chat.PositionResult, error)) {
	s.batcher.Enqueue(ctx, 0, request{move: &move}, func(res result, err error) { done(res.move, err) })
}

// HurryPositions has nothing to do: every move goes with the next batch.
func (s *Store) HurryPositions(chat.ID) {}

type memberKey struct{ conversation, user chat.ID }

// moveAll runs the batch's moves, those of one member together: each gets an
// answer of its own, and the row is written once.
func (t *tx) moveAll(batch []*item) error {
	var keys []memberKey
	var moves map[memberKey][]*item
	for _, it := range batch {
		if it.Req.move == nil {
			continue
		}
		if moves == nil {
			moves = map[memberKey][]*item{}
		}
		key := memberKey{it.Req.move.ConversationID, it.Req.move.UserID}
		if moves[key] == nil {
			keys = append(keys, key)
		}
		moves[key] = append(moves[key], it)
	}
	for _, key := range keys {
		err := t.alone(func() error { return t.moveMember(key, moves[key]) })
		if err == nil {
			continue
		}
		if breaksBatch(err) {
			return err
		}
		for _, it := range moves[key] {
			it.Res, it.Err = result{}, translate(background, err)
		}
	}
	return nil
}

const positionQuery = `
SELECT m.last_delivered_seq, m.last_read_seq, c.last_seq, c.kind, c.member_count, c.user_low, c.user_high
FROM members m JOIN conversations c ON c.id = m.conversation_id
WHERE m.conversation_id = ? AND m.user_id = ?`

func (t *tx) moveMember(key memberKey, moves []*item) error {
	var total chat.PositionResult
	var pair pairRow
	found, err := t.one(positionQuery, []any{key.conversation[:], key.user[:]},
		&total.OldDelivered, &total.OldRead, &total.LastSeq, &total.Kind, &total.MemberCount, &pair.low, &pair.high)
	if err != nil {
		return err
	}
	if !found {
		return chat.Errorf(chat.CodeNotFound, "")
	}
	total.MemberIDs = pair.ids()
	total.NewDelivered, total.NewRead = total.OldDelivered, total.OldRead
	for _, it := range moves {
		it.Res.move = t.apply(&total, it.Req.move)
	}
	if total.NewDelivered == total.OldDelivered && total.NewRead == total.OldRead {
		return nil
	}
	if err := t.storeMove(key, &total); err != nil {
		return err
	}
	return t.logMove(key, &total)
}

// apply takes total's new positions one move further and gives that step.
func (t *tx) apply(total *chat.PositionResult, move *chat.PositionMove) chat.PositionResult {
	step := *total
	step.OldDelivered, step.OldRead = total.NewDelivered, total.NewRead
	upTo := min(move.UpTo, total.LastSeq)
	switch {
	case move.Kind == chat.Read:
		step.NewRead = max(step.OldRead, upTo)
		step.NewDelivered = max(step.OldDelivered, step.NewRead)
	case step.OldDelivered >= move.After || move.After <= 0:
		step.NewDelivered = max(step.OldDelivered, upTo)
	}
	if step.NewDelivered != step.OldDelivered || step.NewRead != step.OldRead {
		step.At = t.now
	}
	total.NewDelivered, total.NewRead = step.NewDelivered, step.NewRead
	return step
}

// storeMove writes the member's positions: its own row, and never back.
func (t *tx) storeMove(key memberKey, moved *chat.PositionResult) error {
	return t.run(`UPDATE members SET
			last_delivered_seq = max(last_delivered_seq, ?), last_read_seq = max(last_read_seq, ?)
		WHERE conversation_id = ? AND user_id = ?`,
		moved.NewDelivered, moved.NewRead, key.conversation[:], key.user[:])
}

// logMove keeps the time of an advance, in conversations small enough.
func (t *tx) logMove(key memberKey, moved *chat.PositionResult) error {
	if moved.MemberCount > chat.ReceiptMembers {
		return nil
	}
	const insert = `INSERT INTO receipts (conversation_id, user_id, kind, up_to_seq, at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT DO NOTHING`
	if moved.NewDelivered > moved.OldDelivered {
		if err := t.run(insert, key.conversation[:], key.user[:], int(chat.Delivered), moved.NewDelivered, t.millis()); err != nil {
			return err
		}
	}
	if moved.NewRead > moved.OldRead {
		return t.run(insert, key.conversation[:], key.user[:], int(chat.Read), moved.NewRead, t.millis())
	}
	return nil
}
