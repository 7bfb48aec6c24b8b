package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"xabar/bench/soak/check"
	"xabar/chat"
)

// strays are queries that count rows that must not be there.
var strays = map[string]string{
	"messages of no conversation":                  `SELECT count(*) FROM messages m WHERE NOT EXISTS (SELECT FROM conversations c WHERE c.id = m.conversation_id)`,
	"messages of no user":                          `SELECT count(*) FROM messages m WHERE NOT EXISTS (SELECT FROM users u WHERE u.id = m.sender_id)`,
	"messages of senders who are no members":       `SELECT count(*) FROM messages m WHERE NOT EXISTS (SELECT FROM members x WHERE x.conversation_id = m.conversation_id AND x.user_id = m.sender_id)`,
	"replies to what is not there":                 `SELECT count(*) FROM messages m WHERE reply_to_seq IS NOT NULL AND NOT EXISTS (SELECT FROM messages r WHERE r.conversation_id = m.conversation_id AND r.seq = m.reply_to_seq)`,
	"conversations without members":                `SELECT count(*) FROM conversations c WHERE NOT EXISTS (SELECT FROM members m WHERE m.conversation_id = c.id)`,
	"receipts of no member":                        `SELECT count(*) FROM receipts r WHERE NOT EXISTS (SELECT FROM members m WHERE m.conversation_id = r.conversation_id AND m.user_id = r.user_id)`,
	"receipts beyond the member's position":        `SELECT count(*) FROM receipts r JOIN members m USING (conversation_id, user_id) WHERE r.up_to_seq > CASE r.kind WHEN 1 THEN m.last_delivered_seq ELSE m.last_read_seq END`,
	"outbox rows of no message":                    `SELECT count(*) FROM outbox o WHERE NOT EXISTS (SELECT FROM messages m WHERE m.conversation_id = o.conversation_id AND m.seq = o.seq)`,
	"waits for notifications of no member":         `SELECT count(*) FROM notification_due d WHERE NOT EXISTS (SELECT FROM members m WHERE m.conversation_id = d.conversation_id AND m.user_id = d.user_id)`,
	"waits for notifications beyond lastSeq":       `SELECT count(*) FROM notification_due d JOIN conversations c ON c.id = d.conversation_id WHERE d.seq > c.last_seq`,
	"settled members whose unread is not settled":  `SELECT count(*) FROM members m JOIN conversations c ON c.id = m.conversation_id WHERE m.settled AND m.muted_until IS NULL AND (m.settled_unread <> c.last_seq - m.last_read_seq OR m.last_delivered_seq <> c.last_seq)`,
	"users whose settled unread is not their sum":  `SELECT count(*) FROM users u WHERE u.settled_unread <> (SELECT coalesce(sum(m.settled_unread), 0) FROM members m WHERE m.user_id = u.id)`,
	"conversations with a last time of no message": `SELECT count(*) FROM conversations c WHERE EXISTS (SELECT FROM messages m WHERE m.conversation_id = c.id AND m.created_at > c.last_message_at)`,
}

// snapshot reads the database in one transaction; all: what waits and strays too.
func (s *soak) snapshot(ctx context.Context, all bool) (*check.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.cluster.database)
	if err != nil {
		return nil, err
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	db := &check.Snapshot{Conversations: map[chat.ID]*check.Conversation{}, Strays: map[string]int{}}
	reads := []func(context.Context, pgx.Tx, *check.Snapshot) error{readConversations, readMembers, readMessages}
	if all {
		reads = append(reads, readWaiting)
	}
	for _, read := range reads {
		if err = read(ctx, tx, db); err != nil {
			break
		}
	}
	return db, errors.Join(err, tx.Rollback(ctx), conn.Close(ctx))
}

// each calls f for every row; f scans it.
func each(ctx context.Context, tx pgx.Tx, query string, f func(pgx.Rows) error) error {
	rows, err := tx.Query(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func readConversations(ctx context.Context, tx pgx.Tx, db *check.Snapshot) error {
	return each(ctx, tx, `SELECT id, kind, last_seq, version, member_count, user_low, user_high FROM conversations`, func(rows pgx.Rows) error {
		c := &check.Conversation{Members: map[chat.ID]check.Member{}}
		var low, high *chat.ID
		err := rows.Scan(&c.ID, &c.Kind, &c.LastSeq, &c.Version, &c.MemberCount, &low, &high)
		if low != nil && high != nil {
			c.UserLow, c.UserHigh = *low, *high
		}
		db.Conversations[c.ID] = c
		return err
	})
}

func readMembers(ctx context.Context, tx pgx.Tx, db *check.Snapshot) error {
	return each(ctx, tx, `SELECT conversation_id, user_id, joined_seq, last_delivered_seq, last_read_seq FROM members`, func(rows pgx.Rows) error {
		var conversation, user chat.ID
		var m check.Member
		err := rows.Scan(&conversation, &user, &m.Joined, &m.Delivered, &m.Read)
		if c := db.Conversations[conversation]; err == nil && c != nil {
			c.Members[user] = m
		}
		return err
	})
}

func readMessages(ctx context.Context, tx pgx.Tx, db *check.Snapshot) error {
	return each(ctx, tx, `SELECT id, conversation_id, seq, coalesce(version, seq), sender_id, coalesce(client_msg_id, ''), text, reply_to_seq, created_at, number
FROM messages ORDER BY conversation_id, seq`, func(rows pgx.Rows) error {
		var m chat.Message
		var at time.Time
		err := rows.Scan(&m.ID, &m.ConversationID, &m.Seq, &m.Version, &m.SenderID, &m.ClientMsgID, &m.Text, &m.ReplyToSeq, &at, &m.Number)
		m.CreatedAt = chat.At(at)
		if c := db.Conversations[m.ConversationID]; err == nil && c != nil {
			c.Messages = append(c.Messages, check.Message{Seq: m.Seq, Number: m.Number, Sender: m.SenderID, ClientMsgID: m.ClientMsgID,
				CreatedAt: at, Print: check.PrintOf(&m)})
		}
		return err
	})
}

func readWaiting(ctx context.Context, tx pgx.Tx, db *check.Snapshot) error {
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM outbox`).Scan(&db.Outbox); err != nil {
		return err
	}
	for what, query := range strays {
		var n int
		if err := tx.QueryRow(ctx, query).Scan(&n); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		db.Strays[what] = n
	}
	return each(ctx, tx, `SELECT user_id, conversation_id, seq, wake_at FROM notification_due`, func(rows pgx.Rows) error {
		var d check.Due
		err := rows.Scan(&d.User, &d.Conversation, &d.Seq, &d.WakeAt)
		db.Due = append(db.Due, d)
		return err
	})
}
