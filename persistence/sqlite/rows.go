package sqlite

import (
	"database/sql"

	"github.com/google/uuid"

	"xabar/chat"
)

// messageColumns are a message's, of the table under the name msg; messageRow
// scans them. All may be NULL, for outer joins.
const messageColumns = `msg.id, msg.conversation_id, msg.seq, msg.version, msg.sender_id, msg.client_msg_id, msg.text,
	msg.reply_to_seq, msg.created_at, msg.edited_at, msg.deleted_at, msg.number`

type messageRow struct {
	id, conversation, sender        uuid.NullUUID
	seq, version, createdAt         sql.NullInt64
	clientMsgID, text               sql.NullString
	replyToSeq, editedAt, deletedAt sql.NullInt64
	number                          sql.NullInt64
}

func (m *messageRow) dest() []any {
	return []any{&m.id, &m.conversation, &m.seq, &m.version, &m.sender, &m.clientMsgID, &m.text,
		&m.replyToSeq, &m.createdAt, &m.editedAt, &m.deletedAt, &m.number}
}

func (m *messageRow) present() bool { return m.seq.Valid }

func (m *messageRow) message() chat.Message {
	return chat.Message{
		ID: m.id.UUID, ConversationID: m.conversation.UUID, Seq: m.seq.Int64, Version: m.version.Int64,
		SenderID: m.sender.UUID, ClientMsgID: m.clientMsgID.String, Text: m.text.String,
		ReplyToSeq: optional(m.replyToSeq), CreatedAt: chat.FromMillis(m.createdAt.Int64),
		EditedAt: optionalTime(m.editedAt), DeletedAt: optionalTime(m.deletedAt), Number: m.number.Int64,
	}
}

func scanMessage(row scanner) (chat.Message, error) {
	var m messageRow
	err := row.Scan(m.dest()...)
	return m.message(), err
}

// userColumns are a user's, of the table under the name u.
const userColumns = `u.id, u.external_id, u.name, u.avatar_url`

type userRow struct {
	id                     uuid.NullUUID
	external, name, avatar sql.NullString
}

func (u *userRow) dest() []any { return []any{&u.id, &u.external, &u.name, &u.avatar} }

func (u *userRow) present() bool { return u.id.Valid }

func (u *userRow) user() chat.User {
	return chat.User{ID: u.id.UUID, ExternalID: optionalText(u.external), Name: u.name.String, AvatarURL: optionalText(u.avatar)}
}

func scanUser(row scanner) (chat.User, error) {
	var u userRow
	err := row.Scan(u.dest()...)
	return u.user(), err
}

// pairRow is the pair of a direct conversation.
type pairRow struct{ low, high uuid.NullUUID }

// ids are both members; nil for a group.
func (p pairRow) ids() []chat.ID {
	if !p.low.Valid {
		return nil
	}
	return []chat.ID{p.low.UUID, p.high.UUID}
}

func optional(n sql.NullInt64) *int64 {
	if !n.Valid {
		return nil
	}
	return &n.Int64
}

func optionalText(s sql.NullString) *string {
	if !s.Valid {
		return nil
	}
	return &s.String
}

func optionalTime(n sql.NullInt64) *chat.Time {
	if !n.Valid {
		return nil
	}
	t := chat.FromMillis(n.Int64)
	return &t
}

func scanID(row scanner) (id chat.ID, err error) {
	err = row.Scan(&id)
	return id, err
}
