package sqlite

import (
	"context"
	"math"

	"xabar/chat"
)

// The member's row carries lastSeq, so that an empty page has it too; no row at
// all is a stranger.
const (
	historyFrom = `SELECT c.last_seq, ` + messageColumns + `
FROM members m JOIN conversations c ON c.id = m.conversation_id
LEFT JOIN messages msg ON msg.conversation_id = m.conversation_id AND msg.seq > m.joined_seq AND `
	historyWhere = ` WHERE m.conversation_id = ?1 AND m.user_id = ?2 ORDER BY msg.seq `

	historyBefore = historyFrom + `msg.seq < ?3` + historyWhere + `DESC LIMIT ?4`
	historyAfter  = historyFrom + `msg.seq > ?3` + historyWhere + `ASC LIMIT ?4`
)

// History is a keyset page.
func (s *Store) History(ctx context.Context, user chat.ID, q chat.HistoryQuery) (chat.HistoryPage, error) {
	query, from := historyBefore, int64(math.MaxInt64)
	switch {
	case q.AfterSeq != nil:
		query, from = historyAfter, *q.AfterSeq
	case q.BeforeSeq != nil:
		from = *q.BeforeSeq
	}
	page := chat.HistoryPage{Messages: []chat.Message{}}
	size, found := chat.ClampLimit(q.Limit), false
	err := each(ctx, s.reader, func(row scanner) error {
		found = true
		var m messageRow
		if err := row.Scan(append([]any{&page.LastSeq}, m.dest()...)...); err != nil {
			return err
		}
		if m.present() {
			page.Messages = append(page.Messages, m.message())
		}
		return nil
	}, query, q.ConversationID[:], user[:], from, size+1)
	if err == nil && !found {
		err = chat.Errorf(chat.CodeNotFound, "")
	}
	if len(page.Messages) > size {
		page.Messages, page.HasMore = page.Messages[:size], true
	}
	return page, translate(ctx, err)
}

const betweenQuery = `SELECT ` + messageColumns + ` FROM messages msg
WHERE msg.conversation_id = ? AND msg.seq BETWEEN ? AND ? ORDER BY msg.seq LIMIT ?`

// MessagesBetween are the messages of a gap.
func (s *Store) MessagesBetween(ctx context.Context, conversation chat.ID, from, upTo int64) ([]chat.Message, error) {
	messages, err := all(ctx, s.reader, scanMessage, betweenQuery, conversation[:], from, upTo, chat.PageLimit)
	return messages, translate(ctx, err)
}
