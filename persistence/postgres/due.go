package postgres

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"xabar/chat"
	"xabar/persistence/internal/cursor"
)

const dueInsertSQL = `INSERT INTO notification_due (id, user_id, conversation_id, reason, seq, wake_at)`

// Statements that find members whose wait must begin: not delivered, and not decided.
// They write in the order of the key.
const (
	undecided = `m.last_delivered_seq < c.last_seq AND m.notified_seq < c.last_seq`

	behindSQL = dueInsertSQL + `
SELECT gen_random_uuid(), f.user_id, f.conversation_id, 1, f.last_seq, $3 FROM (
  SELECT m.user_id, m.conversation_id, c.last_seq
  FROM unnest($1::uuid[], $2::int8[]) AS k (conv, seq)
  CROSS JOIN LATERAL (SELECT * FROM conversations y WHERE y.id = k.conv LIMIT 1) c
  CROSS JOIN LATERAL (SELECT * FROM members y WHERE y.conversation_id = k.conv
                      AND y.last_delivered_seq < k.seq AND y.notified_seq < k.seq OFFSET 0) m
  ORDER BY m.user_id, m.conversation_id) f
ON CONFLICT DO NOTHING`

	undeliveredSQL = dueInsertSQL + `
SELECT gen_random_uuid(), f.user_id, f.conversation_id, 1, f.last_seq, $2 FROM (
  SELECT m.user_id, m.conversation_id, c.last_seq
  FROM unnest($1::uuid[]) AS k (usr)
  CROSS JOIN LATERAL (SELECT * FROM members y WHERE y.user_id = k.usr AND NOT y.settled OFFSET 0) m
  CROSS JOIN LATERAL (SELECT * FROM conversations y WHERE y.id = m.conversation_id LIMIT 1) c
  WHERE ` + undecided + `
  ORDER BY m.user_id, m.conversation_id) f
ON CONFLICT DO NOTHING`

	// What is undelivered is never settled. A step ends with all rows of a user.
	leftSQL = `
WITH step AS MATERIALIZED (
  SELECT user_id FROM members WHERE NOT settled AND user_id > $1 ORDER BY user_id LIMIT $2
), last AS MATERIALIZED (
  SELECT (SELECT user_id FROM step ORDER BY user_id DESC LIMIT 1), (SELECT count(*) FROM step) AS rows
), begun AS (
  ` + dueInsertSQL + `
  SELECT gen_random_uuid(), f.user_id, f.conversation_id, 1, f.last_seq, $3 FROM (
    SELECT m.user_id, m.conversation_id, c.last_seq
    FROM members m CROSS JOIN LATERAL (SELECT * FROM conversations y WHERE y.id = m.conversation_id LIMIT 1) c
    WHERE NOT m.settled AND m.user_id > $1 AND m.user_id <= (SELECT user_id FROM last)
      AND c.last_message_at >= $4 AND ` + undecided + `
    ORDER BY m.user_id, m.conversation_id) f
  ON CONFLICT DO NOTHING
  RETURNING 1
)
SELECT (SELECT count(*) FROM begun), (SELECT rows FROM last), (SELECT user_id FROM last)`
)

func (s *Store) count(ctx context.Context, sql string, args ...any) (n int, err error) {
	err = again(ctx, func() error {
		tag, err := s.read.Exec(ctx, sql, args...)
		n = int(tag.RowsAffected())
		return err
	})
	return n, err
}

// ScheduleBehind implements chat.NotifyStore.
func (s *Store) ScheduleBehind(ctx context.Context, keys []chat.OutboxKey, at time.Time) (int, error) {
	conversations, seqs := make([]chat.ID, len(keys)), make([]int64, len(keys))
	for i, key := range keys {
		conversations[i], seqs[i] = key.ConversationID, key.Seq
	}
	return s.count(ctx, behindSQL, conversations, seqs, at.UTC())
}

// ScheduleUndelivered implements chat.NotifyStore.
func (s *Store) ScheduleUndelivered(ctx context.Context, users []chat.ID, at time.Time) (int, error) {
	return s.count(ctx, undeliveredSQL, users, at.UTC())
}

// ScheduleLeft implements chat.NotifyStore: it goes through the members that are not
// settled, in the order of their users.
func (s *Store) ScheduleLeft(ctx context.Context, from string, since, at time.Time, limit int) (begun int, next string, err error) {
	after, _, err := cursor.Decode(cursor.Left, from)
	if err != nil {
		return 0, "", err
	}
	var rows int
	var last *chat.ID
	err = s.queryRow(ctx, leftSQL, []any{after.ID, limit, at.UTC(), since.UTC()}, &begun, &rows, &last)
	if err == nil && rows == limit && last != nil {
		next = cursor.Encode(cursor.Left, cursor.Cursor{ID: *last})
	}
	return begun, next, err
}

