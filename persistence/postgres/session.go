package postgres

import (
	"context"
	"strings"

	"xabar/chat"
)

// sessionsSQL asks for each of the users $1 by the same index reads, whatever their number. What
// is undelivered is never settled.
var sessionsSQL = `
SELECT i.ord, t.kind, t.a, t.b, t.id
FROM unnest($1::uuid[]) WITH ORDINALITY AS i (usr, ord)
CROSS JOIN LATERAL (
  WITH ` + strings.ReplaceAll(looseSQL, "$1", "i.usr") + `
  SELECT 1 AS kind, unread AS a, loose AS b, (SELECT ` + epochColumn + ` FROM secrets WHERE name = 'epoch') AS id FROM total
  UNION ALL
  SELECT 2, 0, 0, conversation_id FROM members WHERE user_id = i.usr AND peer_id IS NULL
  UNION ALL
  SELECT 3, last_delivered_seq, last_seq, conversation_id FROM loose WHERE last_delivered_seq < last_seq) t`

// What a row of sessionsSQL is about.
const (
	rowTotals      = 1
	rowGroup       = 2
	rowUndelivered = 3
)

// Session implements chat.ConversationStore.
func (s *Store) Session(ctx context.Context, user chat.ID) (chat.Session, error) {
	found, err := s.sessions.Do(ctx, user)
	if err != nil {
		return chat.Session{}, err
	}
	s.settler.noticed(user, found.loose)
	return found.Session, nil
}

// openedSession is a session, and how many loose rows the look has met.
type openedSession struct {
	chat.Session
	loose int64
}

// readSessions is the readshare.Exec of sessions.
func (s *Store) readSessions(ctx context.Context, users []chat.ID, sessions []openedSession) error {
	ids := newArray(oidUUID, len(users), 16)
	for _, user := range users {
		ids.id(user)
	}
	return s.readBinary(ctx, "xabar_sessions", sessionsSQL, [][]byte{ids.b, timestamp(s.now())},
		func() { clear(sessions) }, func(r row) { sessions[r.int(0)-1].add(r) })
}

func (o *openedSession) add(r row) {
	switch r.int(1) {
	case rowTotals:
		o.UnreadTotal, o.loose, o.Epoch = r.int(2), r.int(3), r.id(4)
	case rowGroup:
		o.Groups = append(o.Groups, r.id(4))
	case rowUndelivered:
		o.Undelivered = append(o.Undelivered, chat.Undelivered{ConversationID: r.id(4), LastDeliveredSeq: r.int(2), LastSeq: r.int(3)})
	}
}
