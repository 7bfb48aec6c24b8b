package postgres

import (
	"time"

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

// viewWidth is how many viewColumns there are.
const viewWidth = 17 + messageWidth

// view reads viewColumns, the first of them at i; nil when there is no conversation.
func (r row) view(i int) *chat.Conversation {
	r = r[i : i+viewWidth]
	if r.null(0) {
		return nil
	}
	c := &chat.Conversation{
		ID: r.id(0), Kind: chat.Kind(r[1]), Title: string(r[2]), MemberCount: int(r.int(3)), LastSeq: r.int(4), Version: r.int(5),
		UpdatedAt: r.time(6), LastReadSeq: r.int(7), LastDeliveredSeq: r.int(8), MutedUntil: r.optionalTime(9), FirstSeq: r.int(10),
		OthersDeliveredSeq: r.optional(11), OthersReadSeq: r.optional(12), LastMessage: r.message(17),
	}
	c.Unread = c.LastSeq - c.LastReadSeq
	if !r.null(13) {
		c.Peer = &chat.User{ID: r.id(13), ExternalID: r.optionalText(14), Name: string(r[15]), AvatarURL: r.optionalText(16)}
		c.Title = c.Peer.Name
	}
	return c
}

// messageWidth is how many messageColumns there are.
const messageWidth = 12

// message reads messageColumns, the first of them at i; nil when there is no message.
func (r row) message(i int) *chat.Message {
	r = r[i : i+messageWidth]
	if r.null(0) {
		return nil
	}
	return &chat.Message{
		ID: r.id(0), ConversationID: r.id(1), Seq: r.int(2), Version: r.int(3), SenderID: r.id(4), ClientMsgID: string(r[5]),
		Text: string(r[6]), ReplyToSeq: r.optional(7), CreatedAt: r.time(8), EditedAt: r.optionalTime(9), DeletedAt: r.optionalTime(10),
		Number: r.int(11),
	}
}

func (r row) optionalText(i int) *string {
	if r[i] == nil {
		return nil
	}
	text := string(r[i])
	return &text
}

// unmuted hides a mute that is over.
func unmuted(c *chat.Conversation, now time.Time) {
	if c.MutedUntil != nil && !c.MutedUntil.After(now) {
		c.MutedUntil = nil
	}
}