const dueColumns = `d.id, d.user_id, d.conversation_id, d.reason, d.seq, d.looks, d.held`

func scanDue(rows pgx.Rows) (d chat.ClaimedDue, err error) {
	var at chat.Time
	err = rows.Scan(&d.ID, &d.UserID, &d.ConversationID, &d.Reason, &d.Seq, &d.Looks, &d.Held, scanTime{&at})
	d.At = at.Time
	return d, err
}

// claimDueSQL leases what is due. What another transaction is changing is passed over.
const claimDueSQL = `
WITH old AS MATERIALIZED (
  SELECT DISTINCT user_id FROM (
    SELECT user_id FROM notification_due WHERE wake_at <= $1 ORDER BY wake_at, user_id LIMIT $2) x
), due AS MATERIALIZED (
  SELECT y.user_id, y.conversation_id, y.reason, y.wake_at
  FROM old JOIN notification_due y ON y.user_id >= old.user_id AND y.user_id <= old.user_id AND y.wake_at <= $1
  FOR UPDATE OF y SKIP LOCKED
), leased AS (
  UPDATE notification_due d SET wake_at = $3
  FROM due
  WHERE (d.user_id, d.conversation_id, d.reason) >= (due.user_id, due.conversation_id, due.reason)
    AND (d.user_id, d.conversation_id, d.reason) <= (due.user_id, due.conversation_id, due.reason)
  RETURNING ` + dueColumns + `, due.wake_at AS at
)
SELECT * FROM leased ORDER BY at, user_id, conversation_id`

// claimLock is held by the node that claims: so all that is due of a user goes to one
// of them.
const claimLock = 0x78616261726475 // "xabardu" in ASCII

// ClaimDue implements chat.NotifyStore. While another node claims there is nothing to
// get.
func (s *Store) ClaimDue(ctx context.Context, limit int, lease time.Duration) (claimed []chat.ClaimedDue, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		claimed = []chat.ClaimedDue{}
		var alone bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, int64(claimLock)).Scan(&alone); err != nil || !alone {
			return err
		}
		now := s.now()
		rows, err := tx.Query(ctx, claimDueSQL, now, limit, now.Add(lease))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			d, err := scanDue(rows)
			if err != nil {
				return err
			}
			claimed = append(claimed, d)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// Statements of FinishDue, for arrays that are sorted by member.
const (
	putOffSQL = `
UPDATE notification_due d SET wake_at = i.at, held = i.held, seq = i.seq, looks = d.looks + 1
FROM unnest($1::uuid[], $2::uuid[], $3::int8[], $4::uuid[], $5::timestamptz[], $6::boolean[], $7::int8[])
     AS i (usr, conv, reason, id, at, held, seq)
WHERE (d.user_id, d.conversation_id, d.reason) >= (i.usr, i.conv, i.reason)
  AND (d.user_id, d.conversation_id, d.reason) <= (i.usr, i.conv, i.reason) AND d.id = i.id`

	endSQL = `
DELETE FROM notification_due d
USING unnest($1::uuid[], $2::uuid[], $3::int8[], $4::uuid[]) AS i (usr, conv, reason, id)
WHERE (d.user_id, d.conversation_id, d.reason) >= (i.usr, i.conv, i.reason)
  AND (d.user_id, d.conversation_id, d.reason) <= (i.usr, i.conv, i.reason) AND d.id = i.id
RETURNING d.id`

	decidedSQL = `
UPDATE members m SET notified_seq = greatest(m.notified_seq, i.upto)
FROM unnest($1::uuid[], $2::uuid[], $3::int8[]) AS i (conv, usr, upto)
WHERE (m.conversation_id, m.user_id) >= (i.conv, i.usr) AND (m.conversation_id, m.user_id) <= (i.conv, i.usr)
  AND m.notified_seq < i.upto`

	// A statement of its own, after the removal: so it sees every message whose wait
	// could not begin because this one stood.
	nextSQL = dueInsertSQL + `
SELECT gen_random_uuid(), f.usr, f.conv, 1, f.last_seq, f.at FROM (
  SELECT i.usr, i.conv, c.last_seq, i.at
  FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) AS i (conv, usr, at)
  CROSS JOIN LATERAL (SELECT * FROM members y WHERE y.conversation_id = i.conv AND y.user_id = i.usr LIMIT 1) m
  CROSS JOIN LATERAL (SELECT * FROM conversations y WHERE y.id = i.conv LIMIT 1) c
  WHERE ` + undecided + `
  ORDER BY i.usr, i.conv) f
ON CONFLICT DO NOTHING`
)

