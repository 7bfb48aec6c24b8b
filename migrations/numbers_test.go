package migrations

import (
	"testing"

	"github.com/google/uuid"
)

// TestMessageNumbers numbers an archive, and what a program stores that knows nothing
// of numbers. PostgreSQL's is in persistence/postgres.
func TestMessageNumbers(t *testing.T) {
	t.Parallel()
	db, ctx := newFile(t), t.Context()
	must(t, To(ctx, SQLite, db, 4))
	conversations, messages := populate(t, db)
	must(t, Up(ctx, SQLite, db))
	var wrong int
	must(t, db.QueryRow(`SELECT count(*) FROM (
		SELECT seq, number, row_number() OVER (PARTITION BY conversation_id ORDER BY number) AS place,
			row_number() OVER (ORDER BY created_at, conversation_id, seq) AS want FROM messages)
		WHERE number <> want OR seq <> place OR number IS NULL`).Scan(&wrong))
	if wrong != 0 {
		t.Errorf("%d messages of the archive have a wrong number", wrong)
	}
	insert := func() (number int) {
		id := uuid.New()
		mustExec(t, db, `INSERT INTO messages (id, conversation_id, seq, sender_id, text, created_at)
			SELECT ?, ?, max(seq) + 1, sender_id, 'old program', 0 FROM messages WHERE conversation_id = ?`, id[:], conversations[0][:], conversations[0][:])
		must(t, db.QueryRow(`SELECT number FROM messages WHERE id = ?`, id[:]).Scan(&number))
		mustExec(t, db, `DELETE FROM messages WHERE id = ?`, id[:])
		return number
	}
	for i := 1; i <= 2; i++ { // a number is not given twice, also when its message is gone
		if got := insert(); got != len(messages)+i {
			t.Errorf("an old program's message %d has number %d, want %d", i, got, len(messages)+i)
		}
	}
}
