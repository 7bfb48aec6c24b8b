package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
	"xabar/persistence/internal/cursor"
)

// receiptsSQL lists the members beside the caller who could have the message (who
// joined later is not asked). The sender has it since it was sent. The first advance that
// reaches the message is when it was delivered (read) to anybody else. A read is not
// shown before its delivery, which a clock that stepped back in between could do.
const receiptsSQL = `
SELECT m.user_id, m.last_delivered_seq >= $3 OR s.mine, m.last_read_seq >= $3 OR s.mine,
       CASE WHEN s.mine THEN s.at ELSE d.at END, CASE WHEN s.mine THEN s.at ELSE CASE WHEN r.at IS NOT NULL THEN greatest(r.at, d.at) END END
FROM (
  SELECT y.conversation_id, c.member_count, x.sender_id, x.created_at FROM members y
  CROSS JOIN LATERAL (SELECT * FROM conversations z WHERE z.id = y.conversation_id LIMIT 1) c
  CROSS JOIN LATERAL (SELECT * FROM messages z WHERE z.conversation_id = y.conversation_id AND z.seq = $3 LIMIT 1) x
  WHERE y.conversation_id = $2 AND y.user_id = $1 AND y.joined_seq < $3) me
LEFT JOIN LATERAL (
  SELECT * FROM members y
  WHERE y.conversation_id = me.conversation_id AND y.user_id > $4 AND y.user_id <> $1 AND y.joined_seq < $3
  ORDER BY y.user_id LIMIT $5) m ON true
CROSS JOIN LATERAL (
  SELECT m.user_id = me.sender_id AS mine, CASE WHEN me.member_count <= 32 THEN me.created_at END AS at) s
LEFT JOIN LATERAL (
  SELECT y.at FROM receipts y
  WHERE y.conversation_id = $2 AND y.user_id = m.user_id AND y.kind = 1 AND y.up_to_seq >= $3
    AND m.last_delivered_seq >= $3 AND me.member_count <= 32
  ORDER BY y.up_to_seq LIMIT 1) d ON true
LEFT JOIN LATERAL (
  SELECT y.at FROM receipts y
  WHERE y.conversation_id = $2 AND y.user_id = m.user_id AND y.kind = 2 AND y.up_to_seq >= $3
    AND m.last_read_seq >= $3 AND me.member_count <= 32
  ORDER BY y.up_to_seq LIMIT 1) r ON true
ORDER BY m.user_id`

// Receipts implements chat.PositionStore.
func (s *Store) Receipts(ctx context.Context, user, conversation chat.ID, seq int64, page chat.PageRequest) (chat.Page[chat.Receipt], error) {
	result := chat.Page[chat.Receipt]{Items: []chat.Receipt{}}
	after, _, err := cursor.Decode(cursor.Receipts, page.Cursor)
	if err != nil {
		return result, err
	}
	all, err := collect(ctx, s, func(rows pgx.Rows) (*chat.Receipt, error) {
		var r chat.Receipt
		var id *chat.ID
		var delivered, read *bool
		if err := rows.Scan(&id, &delivered, &read, scanOptional{&r.DeliveredAt}, scanOptional{&r.ReadAt}); err != nil || id == nil {
			return nil, err
		}
		r.UserID, r.Delivered, r.Read = *id, *delivered, *read
		return &r, nil
	}, receiptsSQL, user, conversation, seq, after.ID, page.Size()+1)
	if err != nil {
		return result, err
	}
	if len(all) == 0 {
		return result, chat.Errorf(chat.CodeNotFound, "")
	}
	all, more := trim(all, page.Size())
	for _, r := range all {
		if r != nil {
			result.Items = append(result.Items, *r)
		}
	}
	if more {
		result.NextCursor = cursor.Encode(cursor.Receipts, cursor.Cursor{ID: all[len(all)-1].UserID})
	}
	return result, nil
}