// FinishDue implements chat.NotifyStore.
func (s *Store) FinishDue(ctx context.Context, done []chat.DueDone) error {
	if len(done) == 0 {
		return nil
	}
	done = slices.Clone(done)
	slices.SortFunc(done, func(a, b chat.DueDone) int {
		if c := bytes.Compare(a.UserID[:], b.UserID[:]); c != 0 {
			return c
		}
		return bytes.Compare(a.ConversationID[:], b.ConversationID[:])
	})
	var later, over []chat.DueDone
	for _, d := range done {
		if d.Again.IsZero() {
			over = append(over, d)
		} else {
			later = append(later, d)
		}
	}
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if err := putOff(ctx, tx, later); err != nil {
			return err
		}
		return endDue(ctx, tx, over)
	})
}

type waitArrays struct {
	users, conversations, ids []chat.ID
	reasons                   []int64
}

func (w *waitArrays) add(d *chat.DueDone) {
	w.users = append(w.users, d.UserID)
	w.conversations = append(w.conversations, d.ConversationID)
	w.reasons = append(w.reasons, int64(d.Reason))
	w.ids = append(w.ids, d.ID)
}

func putOff(ctx context.Context, tx pgx.Tx, done []chat.DueDone) error {
	if len(done) == 0 {
		return nil
	}
	var w waitArrays
	var ends []time.Time
	var held []bool
	var seqs []int64
	for i := range done {
		w.add(&done[i])
		ends = append(ends, done[i].Again.UTC())
		held = append(held, done[i].Held)
		seqs = append(seqs, done[i].Seq)
	}
	_, err := tx.Exec(ctx, putOffSQL, w.users, w.conversations, w.reasons, w.ids, ends, held, seqs)
	return err
}

func endDue(ctx context.Context, tx pgx.Tx, done []chat.DueDone) error {
	if len(done) == 0 {
		return nil
	}
	ended, err := endWaits(ctx, tx, done)
	if err != nil {
		return err
	}
	// Now in the order in which members are locked.
	done = slices.DeleteFunc(slices.Clone(done), func(d chat.DueDone) bool { return !ended[d.ID] })
	slices.SortFunc(done, func(a, b chat.DueDone) int {
		if c := bytes.Compare(a.ConversationID[:], b.ConversationID[:]); c != 0 {
			return c
		}
		return bytes.Compare(a.UserID[:], b.UserID[:])
	})
	var conversations, users, again, of []chat.ID
	var upTo []int64
	var next []time.Time
	for i, d := range done {
		if i > 0 && d.UserID == done[i-1].UserID && d.ConversationID == done[i-1].ConversationID {
			last := len(upTo) - 1 // both reasons of one member
			upTo[last] = max(upTo[last], d.UpTo)
		} else {
			conversations, users, upTo = append(conversations, d.ConversationID), append(users, d.UserID), append(upTo, d.UpTo)
		}
		if !d.Next.IsZero() {
			again, of, next = append(again, d.ConversationID), append(of, d.UserID), append(next, d.Next.UTC())
		}
	}
	if _, err := tx.Exec(ctx, decidedSQL, conversations, users, upTo); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, nextSQL, again, of, next)
	return err
}

// endWaits removes them and says which were still there.
func endWaits(ctx context.Context, tx pgx.Tx, done []chat.DueDone) (map[chat.ID]bool, error) {
	var w waitArrays
	for i := range done {
		w.add(&done[i])
	}
	rows, err := tx.Query(ctx, endSQL, w.users, w.conversations, w.reasons, w.ids)
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[chat.ID])
	ended := make(map[chat.ID]bool, len(ids))
	for _, id := range ids {
		ended[id] = true
	}
	return ended, err
}

// NextDue implements chat.NotifyStore.
func (s *Store) NextDue(ctx context.Context) (time.Time, bool, error) {
	var at pgtype.Timestamptz
	err := s.queryRow(ctx, `SELECT min(wake_at) FROM notification_due`, nil, &at)
	return at.Time, at.Valid, err
}

// Reminders implements chat.NotifyStore.
func (s *Store) Reminders(ctx context.Context) (map[chat.ID]time.Duration, error) {
	type reminder struct {
		user    chat.ID
		minutes int
	}
	all, err := collect(ctx, s, func(rows pgx.Rows) (r reminder, err error) { return r, rows.Scan(&r.user, &r.minutes) },
		`SELECT user_id, remind_minutes FROM settings WHERE remind_minutes > 0`)
	reminders := make(map[chat.ID]time.Duration, len(all))
	for _, r := range all {
		reminders[r.user] = time.Duration(r.minutes) * time.Minute
	}
	return reminders, err
}
