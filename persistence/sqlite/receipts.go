package sqlite

import (
	"context"
	"database/sql"

	"xabar/chat"
	"xabar/persistence/internal/cursor"
)

// receiptsQuery lists the members beside the caller (?2) who could have the
// message: who joined later is not asked. The sender has it since it was sent.
// Before the first advance that reaches a seq there is no row of the log, and an
// advance before the log began (or in a group that was large) has a position and
// no time.
const receiptsQuery = `
SELECT o.user_id, o.last_delivered_seq, o.last_read_seq, msg.sender_id, msg.created_at, c.member_count,
	(SELECT r.at FROM receipts r WHERE r.conversation_id = ?1 AND r.user_id = o.user_id AND r.kind = 1
		AND r.up_to_seq >= ?3 ORDER BY r.up_to_seq LIMIT 1),
	(SELECT r.at FROM receipts r WHERE r.conversation_id = ?1 AND r.user_id = o.user_id AND r.kind = 2
		AND r.up_to_seq >= ?3 ORDER BY r.up_to_seq LIMIT 1)
FROM members me
JOIN conversations c ON c.id = me.conversation_id
JOIN messages msg ON msg.conversation_id = me.conversation_id AND msg.seq = ?3 AND msg.seq > me.joined_seq
JOIN members o ON o.conversation_id = me.conversation_id AND o.user_id <> me.user_id AND o.joined_seq < ?3
WHERE me.conversation_id = ?1 AND me.user_id = ?2 AND o.user_id > ?4
ORDER BY o.user_id
LIMIT ?5`

// Receipts says who of the others has the message, by user id.
func (s *Store) Receipts(ctx context.Context, user, conversation chat.ID, seq int64, page chat.PageRequest) (chat.Page[chat.Receipt], error) {
	var result chat.Page[chat.Receipt]
	after, _, err := cursor.Decode(cursor.Receipts, page.Cursor)
	if err != nil {
		return result, err
	}
	size := page.Size()
	result.Items, err = all(ctx, s.reader, func(row scanner) (chat.Receipt, error) { return scanReceipt(row, seq) },
		receiptsQuery, conversation[:], user[:], seq, after.ID[:], size+1)
	if err != nil {
		return result, translate(ctx, err)
	}
	if len(result.Items) == 0 {
		return result, s.checkMessage(ctx, user, conversation, seq)
	}
	if len(result.Items) > size {
		result.Items = result.Items[:size]
		result.NextCursor = cursor.Encode(cursor.Receipts, cursor.Cursor{ID: result.Items[size-1].UserID})
	}
	return result, nil
}

func scanReceipt(row scanner, seq int64) (chat.Receipt, error) {
	var r chat.Receipt
	var delivered, read, createdAt int64
	var sender chat.ID
	var members int
	var deliveredAt, readAt sql.NullInt64
	err := row.Scan(&r.UserID, &delivered, &read, &sender, &createdAt, &members, &deliveredAt, &readAt)
	if err != nil {
		return r, err
	}
	r.Delivered, r.Read = delivered >= seq, read >= seq
	if r.UserID == sender {
		r.Delivered, r.Read = true, true
		deliveredAt = sql.NullInt64{Int64: createdAt, Valid: true}
		readAt = deliveredAt
	}
	if members > chat.ReceiptMembers {
		return r, nil
	}
	// The clock may have been stepped back between the two.
	readAt.Int64 = max(readAt.Int64, deliveredAt.Int64)
	r.DeliveredAt, r.ReadAt = optionalTime(deliveredAt), optionalTime(readAt)
	return r, nil
}

// checkMessage is not_found unless user can see the message.
func (s *Store) checkMessage(ctx context.Context, user, conversation chat.ID, seq int64) error {
	var is int
	found, err := one(ctx, s.reader, `SELECT 1 FROM members m
		JOIN messages msg ON msg.conversation_id = m.conversation_id AND msg.seq = ?3 AND msg.seq > m.joined_seq
		WHERE m.conversation_id = ?1 AND m.user_id = ?2`, []any{conversation[:], user[:], seq}, &is)
	if err == nil && !found {
		return chat.Errorf(chat.CodeNotFound, "")
	}
	return translate(ctx, err)
}
