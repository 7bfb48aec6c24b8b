package sqlite

import (
	"context"
	"database/sql"
	"math"

	"xabar/chat"
	"xabar/persistence/internal/cursor"
)

// unreadQuery sums over the conversations that are not muted at ?2.
const unreadQuery = `
SELECT coalesce(sum(c.last_seq - m.last_read_seq), 0)
FROM members m JOIN conversations c ON c.id = m.conversation_id
WHERE m.user_id = ?1 AND (m.muted_until IS NULL OR m.muted_until <= ?2)`

// listQuery finds the page's keys first and views only those.
var listQuery = `
WITH page AS MATERIALIZED (
	SELECT c.id, coalesce(c.last_message_at, c.created_at) AS activity
	FROM members m JOIN conversations c ON c.id = m.conversation_id
	WHERE m.user_id = ?1 AND (coalesce(c.last_message_at, c.created_at), c.id) < (?3, ?4)
	ORDER BY activity DESC, c.id DESC
	LIMIT ?5)
SELECT (` + unreadQuery + `), page.activity, ` + viewColumns + `
FROM page
CROSS JOIN members m ON m.conversation_id = page.id AND m.user_id = ?1
CROSS JOIN conversations c ON c.id = page.id` + viewJoins + `
ORDER BY page.activity DESC, page.id DESC`

// Conversations lists user's conversations.
func (s *Store) Conversations(ctx context.Context, user chat.ID, page chat.PageRequest) (chat.ConversationPage, error) {
	result := chat.ConversationPage{Conversations: []chat.Conversation{}}
	before, ok, err := cursor.Decode(cursor.Conversations, page.Cursor)
	if err != nil {
		return result, err
	}
	if !ok {
		before.At = math.MaxInt64
	}
	size := page.Size()
	var activity int64
	err = each(ctx, s.reader, func(row scanner) error {
		if len(result.Conversations) == size {
			last := result.Conversations[size-1]
			result.NextCursor = cursor.Encode(cursor.Conversations, cursor.Cursor{At: activity, ID: last.ID})
			return nil
		}
		var v viewRow
		err := row.Scan(append([]any{&result.UnreadTotal, &activity}, v.dest()...)...)
		result.Conversations = append(result.Conversations, v.conversation())
		return err
	}, listQuery, user[:], s.now(), before.At, before.ID[:], size+1)
	if err != nil {
		return result, translate(ctx, err)
	}
	if len(result.Conversations) == 0 { // no row to carry the total
		result.UnreadTotal, err = s.UnreadTotal(ctx, user)
	}
	return result, err
}

// now is the time for comparing with stored ones.
func (s *Store) now() int64 { return s.clock.Now().UnixMilli() }

// UnreadTotal is the sum over user's conversations.
func (s *Store) UnreadTotal(ctx context.Context, user chat.ID) (int64, error) {
	var total int64
	_, err := one(ctx, s.reader, unreadQuery, []any{user[:], s.now()}, &total)
	return total, translate(ctx, err)
}

// UnreadTotals asks for one after the other: there is no way to the database that could be saved.
func (s *Store) UnreadTotals(ctx context.Context, users []chat.ID) (map[chat.ID]int64, error) {
	totals := make(map[chat.ID]int64, len(users))
	for _, user := range users {
		total, err := s.UnreadTotal(ctx, user)
		if err != nil {
			return nil, err
		}
		totals[user] = total
	}
	return totals, nil
}

const sessionQuery = `
SELECT c.id, c.kind, c.last_seq, m.last_delivered_seq, m.last_read_seq, m.muted_until
FROM members m JOIN conversations c ON c.id = m.conversation_id
WHERE m.user_id = ?1
ORDER BY m.conversation_id`

// Session is what a new connection needs.
func (s *Store) Session(ctx context.Context, user chat.ID) (chat.Session, error) {
	var session chat.Session
	now := s.now()
	epoch, err := s.epoch(ctx, s.reader)
	if err != nil {
		return session, translate(ctx, err)
	}
	session.Epoch = epoch
	err = each(ctx, s.reader, func(row scanner) error {
		var u chat.Undelivered
		var kind chat.Kind
		var read int64
		var muted sql.NullInt64
		if err := row.Scan(&u.ConversationID, &kind, &u.LastSeq, &u.LastDeliveredSeq, &read, &muted); err != nil {
			return err
		}
		if !muted.Valid || muted.Int64 <= now {
			session.UnreadTotal += u.LastSeq - read
		}
		if kind == chat.Group {
			session.Groups = append(session.Groups, u.ConversationID)
		}
		if u.LastDeliveredSeq < u.LastSeq {
			session.Undelivered = append(session.Undelivered, u)
		}
		return nil
	}, sessionQuery, user[:])
	return session, translate(ctx, err)
}
