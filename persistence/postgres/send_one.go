package postgres

import (
	"context"

	"xabar/chat"
)

// sendOneSQL stores one message if nothing about it is special, else it changes nothing and answers
// no row: then sendSQL looks what it is. A node that is not busy runs statements for one message, and
// starting sendSQL's many parts costs the database more than all the rest of such a message.
//
// Its parameters are the message's id, conversation, sender, clientMsgId and text; then the time of
// creation, the outbox lease (as sendSQL's), and that. Special is a repeat, a sender who is no member,
// is blocked or has blocked the other, or has not read everything before; and a conversation some of
// whose members may be settled. Where another transaction has just numbered the conversation, PostgreSQL
// tests the condition again on the new row, and the sender, whose row it does not read again, has not
// read that: no row. The parts mean what those of the same name in sendSQL do.
const sendOneSQL = `
WITH up AS (
  UPDATE conversations c
  SET last_seq = c.last_seq + 1, version = c.version + 1, last_message_at = greatest($6::timestamptz, c.last_message_at)
  FROM members m
  WHERE c.id = $2::uuid AND m.conversation_id = $2::uuid AND m.user_id = $3::uuid
    AND c.loose_from <> 0 AND m.last_delivered_seq >= c.last_seq AND m.last_read_seq >= c.last_seq
    AND NOT EXISTS (SELECT 1 FROM messages d WHERE d.sender_id = $3::uuid AND d.client_msg_id = $4::text)
    AND NOT EXISTS (SELECT 1 FROM blocks b WHERE b.user_id = $3::uuid AND b.blocked_id = m.peer_id)
    AND NOT EXISTS (SELECT 1 FROM blocks b WHERE b.user_id = m.peer_id AND b.blocked_id = $3::uuid)
  RETURNING c.last_seq, c.version, c.last_message_at AS at, c.member_count, m.peer_id, m.last_delivered_seq AS delivered, m.last_read_seq AS read
), ins AS (
  INSERT INTO messages (id, conversation_id, seq, version, sender_id, client_msg_id, text, created_at)
  SELECT $1::uuid, $2::uuid, last_seq, nullif(version, last_seq), $3::uuid, $4::text, $5::text, at FROM up
  ON CONFLICT (sender_id, client_msg_id) WHERE client_msg_id IS NOT NULL DO NOTHING
  RETURNING seq, created_at, number
), box AS (
  INSERT INTO outbox (created_at, conversation_id, seq, leased_until)
  SELECT created_at, $2::uuid, seq, coalesce($7::timestamptz, statement_timestamp()) + $8::float8 * interval '1 second' FROM ins
), pos AS (
  UPDATE members m
  SET settled = false, last_delivered_seq = greatest(m.last_delivered_seq, up.last_seq), last_read_seq = greatest(m.last_read_seq, up.last_seq)
  FROM up WHERE m.conversation_id = $2::uuid AND m.user_id = $3::uuid
)
SELECT last_seq, version, at, member_count::int8, peer_id, delivered, read, (SELECT number FROM ins) FROM up`

// plain says whether sendOneSQL may do.
func (b *sendBatch) plain() bool {
	return len(b.items) == 1 && b.items[0].Req.ReplyToSeq == nil && !b.items[0].Req.System
}

// sendOne runs sendOneSQL. The message is stored if b.good is 1 afterwards.
func (s *Store) sendOne(ctx context.Context, b *sendBatch) error {
	req := &b.items[0].Req
	params := [][]byte{
		b.ids[0][:], req.ConversationID[:], req.SenderID[:], []byte(req.ClientMsgID), []byte(req.Text),
		timestamp(s.now()), s.leaseFrom(), seconds(chat.OutboxLease),
	}
	return runBinary(ctx, s.write, sendOneStatement, params, b.readOne)
}

// readOne takes the row of sendOneSQL's answer.
func (b *sendBatch) readOne(r row) {
	c := &numbered{lastSeq: r.int(0), version: r.int(1), at: r.time(2), memberCount: int(r.int(3)), n: 1, run: 1, leadMoved: true}
	b.numbered[b.items[0].Req.ConversationID] = c
	b.sent[0] = sentItem{status: statusGood, peer: r.optionalID(4), delivered: r.int(5), read: r.int(6)}
	b.good = 1
	if !r.null(7) { // else another node has just stored the same one
		c.number(c.lastSeq, r.int(7))
		b.inserted = 1
	}
}
