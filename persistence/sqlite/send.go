package sqlite

import (
	"context"
	"database/sql"

	"xabar/chat"
)

// Send queues the message for the next batch.
func (s *Store) Send(ctx context.Context, cmd chat.SendMessage, done func(chat.SendResult, error)) {
	s.batcher.Enqueue(ctx, 0, request{send: &cmd}, func(res result, err error) { done(res.send, err) })
}

const repeatQuery = `SELECT ` + messageColumns + ` FROM messages msg WHERE msg.sender_id = ? AND msg.client_msg_id = ?`

// numberQuery takes the next seq, if the sender (?2) is a member and nobody of a
// direct conversation has blocked the other. The system (?4) need be no member of
// a group, and is not blocked. The time (?3) never falls within a conversation.
const numberQuery = `
UPDATE conversations SET
	last_seq = last_seq + 1, version = version + 1,
	last_message_at = max(coalesce(last_message_at, 0), ?3)
WHERE id = ?1
	AND (?4 AND kind = 'group' OR EXISTS (SELECT 1 FROM members m WHERE m.conversation_id = ?1 AND m.user_id = ?2))
	AND NOT (NOT ?4 AND kind = 'direct' AND EXISTS (SELECT 1 FROM blocks b
		WHERE (b.user_id = user_low AND b.blocked_id = user_high) OR (b.user_id = user_high AND b.blocked_id = user_low)))
RETURNING last_seq, version, last_message_at, kind, member_count, user_low, user_high,
	(SELECT m.last_delivered_seq FROM members m WHERE m.conversation_id = ?1 AND m.user_id = ?2),
	(SELECT m.last_read_seq FROM members m WHERE m.conversation_id = ?1 AND m.user_id = ?2)`

func (t *tx) send(cmd *chat.SendMessage) (chat.SendResult, error) {
	repeat, found, err := t.repeat(cmd)
	if err != nil || found {
		return repeat, err
	}
	if err := t.checkReply(cmd); err != nil {
		return chat.SendResult{}, err
	}
	res := chat.SendResult{Message: chat.Message{
		ID: chat.NewID(), ConversationID: cmd.ConversationID, SenderID: cmd.SenderID,
		ClientMsgID: cmd.ClientMsgID, Text: cmd.Text, ReplyToSeq: cmd.ReplyToSeq,
	}}
	member, err := t.number(cmd, &res)
	if err != nil {
		return chat.SendResult{}, err
	}
	if err := t.insert(&res.Message); err != nil || !member {
		return res, err
	}
	return res, t.moveSender(cmd.SenderID, &res)
}

// repeat answers with the message as first stored, whoever is a member today.
func (t *tx) repeat(cmd *chat.SendMessage) (res chat.SendResult, found bool, err error) {
	var m messageRow
	found, err = t.one(repeatQuery, []any{cmd.SenderID[:], cmd.ClientMsgID}, m.dest()...)
	if err != nil || !found {
		return res, false, err
	}
	if m.conversation.UUID != cmd.ConversationID {
		return res, true, chat.Errorf(chat.CodeConflict, "")
	}
	return chat.SendResult{Message: m.message(), Duplicate: true}, true, nil
}

func (t *tx) checkReply(cmd *chat.SendMessage) error {
	if cmd.ReplyToSeq == nil {
		return nil
	}
	var seq int64
	found, err := t.one(`SELECT msg.seq FROM messages msg
		LEFT JOIN members m ON m.conversation_id = msg.conversation_id AND m.user_id = ?2
		WHERE msg.conversation_id = ?1 AND msg.seq = ?3 AND (msg.seq > m.joined_seq OR m.user_id IS NULL AND ?4)`,
		[]any{cmd.ConversationID[:], cmd.SenderID[:], *cmd.ReplyToSeq, cmd.System}, &seq)
	if err != nil || found {
		return err
	}
	if !cmd.System {
		if err := t.checkMember(cmd.ConversationID, cmd.SenderID); err != nil {
			return err
		}
	}
	return chat.InvalidArgument("replyToSeq", "replyToSeq is no message of this conversation")
}

func (t *tx) checkMember(conversation, user chat.ID) error {
	var is int
	found, err := t.one("SELECT 1 FROM members WHERE conversation_id = ? AND user_id = ?", []any{conversation[:], user[:]}, &is)
	if err == nil && !found {
		return chat.Errorf(chat.CodeNotFound, "")
	}
	return err
}

// number takes the seq and says whether the sender has positions to move.
func (t *tx) number(cmd *chat.SendMessage, res *chat.SendResult) (member bool, err error) {
	var at int64
	var pair pairRow
	var delivered, read sql.NullInt64
	m := &res.Message
	found, err := t.one(numberQuery, []any{cmd.ConversationID[:], cmd.SenderID[:], t.millis(), cmd.System},
		&m.Seq, &m.Version, &at, &res.Kind, &res.MemberCount, &pair.low, &pair.high, &delivered, &read)
	if err != nil {
		return false, err
	}
	if !found {
		if err := t.checkMember(cmd.ConversationID, cmd.SenderID); err != nil {
			return false, err
		}
		return false, chat.Errorf(chat.CodeForbidden, "")
	}
	m.CreatedAt, res.MemberIDs = chat.FromMillis(at), pair.ids()
	res.Sender.OldDelivered, res.Sender.OldRead = delivered.Int64, read.Int64
	return delivered.Valid, nil
}

// nextNumberQuery takes the next one of the numbers that name messages on the whole
// server.
const nextNumberQuery = `UPDATE message_numbers SET last = last + 1 RETURNING last`

// insert stores the message and its outbox event.
func (t *tx) insert(m *chat.Message) error {
	var reply any
	if m.ReplyToSeq != nil {
		reply = *m.ReplyToSeq
	}
	if _, err := t.one(nextNumberQuery, nil, &m.Number); err != nil {
		return err
	}
	err := t.run(`INSERT INTO messages (id, conversation_id, seq, version, sender_id, client_msg_id, text, reply_to_seq, created_at, number)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		m.ID[:], m.ConversationID[:], m.Seq, m.Version, m.SenderID[:], m.ClientMsgID, m.Text, reply, m.CreatedAt.UnixMilli(), m.Number)
	if failsCheck(err) {
		return chat.Wrap(chat.CodeInvalidText, err)
	}
	if err != nil {
		return err
	}
	return t.run("INSERT INTO outbox (created_at, conversation_id, seq, leased_until) VALUES (?, ?, ?, ?)",
		m.CreatedAt.UnixMilli(), m.ConversationID[:], m.Seq, t.lease())
}

// moveSender moves the sender's positions over its own message, if nothing before
// it is missing.
func (t *tx) moveSender(sender chat.ID, res *chat.SendResult) error {
	seq, own := res.Message.Seq, &res.Sender
	own.NewDelivered, own.NewRead, own.LastSeq = own.OldDelivered, own.OldRead, seq
	own.Kind, own.MemberIDs, own.MemberCount = res.Kind, res.MemberIDs, res.MemberCount
	if own.OldDelivered < seq-1 {
		return nil
	}
	own.NewDelivered, own.NewRead, own.At = seq, seq, t.now
	key := memberKey{res.Message.ConversationID, sender}
	if own.OldRead == seq-1 {
		// Over its own message alone: receipts has the message's time for that.
		return t.storeMove(key, own)
	}
	if err := t.storeMove(key, own); err != nil {
		return err
	}
	return t.logMove(key, own)
}
