package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
)

// historySQL is a page of a conversation of the user's: $3 is the seq to start
// before (newest first) or after (oldest first). A member of an empty page gets one
// row, a stranger none.
func historySQL(condition, order string) string {
	return `
SELECT c.last_seq, ` + messageColumns + `
FROM members m
CROSS JOIN LATERAL (SELECT * FROM conversations y WHERE y.id = m.conversation_id LIMIT 1) c
LEFT JOIN LATERAL (
  SELECT * FROM messages y
  WHERE y.conversation_id = m.conversation_id AND y.seq > m.joined_seq AND ` + condition + `
  ORDER BY y.seq ` + order + ` LIMIT $4) x ON true
WHERE m.conversation_id = $2 AND m.user_id = $1
ORDER BY x.seq ` + order
}

var (
	historyBefore = historySQL("y.seq < $3", "DESC")
	historyAfter  = historySQL("y.seq > $3", "ASC")
)

// History implements chat.MessageStore.
func (s *Store) History(ctx context.Context, user chat.ID, q chat.HistoryQuery) (chat.HistoryPage, error) {
	limit := chat.ClampLimit(q.Limit)
	sql, from := historyBefore, int64(1<<62)
	switch {
	case q.BeforeSeq != nil:
		from = *q.BeforeSeq
	case q.AfterSeq != nil:
		sql, from = historyAfter, *q.AfterSeq
	}
	page := chat.HistoryPage{Messages: []chat.Message{}}
	rows, err := collect(ctx, s, func(rows pgx.Rows) (*chat.Message, error) {
		var m maybeMessage
		err := rows.Scan(append([]any{&page.LastSeq}, m.fields()...)...)
		return m.message(), err
	}, sql, user, q.ConversationID, from, limit+1)
	if err != nil {
		return page, err
	}
	if len(rows) == 0 {
		return page, chat.Errorf(chat.CodeNotFound, "")
	}
	rows, page.HasMore = trim(rows, limit)
	for _, m := range rows {
		if m != nil {
			page.Messages = append(page.Messages, *m)
		}
	}
	return page, nil
}

// MessagesBetween implements chat.MessageStore.
func (s *Store) MessagesBetween(ctx context.Context, conversation chat.ID, from, upTo int64) ([]chat.Message, error) {
	return collect(ctx, s, func(rows pgx.Rows) (m chat.Message, err error) {
		return m, rows.Scan(messageFields(&m)...)
	}, `SELECT `+messageColumns+` FROM messages x
		WHERE x.conversation_id = $1 AND x.seq >= $2 AND x.seq <= $3 ORDER BY x.seq LIMIT $4`,
		conversation, from, upTo, chat.PageLimit)
}
