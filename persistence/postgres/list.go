package postgres

import (
	"context"
	"encoding/binary"
	"strings"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
	"xabar/persistence/internal/cursor"
)

// looseSQL are the user's ($1) conversations of which nothing is settled
// (migrations/postgres/000010_activity.up.sql), with their state of now, and what
// they add to the settled total ($2 is now: what is muted adds nothing).
const looseSQL = `
loose AS MATERIALIZED (
  SELECT m.conversation_id, coalesce(c.last_message_at, c.created_at) AS at, c.last_seq, m.last_delivered_seq,
         CASE WHEN m.muted_until > $2::timestamptz THEN 0 ELSE c.last_seq - m.last_read_seq END - m.settled_unread AS more
  FROM members m
  CROSS JOIN LATERAL (SELECT * FROM conversations y WHERE y.id = m.conversation_id LIMIT 1) c
  WHERE m.user_id = $1 AND NOT m.settled
), total AS MATERIALIZED (
  SELECT (coalesce((SELECT settled_unread FROM users WHERE id = $1), 0)
       + coalesce((SELECT sum(more) FROM loose), 0)
       -- Mutes that ended while nothing happened.
       + coalesce((SELECT sum(c.last_seq - m.last_read_seq)
                   FROM members m CROSS JOIN LATERAL (SELECT * FROM conversations y WHERE y.id = m.conversation_id LIMIT 1) c
                   WHERE m.user_id = $1 AND m.muted_until <= $2::timestamptz AND m.settled), 0))::int8 AS unread,
       (SELECT count(*) FROM loose) AS loose
)`

// listSQL is a page of the user's conversations: the newest of the loose ones and
// the newest of the settled ones, merged. The total comes with every row, and
// alone when there is none.
const listSQL = `
WITH ` + looseSQL + `, page AS MATERIALIZED (
  (SELECT conversation_id, at FROM loose
   WHERE NOT $3 OR (at, conversation_id) < ($4::timestamptz, $5::uuid)
   ORDER BY at DESC, conversation_id DESC LIMIT $6)
  UNION ALL
  (SELECT m.conversation_id, m.settled_at FROM members m
   WHERE m.user_id = $1 AND m.settled
     AND (m.settled_at, m.conversation_id) < (CASE WHEN $3 THEN $4::timestamptz ELSE 'infinity' END, $5::uuid)
   ORDER BY m.settled_at DESC, m.conversation_id DESC LIMIT $6)
  ORDER BY 2 DESC, 1 DESC LIMIT $6
)
SELECT total.unread, total.loose, ` + viewColumns + `
FROM total LEFT JOIN (
  (SELECT conversation_id, at, $1::uuid AS user_id FROM page) v ` + viewJoins + `
) ON true
ORDER BY v.at DESC NULLS LAST, v.conversation_id DESC`

// Conversations implements chat.ConversationStore.
func (s *Store) Conversations(ctx context.Context, user chat.ID, page chat.PageRequest) (chat.ConversationPage, error) {
	result := chat.ConversationPage{Conversations: []chat.Conversation{}}
	after, more, err := cursor.Decode(cursor.Conversations, page.Cursor)
	if err != nil {
		return result, err
	}
	now := s.now()
	var loose int64
	list, err := collect(ctx, s, func(rows pgx.Rows) (*chat.Conversation, error) {
		r := row(rows.RawValues())
		result.UnreadTotal, loose = r.int(0), r.int(1)
		return r.view(2), nil
	}, listSQL, user, now, more, millis(after.At), after.ID, page.Size()+1)
	if err != nil {
		return result, err
	}
	s.settler.noticed(user, loose)
	for _, c := range list {
		if c != nil {
			unmuted(c, now)
			result.Conversations = append(result.Conversations, *c)
		}
	}
	result.Conversations, more = trim(result.Conversations, page.Size())
	if more {
		last := result.Conversations[len(result.Conversations)-1]
		result.NextCursor = cursor.Encode(cursor.Conversations, cursor.Cursor{At: last.UpdatedAt.UnixMilli(), ID: last.ID})
	}
	return result, nil
}

// UnreadTotal implements chat.ConversationStore.
func (s *Store) UnreadTotal(ctx context.Context, user chat.ID) (int64, error) {
	var unread, loose int64
	err := s.queryRow(ctx, `WITH `+looseSQL+` SELECT unread, loose FROM total`, []any{user, s.now()}, &unread, &loose)
	if err == nil {
		s.settler.noticed(user, loose)
	}
	return unread, err
}

// unreadTotalsSQL asks for each user what looseSQL tells of one, by the same index reads.
var unreadTotalsSQL = `
SELECT i.usr, t.unread, t.loose
FROM unnest($1::uuid[]) AS i (usr)
CROSS JOIN LATERAL (WITH ` + strings.ReplaceAll(looseSQL, "$1", "i.usr") + ` SELECT unread, loose FROM total) t`

// UnreadTotals implements chat.ConversationStore.
func (s *Store) UnreadTotals(ctx context.Context, users []chat.ID) (map[chat.ID]int64, error) {
	totals := make(map[chat.ID]int64, len(users))
	_, err := collect(ctx, s, func(rows pgx.Rows) (struct{}, error) {
		var user chat.ID
		var unread, loose int64
		err := rows.Scan(&user, &unread, &loose)
		if err == nil {
			totals[user] = unread
			s.settler.noticed(user, loose)
		}
		return struct{}{}, err
	}, unreadTotalsSQL, users, s.now())
	return totals, interpret(err)
}

// lockOf is a user's advisory lock.
func lockOf(user chat.ID) int64 {
	return int64(binary.BigEndian.Uint64(user[8:]) ^ binary.BigEndian.Uint64(user[:8]))
}
