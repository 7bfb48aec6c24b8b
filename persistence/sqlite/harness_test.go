package sqlite

import (
	"context"
	"database/sql"
	"io"
	"log/slog"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"xabar/chat"
	"xabar/persistence/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Exercise(t, newHarness)
}

func open(t testing.TB, path string, opts Options) *Store {
	t.Helper()
	opts.Migrate = true
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	s, err := Open(t.Context(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rawDB is a connection behind the Store's back.
func rawDB(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := OpenDB(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func newHarness(t *testing.T) *storetest.Harness {
	path := filepath.Join(t.TempDir(), "xabar.db")
	clock := storetest.NewClock()
	raw := rawDB(t, path)
	return &storetest.Harness{
		Clock: clock,
		Open: func(t *testing.T, tuning storetest.Tuning) chat.Store {
			return open(t, path, Options{Clock: clock, QueueBound: tuning.QueueBound})
		},
		Stall:      func(t *testing.T) func() { return stall(t, raw) },
		Statements: statements(raw, clock),
		NoHoles:    true,
	}
}

// stall holds the write lock.
func stall(t *testing.T, raw *sql.DB) (release func()) {
	ctx := context.Background()
	conn, err := raw.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
			t.Error(err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

func statements(raw *sql.DB, clock chat.Clock) storetest.Statements {
	exec := func(query string, args ...any) error {
		_, err := raw.Exec(query, args...)
		return err
	}
	count := func(query string, args ...any) (n int, err error) {
		err = raw.QueryRow(query, args...).Scan(&n)
		return n, err
	}
	return storetest.Statements{
		Change: func(c chat.ID, seq int64, text string) error {
			if err := exec("UPDATE conversations SET version = version + 1 WHERE id = ?", c[:]); err != nil {
				return err
			}
			return exec(`UPDATE messages SET text = ?1, edited_at = ?2, changed_at = ?2,
					version = (SELECT version FROM conversations WHERE id = ?3)
				WHERE conversation_id = ?3 AND seq = ?4`, text, clock.Now().UnixMilli(), c[:], seq)
		},
		InsertText: func(c, sender chat.ID, text string) error {
			id := chat.NewID()
			return exec(`INSERT INTO messages (id, conversation_id, seq, sender_id, text, created_at)
				VALUES (?, ?, (SELECT last_seq + 1 FROM conversations WHERE id = ?), ?, ?, 0)`, id[:], c[:], c[:], sender[:], text)
		},
		Hole: func(c chat.ID) error {
			return exec("UPDATE conversations SET last_seq = last_seq + 1, version = version + 1 WHERE id = ?", c[:])
		},
		CountMessages: func(c chat.ID) (int, error) {
			return count("SELECT count(*) FROM messages WHERE conversation_id = ?", c[:])
		},
		CountReceipts: func(c chat.ID) (int, error) {
			return count("SELECT count(*) FROM receipts WHERE conversation_id = ?", c[:])
		},
	}
}
