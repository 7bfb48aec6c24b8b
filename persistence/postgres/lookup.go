package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
)

const directSQL = `
SELECT id FROM conversations
WHERE kind = 'direct' AND user_low = least($1::uuid, $2::uuid) AND user_high = greatest($1::uuid, $2::uuid)`

// FindDirect implements chat.LookupStore.
func (s *Store) FindDirect(ctx context.Context, user, peer chat.ID) (id chat.ID, err error) {
	return id, s.queryRow(ctx, directSQL, []any{user, peer}, &id)
}

const numberSQL = `
SELECT ` + messageColumns + `
FROM (SELECT * FROM messages y WHERE y.number = $2 LIMIT 1) x
CROSS JOIN LATERAL (
  SELECT y.joined_seq FROM members y WHERE y.conversation_id = x.conversation_id AND y.user_id = $1 LIMIT 1) m
WHERE x.seq > m.joined_seq`

// MessageByNumber implements chat.LookupStore.
func (s *Store) MessageByNumber(ctx context.Context, user chat.ID, number int64) (m chat.Message, err error) {
	return m, s.queryRow(ctx, numberSQL, []any{user, number}, messageFields(&m)...)
}

// directReceiptsSQL gives each message with what its recipient's positions and log of
// advances say.
const directReceiptsSQL = `
SELECT x.seq, x.created_at, m.last_delivered_seq >= x.seq, m.last_read_seq >= x.seq, d.at, r.at
FROM members me
CROSS JOIN LATERAL (
  SELECT y.conversation_id, y.seq, y.created_at, y.sender_id FROM messages y
  WHERE y.conversation_id = me.conversation_id AND y.seq > me.joined_seq AND y.seq >= $3 AND y.seq <= $4
  ORDER BY y.seq LIMIT $5) x
CROSS JOIN LATERAL (
  SELECT * FROM members y WHERE y.conversation_id = x.conversation_id
    AND y.user_id = CASE WHEN x.sender_id = me.user_id THEN me.peer_id ELSE me.user_id END LIMIT 1) m
LEFT JOIN LATERAL (
  SELECT y.at FROM receipts y
  WHERE y.conversation_id = x.conversation_id AND y.user_id = m.user_id AND y.kind = 1 AND y.up_to_seq >= x.seq
  ORDER BY y.up_to_seq LIMIT 1) d ON true
LEFT JOIN LATERAL (
  SELECT y.at FROM receipts y
  WHERE y.conversation_id = x.conversation_id AND y.user_id = m.user_id AND y.kind = 2 AND y.up_to_seq >= x.seq
  ORDER BY y.up_to_seq LIMIT 1) r ON true
WHERE me.conversation_id = $2 AND me.user_id = $1 AND me.peer_id IS NOT NULL
ORDER BY x.seq`

// DirectReceipts implements chat.LookupStore.
func (s *Store) DirectReceipts(ctx context.Context, user, conversation chat.ID, from, upTo int64) ([]chat.DirectReceipt, error) {
	return collect(ctx, s, func(rows pgx.Rows) (chat.DirectReceipt, error) {
		var seq int64
		var createdAt chat.Time
		var delivered, read bool
		var deliveredAt, readAt *chat.Time
		err := rows.Scan(&seq, scanTime{&createdAt}, &delivered, &read, scanOptional{&deliveredAt}, scanOptional{&readAt})
		return chat.NewDirectReceipt(seq, createdAt, delivered, read, deliveredAt, readAt), err
	}, directReceiptsSQL, user, conversation, from, upTo, chat.PageLimit)
}
