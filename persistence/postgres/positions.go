package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"xabar/chat"
	"xabar/persistence/groupcommit"
)

type moveItem = groupcommit.Item[chat.PositionMove, chat.PositionResult]

// moveSQL moves members' positions. Its parameters are arrays sorted by member:
// conversations, users, and what a claim says: surely delivered up to, delivered
// from after … up to (if the position is at after or beyond), read up to; then the
// time.
//
//	st     what stands, with the end of the conversation: nothing beyond it counts
//	up     only rows that move are written. The user in the WHERE is the ownership
//	log    one row for each kind that advanced; a first time is never rewritten
const moveSQL = `
WITH st AS MATERIALIZED (
  SELECT i.ord, i.conv, i.usr, i.after, least(i.sure, c.last_seq) AS sure, least(i.upto, c.last_seq) AS upto,
         least(i.seen, c.last_seq) AS seen, m.delivered, m.read, m.peer_id, c.last_seq, c.member_count
  FROM unnest($1::uuid[], $2::uuid[], $3::int8[], $4::int8[], $5::int8[], $6::int8[])
       WITH ORDINALITY AS i (conv, usr, sure, after, upto, seen, ord)
  CROSS JOIN LATERAL (
    SELECT x.last_delivered_seq AS delivered, x.last_read_seq AS read, x.peer_id
    FROM members x WHERE x.conversation_id = i.conv AND x.user_id = i.usr LIMIT 1) m
  CROSS JOIN LATERAL (
    SELECT x.last_seq, x.member_count FROM conversations x WHERE x.id = i.conv LIMIT 1) c
), up AS (
  UPDATE members m
  SET last_delivered_seq = greatest(m.last_delivered_seq, st.sure,
        CASE WHEN greatest(m.last_delivered_seq, st.sure) >= st.after THEN st.upto END),
      last_read_seq = greatest(m.last_read_seq, st.seen),
      settled = m.settled AND m.last_read_seq >= st.seen
  FROM st
  WHERE (m.conversation_id, m.user_id) >= (st.conv, st.usr) AND (m.conversation_id, m.user_id) <= (st.conv, st.usr)
    AND (st.sure > m.last_delivered_seq OR st.seen > m.last_read_seq
         OR st.upto > m.last_delivered_seq AND greatest(m.last_delivered_seq, st.sure) >= st.after)
  RETURNING st.ord, m.conversation_id, m.user_id, m.last_delivered_seq AS delivered, m.last_read_seq AS read,
            st.delivered AS old_delivered, st.read AS old_read, st.member_count
), log AS (
  INSERT INTO receipts (conversation_id, user_id, kind, up_to_seq, at)
  SELECT up.conversation_id, up.user_id, k.kind, k.seq, $7::timestamptz
  FROM up CROSS JOIN LATERAL (VALUES (1, up.delivered, up.old_delivered), (2, up.read, up.old_read)) AS k (kind, seq, old)
  WHERE up.member_count <= $8::int8 AND k.seq > k.old
  ON CONFLICT DO NOTHING
)
SELECT 1::int8, ord, delivered, read, last_seq, member_count::int8, peer_id FROM st
UNION ALL
SELECT 2, ord, delivered, read, NULL, NULL, NULL FROM up`

// MovePosition implements chat.PositionStore.
func (s *Store) MovePosition(ctx context.Context, move chat.PositionMove, done func(chat.PositionResult, error)) {
	if !move.Unhurried || !s.later.add(ctx, move, done) {
		s.moveNow(ctx, move, done)
	}
}

// HurryPositions implements chat.PositionStore.
func (s *Store) HurryPositions(user chat.ID) { s.later.hurry(user) }

func (s *Store) moveNow(ctx context.Context, move chat.PositionMove, done func(chat.PositionResult, error)) {
	s.moves.Enqueue(ctx, groupcommit.Key(move.ConversationID)^groupcommit.Key(move.UserID), move, done)
}

// execMoves runs a batch: as many statements as the member with the most claims
// that can't be said as one has, which nearly always is one.
func (s *Store) execMoves(ctx context.Context, _ int, batch []*moveItem) {
	for _, round := range rounds(batch) {
		if err := s.moveRound(ctx, round); err != nil {
			for _, c := range round {
				for _, it := range c.moves {
					it.Err = err
				}
			}
		}
	}
}

// moveRound runs moveSQL for claims of different members.
func (s *Store) moveRound(ctx context.Context, claims []*claim) error {
	slices.SortFunc(claims, func(a, b *claim) int { return bytes.Compare(a.key[:], b.key[:]) })
	now := chat.At(s.now())
	err := again(ctx, func() error {
		for _, c := range claims {
			c.found, c.moved = false, false
		}
		if len(claims) == 1 && claims[0].plain() {
			if err := s.moveOne(ctx, claims[0], now); err != nil || claims[0].found {
				return err
			}
		}
		return runBinary(ctx, s.write, moveStatement, moveParams(claims, now), func(r row) { claims[r.int(1)-1].readRow(r) })
	})
	if err != nil {
		return err
	}
	for _, c := range claims {
		c.answer(now)
	}
	return nil
}

func moveParams(claims []*claim, now chat.Time) [][]byte {
	n := len(claims)
	conversations, users := newArray(oidUUID, n, 16), newArray(oidUUID, n, 16)
	sure, after, upTo, seen := newArray(oidInt8, n, 8), newArray(oidInt8, n, 8), newArray(oidInt8, n, 8), newArray(oidInt8, n, 8)
	for _, c := range claims {
		conversations.id(chat.ID(c.key[:16]))
		users.id(chat.ID(c.key[16:]))
		sure.int(c.sure)
		after.int(c.after)
		upTo.int(c.upTo)
		seen.int(c.read)
	}
	return [][]byte{
		conversations.b, users.b, sure.b, after.b, upTo.b, seen.b, timestamp(now.Time),
		binary.BigEndian.AppendUint64(nil, chat.ReceiptMembers),
	}
}
