package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"xabar/chat"
)

// messageColumns are a message's, from x, in the order of messageFields.
const messageColumns = `x.id, x.conversation_id, x.seq, coalesce(x.version, x.seq), x.sender_id,
  coalesce(x.client_msg_id, ''), x.text, x.reply_to_seq, x.created_at, x.edited_at, x.deleted_at, x.number`

// messageFields are where a row's messageColumns go.
func messageFields(m *chat.Message) []any {
	return []any{
		&m.ID, &m.ConversationID, &m.Seq, &m.Version, &m.SenderID,
		&m.ClientMsgID, &m.Text, &m.ReplyToSeq, scanTime{&m.CreatedAt}, scanOptional{&m.EditedAt}, scanOptional{&m.DeletedAt}, &m.Number,
	}
}

// maybeMessage takes messageColumns of an outer join.
type maybeMessage struct {
	id, conversation, sender *chat.ID
	seq, version, reply      *int64
	number                   *int64
	client, text             *string
	created, edited, deleted *chat.Time
}

func (m *maybeMessage) fields() []any {
	return []any{
		&m.id, &m.conversation, &m.seq, &m.version, &m.sender,
		&m.client, &m.text, &m.reply, scanOptional{&m.created}, scanOptional{&m.edited}, scanOptional{&m.deleted}, &m.number,
	}
}

// message is nil when the join found none.
func (m *maybeMessage) message() *chat.Message {
	if m.id == nil {
		return nil
	}
	return &chat.Message{
		ID: *m.id, ConversationID: *m.conversation, Seq: *m.seq, Version: *m.version, SenderID: *m.sender,
		ClientMsgID: *m.client, Text: *m.text, ReplyToSeq: m.reply, CreatedAt: *m.created, EditedAt: m.edited, DeletedAt: m.deleted,
		Number: *m.number,
	}
}

// scanTime reads a timestamptz that is not NULL.
type scanTime struct{ to *chat.Time }

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (s scanTime) ScanTimestamptz(v pgtype.Timestamptz) error {
	*s.to = chat.At(v.Time)
	return nil
}

// scanOptional reads a timestamptz; NULL is nil.
type scanOptional struct{ to **chat.Time }

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (s scanOptional) ScanTimestamptz(v pgtype.Timestamptz) error {
	*s.to = nil
	if v.Valid {
		t := chat.At(v.Time)
		*s.to = &t
	}
	return nil
}

func millis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// collect runs a query that only reads, or that may be repeated, and reads its
// rows.
func collect[T any](ctx context.Context, s *Store, scan func(pgx.Rows) (T, error), sql string, args ...any) ([]T, error) {
	var all []T
	err := again(ctx, func() error {
		all = []T{}
		rows, err := s.read.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			v, err := scan(rows)
			if err != nil {
				return err
			}
			all = append(all, v)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// queryRow runs a query of one row that may be repeated. Errors: not_found when
// there is none.
func (s *Store) queryRow(ctx context.Context, sql string, args []any, into ...any) error {
	err := again(ctx, func() error { return notFoundRow(s.read.QueryRow(ctx, sql, args...).Scan(into...)) })
	return interpret(err)
}

// notFoundRow marks an empty answer before again takes it for a fault.
func notFoundRow(err error) error {
	if err == pgx.ErrNoRows { //nolint:errorlint // pgx returns it bare
		return chat.Errorf(chat.CodeNotFound, "")
	}
	return err
}

// trim cuts a page that was asked for with one row more than it holds.
func trim[T any](rows []T, size int) (page []T, more bool) {
	if len(rows) > size {
		return rows[:size], true
	}
	return rows, false
}
