package sqlite

import (
	"context"
	"database/sql"
	"time"

	"xabar/chat"
	"xabar/persistence/internal/cursor"
)

// schedule begins a wait, unless one stands.
func (t *tx) schedule(due chat.Due) (int64, error) {
	id := chat.NewID()
	return t.exec(`INSERT INTO notification_due (id, user_id, conversation_id, reason, seq, wake_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT DO NOTHING`, id[:], due.UserID[:], due.ConversationID[:], int(due.Reason), due.Seq, millis(due.At))
}

// Members whose wait must begin: not delivered, and not decided.
const (
	undecided = `m.last_delivered_seq < c.last_seq AND m.notified_seq < c.last_seq`

	behindQuery = `SELECT m.user_id, m.conversation_id, c.last_seq FROM members m JOIN conversations c ON c.id = m.conversation_id
WHERE m.conversation_id = ?1 AND m.last_delivered_seq < ?2 AND m.notified_seq < ?2`
	undeliveredQuery = `SELECT m.user_id, m.conversation_id, c.last_seq FROM members m JOIN conversations c ON c.id = m.conversation_id
WHERE m.user_id = ? AND ` + undecided
	leftQuery = `SELECT m.user_id, m.conversation_id, c.last_seq
FROM (SELECT * FROM members WHERE (conversation_id, user_id) > (?1, ?2) ORDER BY conversation_id, user_id LIMIT ?3) m
JOIN conversations c ON c.id = m.conversation_id
WHERE c.last_message_at >= ?4 AND ` + undecided
	stepQuery = `SELECT conversation_id, user_id FROM members WHERE (conversation_id, user_id) > (?1, ?2)
ORDER BY conversation_id, user_id LIMIT 1 OFFSET ?3`
)

func scanBehind(row scanner) (due chat.Due, err error) {
	err = row.Scan(&due.UserID, &due.ConversationID, &due.Seq)
	due.Reason = chat.NotDelivered
	return due, err
}

// scheduleFound begins the waits of those whom the query finds.
func (t *tx) scheduleFound(at time.Time, query string, args ...any) (int, error) {
	found, err := all(background, t, scanBehind, query, args...)
	if err != nil {
		return 0, err
	}
	begun := 0
	for _, due := range found {
		due.At = at
		n, err := t.schedule(due)
		if err != nil {
			return 0, err
		}
		begun += int(n)
	}
	return begun, nil
}

// ScheduleBehind schedules the members who lack a message.
func (s *Store) ScheduleBehind(ctx context.Context, keys []chat.OutboxKey, at time.Time) (int, error) {
	return write(ctx, s, func(t *tx) (int, error) {
		begun := 0
		for _, key := range keys {
			n, err := t.scheduleFound(at, behindQuery, key.ConversationID[:], key.Seq)
			if err != nil {
				return 0, err
			}
			begun += n
		}
		return begun, nil
	})
}

// ScheduleUndelivered schedules users where they lack messages.
func (s *Store) ScheduleUndelivered(ctx context.Context, users []chat.ID, at time.Time) (int, error) {
	return write(ctx, s, func(t *tx) (int, error) {
		begun := 0
		for _, user := range users {
			n, err := t.scheduleFound(at, undeliveredQuery, user[:])
			if err != nil {
				return 0, err
			}
			begun += n
		}
		return begun, nil
	})
}

// ScheduleLeft schedules everybody, in steps: it goes through the members in the order
// of their table.
func (s *Store) ScheduleLeft(ctx context.Context, from string, since, at time.Time, limit int) (int, string, error) {
	after, _, err := cursor.Decode(cursor.Left, from)
	if err != nil {
		return 0, "", err
	}
	place := []any{after.ID[:], []byte(after.Name)} // of the last member that was looked at
	type step struct {
		begun int
		next  string
	}
	done, err := write(ctx, s, func(t *tx) (step, error) {
		var st step
		var err error
		if st.begun, err = t.scheduleFound(at, leftQuery, place[0], place[1], limit, millis(since)); err != nil {
			return st, err
		}
		var last cursor.Cursor
		var user chat.ID
		more, err := t.one(stepQuery, []any{place[0], place[1], limit - 1}, &last.ID, &user)
		if more {
			last.Name = string(user[:])
			st.next = cursor.Encode(cursor.Left, last)
		}
		return st, err
	})
	return done.begun, done.next, err
}

