package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
	"xabar/persistence/internal/cursor"
)

var _ chat.Maintenance = (*Store)(nil)

// pruneScan is how many conversations one call looks at.
const pruneScan = 500

// pruneScanSQL gives the next conversations ($1: after which) and whether the oldest
// message of each is due. created_at never falls while seq rises, so what is due is
// the beginning of a conversation.
const pruneScanSQL = `
SELECT c.id, coalesce((SELECT m.created_at < $2 FROM messages m WHERE m.conversation_id = c.id ORDER BY m.seq LIMIT 1), false)
FROM conversations c WHERE c.id > $1 ORDER BY c.id LIMIT $3`

// pruneSQL deletes up to $3 due messages of a conversation, and the log of advances
// that reach none of the messages kept.
const pruneSQL = `
WITH gone AS (
  DELETE FROM messages m
  WHERE m.conversation_id = $1 AND m.created_at < $2
    AND m.seq <= (SELECT max(y.seq) FROM (SELECT x.seq FROM messages x WHERE x.conversation_id = $1 ORDER BY x.seq LIMIT $3) y)
  RETURNING m.seq
), log AS (
  DELETE FROM receipts r WHERE r.conversation_id = $1 AND r.up_to_seq <= (SELECT max(seq) FROM gone)
), box AS (
  DELETE FROM outbox o WHERE o.conversation_id = $1 AND o.seq <= (SELECT max(seq) FROM gone)
)
SELECT count(*) FROM gone`

// Prune implements chat.Maintenance.
func (s *Store) Prune(ctx context.Context, before time.Time, from string, limit int) (deleted int, next string, err error) {
	after, _, err := cursor.Decode(cursor.Sync, from)
	if err != nil {
		return 0, "", err
	}
	type conversation struct {
		id  chat.ID
		due bool
	}
	seen, err := collect(ctx, s, func(rows pgx.Rows) (c conversation, err error) {
		return c, rows.Scan(&c.id, &c.due)
	}, pruneScanSQL, after.ID, before.UTC(), pruneScan)
	if err != nil {
		return 0, "", err
	}
	for _, c := range seen {
		if c.due {
			room := limit - deleted
			n, err := s.pruneConversation(ctx, c.id, before, room)
			deleted += n
			if err != nil || n == room { // perhaps not finished: come back
				return deleted, cursor.Encode(cursor.Sync, after), err
			}
		}
		after.ID = c.id
	}
	if len(seen) < pruneScan {
		return deleted, "", nil
	}
	return deleted, cursor.Encode(cursor.Sync, after), nil
}

func (s *Store) pruneConversation(ctx context.Context, id chat.ID, before time.Time, limit int) (n int, err error) {
	err = again(ctx, func() error { return s.read.QueryRow(ctx, pruneSQL, id, before.UTC(), limit).Scan(&n) })
	return n, err
}
