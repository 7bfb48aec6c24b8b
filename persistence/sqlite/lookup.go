package sqlite

import (
	"context"
	"database/sql"

	"xabar/chat"
)

const findDirectQuery = `
SELECT id FROM conversations WHERE kind = 'direct' AND user_low = min(?1, ?2) AND user_high = max(?1, ?2)`

// FindDirect is the direct conversation of two users.
func (s *Store) FindDirect(ctx context.Context, user, peer chat.ID) (id chat.ID, err error) {
	found, err := one(ctx, s.reader, findDirectQuery, []any{user[:], peer[:]}, &id)
	if err == nil && !found {
		err = chat.Errorf(chat.CodeNotFound, "")
	}
	return id, translate(ctx, err)
}

const byNumberQuery = `SELECT ` + messageColumns + ` FROM messages msg
JOIN members m ON m.conversation_id = msg.conversation_id AND m.user_id = ?1
WHERE msg.number = ?2 AND msg.seq > m.joined_seq`

// MessageByNumber is one that the user can see.
func (s *Store) MessageByNumber(ctx context.Context, user chat.ID, number int64) (chat.Message, error) {
	var m messageRow
	found, err := one(ctx, s.reader, byNumberQuery, []any{user[:], number}, m.dest()...)
	if err == nil && !found {
		err = chat.Errorf(chat.CodeNotFound, "")
	}
	return m.message(), translate(ctx, err)
}

// directReceiptsQuery gives each message with what its recipient's positions and log of
// advances say.
const directReceiptsQuery = `
SELECT msg.seq, msg.created_at, o.last_delivered_seq >= msg.seq, o.last_read_seq >= msg.seq,
	(SELECT r.at FROM receipts r WHERE r.conversation_id = ?1 AND r.user_id = o.user_id AND r.kind = 1
		AND r.up_to_seq >= msg.seq ORDER BY r.up_to_seq LIMIT 1),
	(SELECT r.at FROM receipts r WHERE r.conversation_id = ?1 AND r.user_id = o.user_id AND r.kind = 2
		AND r.up_to_seq >= msg.seq ORDER BY r.up_to_seq LIMIT 1)
FROM members me
JOIN conversations c ON c.id = me.conversation_id AND c.kind = 'direct'
JOIN messages msg ON msg.conversation_id = me.conversation_id AND msg.seq > me.joined_seq AND msg.seq BETWEEN ?3 AND ?4
JOIN members o ON o.conversation_id = me.conversation_id AND o.user_id <> msg.sender_id
WHERE me.conversation_id = ?1 AND me.user_id = ?2
ORDER BY msg.seq LIMIT ?5`

// DirectReceipts tells when messages were received and read.
func (s *Store) DirectReceipts(ctx context.Context, user, conversation chat.ID, from, upTo int64) ([]chat.DirectReceipt, error) {
	receipts, err := all(ctx, s.reader, scanDirectReceipt, directReceiptsQuery, conversation[:], user[:], from, upTo, chat.PageLimit)
	return receipts, translate(ctx, err)
}

func scanDirectReceipt(row scanner) (chat.DirectReceipt, error) {
	var seq, createdAt int64
	var delivered, read bool
	var deliveredAt, readAt sql.NullInt64
	err := row.Scan(&seq, &createdAt, &delivered, &read, &deliveredAt, &readAt)
	return chat.NewDirectReceipt(seq, chat.FromMillis(createdAt), delivered, read, optionalTime(deliveredAt), optionalTime(readAt)), err
}
