package postgres

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"xabar/internal/testkit/pgtest"
	"xabar/migrations"
)

// archiveSQL populates the fourth version: 100,000 messages in 100 conversations of
// two and an empty one; ten messages share each moment, and ids don't follow time.
const archiveSQL = `
INSERT INTO users (id, name, created_at) SELECT md5('user' || n)::uuid, 'user ' || n, now() FROM generate_series(0, 101) n;
INSERT INTO conversations (id, kind, title, created_at, last_message_at)
SELECT md5('conversation' || n)::uuid, 'group', 'group ' || n, now(), CASE WHEN n % 2 = 0 THEN '2026-01-01'::timestamptz END
FROM generate_series(0, 100) n;
INSERT INTO members (conversation_id, user_id, role, joined_at)
SELECT md5('conversation' || n)::uuid, md5('user' || n + k)::uuid, 'member', now() FROM generate_series(0, 100) n, generate_series(0, 1) k;
INSERT INTO messages (id, conversation_id, sender_id, text, created_at)
SELECT md5(n || '-' || q)::uuid, md5('conversation' || n)::uuid, md5('user' || n)::uuid, n || '-' || q,
       '2025-01-01'::timestamptz + (q / 10) * interval '1 minute'
FROM generate_series(1, 100) n, generate_series(1, 1000) q ORDER BY md5(q || 'x' || n);`

// TestMessagesSeq takes a populated database of the fourth version to the newest
// and back.
func TestMessagesSeq(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyDatabase(t)
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // the test is over
	to := func(version int) time.Duration {
		t.Helper()
		started := time.Now()
		if err := migrations.To(t.Context(), migrations.Postgres, db, version); err != nil {
			t.Fatal(err)
		}
		return time.Since(started)
	}
	to(4)
	exec := func(statement string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background()) //nolint:errcheck // one statement
		if err := run(t.Context(), conn, statement); err != nil {
			t.Fatal(err)
		}
	}
	exec(archiveSQL)
	exec(`CREATE TABLE before AS SELECT * FROM messages`)
	latest, err := migrations.Latest(migrations.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("up to 5 took %v, the rest %v", to(5), to(latest))

	zero := func(what, query string) {
		t.Helper()
		var n int
		if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if n != 0 {
			t.Errorf("%s: %d", what, n)
		}
	}
	same := `SELECT count(*) FROM (
		(SELECT id, conversation_id, sender_id, text, created_at FROM before EXCEPT ALL SELECT id, conversation_id, sender_id, text, created_at FROM messages)
		UNION ALL
		(SELECT id, conversation_id, sender_id, text, created_at FROM messages EXCEPT ALL SELECT id, conversation_id, sender_id, text, created_at FROM before)) d`
	zero("messages that changed", same)
	zero("messages out of order", `SELECT count(*) FROM (
		SELECT seq, row_number() OVER (PARTITION BY conversation_id ORDER BY created_at, id) AS want FROM messages) m WHERE seq <> want`)
	zero("conversations with a wrong end", `SELECT count(*) FROM conversations c
		WHERE last_seq <> (SELECT count(*) FROM messages m WHERE m.conversation_id = c.id) OR version <> last_seq OR member_count <> 2`)
	zero("conversations without the time of their last message", `SELECT count(*) FROM conversations c
		WHERE last_seq > 0 AND last_message_at IS NULL OR last_message_at <> '2026-01-01' AND last_seq = 0`)
	zero("messages without a number of their own", `SELECT count(*) - count(DISTINCT number) FROM messages`)
	zero("numbers that do not rise with seq and time", `SELECT count(*) FROM (
		SELECT seq, row_number() OVER (PARTITION BY conversation_id ORDER BY number) AS want,
		       number, row_number() OVER (ORDER BY created_at, conversation_id, seq) AS place FROM messages) m WHERE seq <> want OR number <> place`)
	zero("archives that are unread", `SELECT count(*) FROM members m JOIN conversations c ON c.id = m.conversation_id
		WHERE m.last_read_seq <> c.last_seq OR m.last_delivered_seq <> c.last_seq`)

	s := openURL(t, url, Options{})
	users := users(t, s, 2)
	c := direct(t, s, users[0], users[1])
	if res := mustSend(t, s, users[0], c, "new"); res.Message.Seq != 1 {
		t.Errorf("the first message of a new conversation has seq %d", res.Message.Seq)
	} else if res.Message.Number != 100_001 {
		t.Errorf("the first message after the archive has number %d", res.Message.Number)
	}
	// A program of before the numbers goes on storing messages.
	exec(`INSERT INTO messages (id, conversation_id, seq, sender_id, text, created_at)
		SELECT md5('old program')::uuid, conversation_id, 1001, sender_id, 'old', now() FROM messages WHERE client_msg_id IS NULL LIMIT 1`)
	zero("messages of an old program without the next number", `SELECT count(*) FROM messages WHERE text = 'old' AND number <> 100002`)
	exec(`DELETE FROM messages WHERE text = 'old'`)
	exec(`INSERT INTO before SELECT id, conversation_id, sender_id, text, created_at FROM messages WHERE client_msg_id IS NOT NULL`)

	t.Logf("down to 4 took %v", to(4))
	zero("messages that changed on the way down", same)
	zero("positions that were left", `SELECT count(*) FROM members WHERE last_read_seq <> 0 OR last_delivered_seq <> 0`)
	to(latest)
	zero("messages that changed on the second way up", same)
	to(0)
	zero("tables that were left", `SELECT count(*) FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN ('before', 'schema_migrations', 'schema_compatibility')`)
}