const dueColumns = "d.id, d.user_id, d.conversation_id, d.reason, d.seq, d.wake_at, d.looks, d.held"

func scanDue(row scanner) (d chat.ClaimedDue, err error) {
	var at int64
	err = row.Scan(&d.ID, &d.UserID, &d.ConversationID, &d.Reason, &d.Seq, &at, &d.Looks, &d.Held)
	d.At = chat.FromMillis(at).Time
	return d, err
}

// ClaimDue leases the oldest waits that have ended.
func (s *Store) ClaimDue(ctx context.Context, limit int, lease time.Duration) ([]chat.ClaimedDue, error) {
	return write(ctx, s, func(t *tx) ([]chat.ClaimedDue, error) {
		users := "SELECT user_id FROM notification_due WHERE wake_at <= ?1 ORDER BY wake_at, user_id LIMIT ?2"
		claimed, err := all(background, t, scanDue, "SELECT "+dueColumns+" FROM notification_due d WHERE d.user_id IN ("+users+`)
			AND d.wake_at <= ?1 ORDER BY d.wake_at, d.user_id, d.conversation_id`, t.millis(), max(limit, 0))
		if err != nil {
			return nil, err
		}
		for _, d := range claimed {
			err := t.run("UPDATE notification_due SET wake_at = ? WHERE user_id = ? AND conversation_id = ? AND reason = ?",
				t.now.Add(lease).UnixMilli(), d.UserID[:], d.ConversationID[:], int(d.Reason))
			if err != nil {
				return nil, err
			}
		}
		return claimed, nil
	})
}

// FinishDue ends or puts off waits.
func (s *Store) FinishDue(ctx context.Context, done []chat.DueDone) error {
	return s.change(ctx, func(t *tx) error {
		for i := range done {
			if err := t.finish(&done[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *tx) finish(d *chat.DueDone) error {
	key := []any{d.UserID[:], d.ConversationID[:], int(d.Reason), d.ID[:]}
	const ofWait = " WHERE user_id = ? AND conversation_id = ? AND reason = ? AND id = ?"
	if !d.Again.IsZero() {
		return t.run("UPDATE notification_due SET wake_at = ?, held = ?, seq = ?, looks = looks + 1"+ofWait,
			append([]any{millis(d.Again), d.Held, d.Seq}, key...)...)
	}
	n, err := t.exec("DELETE FROM notification_due"+ofWait, key...)
	if err != nil || n == 0 {
		return err
	}
	err = t.run("UPDATE members SET notified_seq = max(notified_seq, ?) WHERE conversation_id = ? AND user_id = ?",
		d.UpTo, d.ConversationID[:], d.UserID[:])
	if err != nil {
		return err
	}
	// A later message found this wait standing.
	next := chat.Due{UserID: d.UserID, ConversationID: d.ConversationID, Reason: chat.NotDelivered, At: d.Next}
	lacks, err := t.one(`SELECT c.last_seq FROM members m JOIN conversations c ON c.id = m.conversation_id
		WHERE m.conversation_id = ? AND m.user_id = ? AND `+undecided, []any{d.ConversationID[:], d.UserID[:]}, &next.Seq)
	if err != nil || !lacks || d.Next.IsZero() {
		return err
	}
	_, err = t.schedule(next)
	return err
}

// NextDue is when the next wait or lease ends.
func (s *Store) NextDue(ctx context.Context) (time.Time, bool, error) {
	var at sql.NullInt64
	_, err := one(ctx, s.reader, "SELECT min(wake_at) FROM notification_due", nil, &at)
	return chat.FromMillis(at.Int64).Time, at.Valid, translate(ctx, err)
}

// Reminders are the users who want to be reminded.
func (s *Store) Reminders(ctx context.Context) (map[chat.ID]time.Duration, error) {
	reminders := map[chat.ID]time.Duration{}
	err := each(ctx, s.reader, func(row scanner) error {
		var user chat.ID
		var minutes int64
		err := row.Scan(&user, &minutes)
		reminders[user] = time.Duration(minutes) * time.Minute
		return err
	}, "SELECT user_id, remind_minutes FROM settings WHERE remind_minutes > 0")
	return reminders, translate(ctx, err)
}
