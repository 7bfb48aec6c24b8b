package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"xabar/chat"
	"xabar/internal/testkit/pgtest"
	"xabar/persistence/storetest"
)

// TestContract is the Store's whole contract.
func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Exercise(t, func(t *testing.T) *storetest.Harness {
		url := pgtest.Database(t)
		clock := storetest.NewClock()
		db, err := pgxpool.New(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		return &storetest.Harness{
			Clock: clock,
			Open: func(t *testing.T, tuning storetest.Tuning) chat.Store {
				s, err := Open(t.Context(), url, Options{Clock: clock, QueueBound: tuning.QueueBound, ReadConns: 4})
				if err != nil {
					t.Fatal(err)
				}
				return s
			},
			Stall:      func(t *testing.T) func() { return stall(t, db) },
			Statements: statements(db),
		}
	})
}

// stall locks what every send and every move writes.
func stall(t *testing.T, db *pgxpool.Pool) (release func()) {
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE conversations, members IN EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func statements(db *pgxpool.Pool) storetest.Statements {
	do := func(sql string, args ...any) error {
		_, err := db.Exec(context.Background(), sql, args...)
		return err
	}
	count := func(sql string, args ...any) (n int, err error) {
		err = db.QueryRow(context.Background(), sql, args...).Scan(&n)
		return n, err
	}
	return storetest.Statements{
		Change: func(conversation chat.ID, seq int64, text string) error {
			return do(`
				WITH c AS (UPDATE conversations SET version = version + 1 WHERE id = $1 RETURNING version)
				UPDATE messages SET text = $3, edited_at = now(), changed_at = now(), version = c.version
				FROM c WHERE conversation_id = $1 AND seq = $2`, conversation, seq, text)
		},
		InsertText: func(conversation, sender chat.ID, text string) error {
			return do(`
				WITH c AS (UPDATE conversations SET last_seq = last_seq + 1, version = version + 1 WHERE id = $1 RETURNING last_seq)
				INSERT INTO messages (id, conversation_id, seq, sender_id, client_msg_id, text, created_at)
				SELECT gen_random_uuid(), $1, c.last_seq, $2, gen_random_uuid()::text, $3, now() FROM c`, conversation, sender, text)
		},
		Hole: func(conversation chat.ID) error {
			return do(`UPDATE conversations SET last_seq = last_seq + 1, version = version + 1 WHERE id = $1`, conversation)
		},
		CountMessages: func(conversation chat.ID) (int, error) {
			return count(`SELECT count(*) FROM messages WHERE conversation_id = $1`, conversation)
		},
		CountReceipts: func(conversation chat.ID) (int, error) {
			return count(`SELECT count(*) FROM receipts WHERE conversation_id = $1`, conversation)
		},
	}
}
