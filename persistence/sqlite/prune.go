package sqlite

import (
	"context"
	"time"

	"xabar/chat"
	"xabar/persistence/internal/cursor"
)

var _ chat.Maintenance = (*Store)(nil)

// pruneScan is how many conversations one call looks at.
const pruneScan = 500

// createdAt never falls while seq rises: what is due is the beginning of a
// conversation, and its first message tells whether anything is.
const (
	pruneScanQuery = `
SELECT c.id, coalesce((SELECT m.created_at FROM messages m WHERE m.conversation_id = c.id ORDER BY m.seq LIMIT 1) < ?2, 0)
FROM conversations c WHERE c.id > ?1 ORDER BY c.id LIMIT ?3`

	pruneQuery = `
DELETE FROM messages WHERE conversation_id = ?1 AND created_at < ?2
	AND seq <= (SELECT max(f.seq) FROM (SELECT m.seq FROM messages m WHERE m.conversation_id = ?1 ORDER BY m.seq LIMIT ?3) f)
RETURNING seq`
)

// Prune deletes what is older, each conversation's in a change of its own.
func (s *Store) Prune(ctx context.Context, before time.Time, from string, limit int) (deleted int, next string, err error) {
	after, _, err := cursor.Decode(cursor.Sync, from)
	if err != nil {
		return 0, "", err
	}
	type candidate struct {
		id  chat.ID
		due bool
	}
	seen, err := all(ctx, s.reader, func(row scanner) (c candidate, err error) {
		err = row.Scan(&c.id, &c.due)
		return c, err
	}, pruneScanQuery, after.ID[:], millis(before), pruneScan)
	if err != nil {
		return 0, "", translate(ctx, err)
	}
	for _, c := range seen {
		if c.due {
			room := limit - deleted
			n, err := s.pruneConversation(ctx, c.id, before, room)
			deleted += n
			if err != nil || n >= room { // it may have more: come back to it
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

// pruneConversation also forgets the advances that reach none of the messages
// kept; the outbox's events go with their messages.
func (s *Store) pruneConversation(ctx context.Context, id chat.ID, before time.Time, limit int) (int, error) {
	return write(ctx, s, func(t *tx) (int, error) {
		var upTo int64
		n := 0
		err := each(background, t, func(row scanner) error {
			n++
			var seq int64
			err := row.Scan(&seq)
			upTo = max(upTo, seq)
			return err
		}, pruneQuery, id[:], millis(before), max(limit, 0))
		if err != nil {
			return 0, err
		}
		return n, t.run("DELETE FROM receipts WHERE conversation_id = ? AND up_to_seq <= ?", id[:], upTo)
	})
}
