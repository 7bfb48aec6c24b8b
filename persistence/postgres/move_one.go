package postgres

import (
	"context"

	"xabar/chat"
)

// moveOneSQL moves one member's delivered position where it is just what the move goes on from, else it
// changes nothing and answers no row: then moveSQL does it. It is to moveSQL what sendOneSQL is to
// sendSQL. Its parameters are the conversation, the user, after, up to, the time, and the size up to
// which the move is logged.
const moveOneSQL = `
WITH up AS (
  UPDATE members m
  SET last_delivered_seq = $4::int8
  FROM conversations c
  WHERE c.id = $1::uuid AND c.last_seq >= $4::int8
    AND m.conversation_id = $1::uuid AND m.user_id = $2::uuid AND m.last_delivered_seq = $3::int8
  RETURNING m.last_read_seq AS read, m.peer_id, c.last_seq, c.member_count::int8 AS member_count
), log AS (
  INSERT INTO receipts (conversation_id, user_id, kind, up_to_seq, at)
  SELECT $1::uuid, $2::uuid, 1, $4::int8, $5::timestamptz FROM up WHERE member_count <= $6::int8
  ON CONFLICT DO NOTHING
)
SELECT read, last_seq, member_count, peer_id FROM up`

// plain says whether moveOneSQL may do.
func (c *claim) plain() bool { return c.sure == 0 && c.read == 0 && c.upTo > c.after }

// moveOne runs moveOneSQL. The position has moved if c.found says so afterwards.
func (s *Store) moveOne(ctx context.Context, c *claim, now chat.Time) error {
	params := [][]byte{c.key[:16], c.key[16:], integer(c.after), integer(c.upTo), timestamp(now.Time), integer(chat.ReceiptMembers)}
	return runBinary(ctx, s.write, moveOneStatement, params, func(r row) {
		c.found, c.moved = true, true
		c.delivered, c.newDelivered = c.after, c.upTo
		c.seen, c.newSeen = r.int(0), r.int(0)
		c.lastSeq, c.memberCount, c.peer = r.int(1), r.int(2), r.optionalID(3)
	})
}
