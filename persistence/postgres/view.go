package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
)

// view makes conversations as one user sees them out of rows (conversation_id,
// user_id) named v: each part is one look-up in an index, so the price is that of
// the rows given. limit 1 keeps the look-ups inside the loop.
const viewColumns = `c.id, c.kind, c.title, c.member_count, c.last_seq, c.version, coalesce(c.last_message_at, c.created_at),
  m.last_read_seq, m.last_delivered_seq, m.muted_until, coalesce(f.seq, 1), o.delivered, o.read,
  p.id, p.external_id, p.name, p.avatar_url, ` + messageColumns

const viewJoins = `
CROSS JOIN LATERAL (SELECT * FROM members y WHERE y.conversation_id = v.conversation_id AND y.user_id = v.user_id LIMIT 1) m
CROSS JOIN LATERAL (SELECT * FROM conversations y WHERE y.id = v.conversation_id LIMIT 1) c
LEFT JOIN LATERAL (SELECT * FROM users y WHERE y.id = m.peer_id LIMIT 1) p ON true
LEFT JOIN LATERAL (
  SELECT min(y.last_delivered_seq) AS delivered, min(y.last_read_seq) AS read
  FROM members y WHERE y.conversation_id = c.id AND y.user_id <> m.user_id AND c.member_count <= 32) o ON true
LEFT JOIN LATERAL (
  SELECT y.seq FROM messages y WHERE y.conversation_id = c.id AND y.seq > m.joined_seq ORDER BY y.seq LIMIT 1) f ON true
LEFT JOIN LATERAL (
  SELECT * FROM messages y WHERE y.conversation_id = c.id AND y.seq > m.joined_seq ORDER BY y.seq DESC LIMIT 1) x ON true`

// The 32 of viewJoins.
var _ [32]struct{} = [chat.ReceiptMembers]struct{}{}

// scanView reads viewColumns, and what more stands before them.
func scanView(rows pgx.Rows, before ...any) (chat.Conversation, error) {
	c, err := scanMaybeView(rows, before...)
	if err != nil || c == nil {
		return chat.Conversation{}, err
	}
	return *c, nil
}

// scanMaybeView is scanView of an outer join: nil when there is no conversation.
func scanMaybeView(rows pgx.Rows, before ...any) (*chat.Conversation, error) {
	var (
		id                         *chat.ID
		kind                       *chat.Kind
		title                      *string
		count                      *int
		seq, version, read, got    *int64
		first                      *int64
		updated                    *chat.Time
		c                          chat.Conversation
		peerID                     *chat.ID
		peerExternal, peerName, av *string
		last                       maybeMessage
	)
	into := append(before, &id, &kind, &title, &count, &seq, &version, scanOptional{&updated},
		&read, &got, scanOptional{&c.MutedUntil}, &first, &c.OthersDeliveredSeq, &c.OthersReadSeq,
		&peerID, &peerExternal, &peerName, &av)
	if err := rows.Scan(append(into, last.fields()...)...); err != nil || id == nil {
		return nil, err
	}
	c.ID, c.Kind, c.MemberCount, c.LastSeq, c.Version, c.UpdatedAt = *id, *kind, *count, *seq, *version, *updated
	c.LastReadSeq, c.LastDeliveredSeq, c.FirstSeq = *read, *got, *first
	c.LastMessage = last.message()
	c.Unread = c.LastSeq - c.LastReadSeq
	if title != nil {
		c.Title = *title
	}
	if peerID != nil {
		c.Peer = &chat.User{ID: *peerID, ExternalID: peerExternal, Name: *peerName, AvatarURL: av}
		c.Title = *peerName
	}
	return &c, nil
}

// unmuted hides a mute that is over.
func unmuted(c *chat.Conversation, now time.Time) {
	if c.MutedUntil != nil && !c.MutedUntil.After(now) {
		c.MutedUntil = nil
	}
}
