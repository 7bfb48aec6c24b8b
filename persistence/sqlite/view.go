package sqlite

import (
	"database/sql"
	"strconv"

	"xabar/chat"
)

// A conversation as a member sees it: viewColumns of viewFrom, scanned by
// viewRow. The member's row is m, its conversation c, a direct one's other user u,
// the last message that the member can see msg. Each comes by its key.
var (
	viewColumns = `c.id, c.kind, c.title, c.member_count, c.last_seq, c.version, coalesce(c.last_message_at, c.created_at),
	m.joined_seq, m.last_read_seq, m.last_delivered_seq, m.muted_until,
	(SELECT x.seq FROM messages x WHERE x.conversation_id = c.id AND x.seq > m.joined_seq ORDER BY x.seq LIMIT 1),
	` + lowestOfOthers("last_delivered_seq") + `,
	` + lowestOfOthers("last_read_seq") + `,
	` + userColumns + `,
	` + messageColumns

	viewFrom = `members m JOIN conversations c ON c.id = m.conversation_id` + viewJoins

	viewJoins = `
LEFT JOIN users u ON u.id = CASE m.user_id WHEN c.user_low THEN c.user_high WHEN c.user_high THEN c.user_low END
LEFT JOIN messages msg ON msg.conversation_id = c.id AND msg.seq =
	(SELECT x.seq FROM messages x WHERE x.conversation_id = c.id AND x.seq > m.joined_seq ORDER BY x.seq DESC LIMIT 1)`
)

func lowestOfOthers(position string) string {
	return `CASE WHEN c.member_count <= ` + strconv.Itoa(chat.ReceiptMembers) + ` THEN
		(SELECT min(o.` + position + `) FROM members o WHERE o.conversation_id = c.id AND o.user_id <> m.user_id) END`
}

type viewRow struct {
	c                             chat.Conversation
	title                         sql.NullString
	joined, updatedAt             int64
	muted, first, delivered, read sql.NullInt64
	peer                          userRow
	last                          messageRow
}

func (v *viewRow) dest() []any {
	dest := []any{&v.c.ID, &v.c.Kind, &v.title, &v.c.MemberCount, &v.c.LastSeq, &v.c.Version, &v.updatedAt,
		&v.joined, &v.c.LastReadSeq, &v.c.LastDeliveredSeq, &v.muted, &v.first, &v.delivered, &v.read}
	return append(append(dest, v.peer.dest()...), v.last.dest()...)
}

func (v *viewRow) conversation() chat.Conversation {
	c := v.c
	c.Title = v.title.String
	if v.peer.present() {
		peer := v.peer.user()
		c.Peer, c.Title = &peer, peer.Name
	}
	if v.last.present() {
		last := v.last.message()
		c.LastMessage = &last
	}
	c.FirstSeq = 1
	if v.first.Valid {
		c.FirstSeq = v.first.Int64
	}
	c.Unread = c.LastSeq - c.LastReadSeq
	c.OthersDeliveredSeq, c.OthersReadSeq = optional(v.delivered), optional(v.read)
	c.MutedUntil, c.UpdatedAt = optionalTime(v.muted), chat.FromMillis(v.updatedAt)
	return c
}
