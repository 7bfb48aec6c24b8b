package migrations

import (
	"bytes"
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
)

// old is a message as the fourth version keeps it.
type old struct {
	id, conversation uuid.UUID
	text             string
	createdAt        int64
}

// populate fills a database of the fourth version: a direct conversation with
// equal timestamps, stored in another order than that of their times, a group
// with one message, and an empty conversation.
func populate(t *testing.T, db *sql.DB) (conversations []uuid.UUID, messages []old) {
	t.Helper()
	users := make([]uuid.UUID, 3)
	for i := range users {
		users[i] = uuid.Must(uuid.NewV7())
		mustExec(t, db, "INSERT INTO users (id, external_id, name, created_at) VALUES (?, ?, ?, 1)", users[i][:], fmt.Sprint(i), fmt.Sprint("user ", i))
	}
	slices.SortFunc(users, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	for i := range 3 {
		c := uuid.Must(uuid.NewV7())
		conversations = append(conversations, c)
		if i == 1 {
			mustExec(t, db, "INSERT INTO conversations (id, kind, title, created_at) VALUES (?, 'group', 'Tea', 1)", c[:])
		} else {
			mustExec(t, db, "INSERT INTO conversations (id, kind, user_low, user_high, created_at) VALUES (?, 'direct', ?, ?, 1)",
				c[:], users[0][:], users[1+i/2][:])
		}
		for _, u := range []uuid.UUID{users[0], users[1+i/2]} {
			mustExec(t, db, "INSERT INTO members (conversation_id, user_id, role, joined_at) VALUES (?, ?, 'member', 1)", c[:], u[:])
		}
	}
	add := func(conversation uuid.UUID, at int64) {
		m := old{uuid.New(), conversation, fmt.Sprintf("text %d 🙂", len(messages)), at} // random ids: no order of birth
		mustExec(t, db, "INSERT INTO messages (id, conversation_id, sender_id, text, created_at) VALUES (?, ?, ?, ?, ?)",
			m.id[:], m.conversation[:], users[0][:], m.text, m.createdAt)
		messages = append(messages, m)
	}
	for i := range 200 {
		add(conversations[0], int64(1000-i/20)) // twenty of each moment, the newest first
	}
	add(conversations[1], 5)
	return conversations, messages
}

func TestMessagesSeq(t *testing.T) {
	t.Parallel()
	db, ctx := newFile(t), t.Context()
	must(t, To(ctx, SQLite, db, 4))
	conversations, messages := populate(t, db)

	must(t, To(ctx, SQLite, db, 5))
	for i, c := range conversations {
		want := ordered(messages, c)
		got := read(t, db, c, "seq")
		if !slices.Equal(got, want) {
			t.Errorf("conversation %d is in another order than by created_at, id", i)
		}
		checkSeqs(t, db, c, int64(len(want)))
	}
	checkConstraints(t, db, conversations[0])

	must(t, Up(ctx, SQLite, db))
	var count, version int64
	must(t, db.QueryRow("SELECT member_count, version FROM conversations WHERE id = ?", conversations[0][:]).Scan(&count, &version))
	if count != 2 || version != 200 {
		t.Errorf("counted %d members, version %d; want 2 and 200", count, version)
	}

	must(t, To(ctx, SQLite, db, 4))
	for i, c := range conversations {
		if got := read(t, db, c, "created_at, id"); !slices.Equal(got, ordered(messages, c)) {
			t.Errorf("after down conversation %d has other messages", i)
		}
		var last, positions int64
		must(t, db.QueryRow("SELECT last_seq FROM conversations WHERE id = ?", c[:]).Scan(&last))
		must(t, db.QueryRow("SELECT sum(last_read_seq + last_delivered_seq) FROM members WHERE conversation_id = ?", c[:]).Scan(&positions))
		if last != 0 || positions != 0 {
			t.Errorf("after down: last_seq %d, positions %d", last, positions)
		}
	}
	must(t, Up(ctx, SQLite, db))
	if got := read(t, db, conversations[0], "seq"); !slices.Equal(got, ordered(messages, conversations[0])) {
		t.Error("up again gives another order")
	}
}

// ordered is what readers of the fourth version see.
func ordered(messages []old, conversation uuid.UUID) []old {
	var of []old
	for _, m := range messages {
		if m.conversation == conversation {
			of = append(of, m)
		}
	}
	slices.SortFunc(of, func(a, b old) int {
		if a.createdAt != b.createdAt {
			return int(a.createdAt - b.createdAt)
		}
		return bytes.Compare(a.id[:], b.id[:])
	})
	return of
}

func read(t *testing.T, db *sql.DB, conversation uuid.UUID, order string) []old {
	t.Helper()
	rows, err := db.Query("SELECT id, conversation_id, text, created_at FROM messages WHERE conversation_id = ? ORDER BY "+order, conversation[:])
	must(t, err)
	defer rows.Close()
	var all []old
	for rows.Next() {
		var m old
		must(t, rows.Scan(&m.id, &m.conversation, &m.text, &m.createdAt))
		all = append(all, m)
	}
	must(t, rows.Err())
	return all
}

// checkSeqs: 1 to n, and everybody has read and received everything.
func checkSeqs(t *testing.T, db *sql.DB, conversation uuid.UUID, n int64) {
	t.Helper()
	var low, high, distinct, last, away int64
	must(t, db.QueryRow("SELECT coalesce(min(seq), 1), coalesce(max(seq), 0), count(DISTINCT seq) FROM messages WHERE conversation_id = ?",
		conversation[:]).Scan(&low, &high, &distinct))
	must(t, db.QueryRow("SELECT last_seq FROM conversations WHERE id = ?", conversation[:]).Scan(&last))
	must(t, db.QueryRow("SELECT count(*) FROM members WHERE conversation_id = ? AND (last_read_seq <> ? OR last_delivered_seq <> ?)",
		conversation[:], n, n).Scan(&away))
	if low != 1 || high != n || distinct != n || last != n || away != 0 {
		t.Errorf("seqs %d to %d (%d of them), last_seq %d, %d members elsewhere; want 1 to %d", low, high, distinct, last, away, n)
	}
}

// checkConstraints: the new columns are required and unique.
func checkConstraints(t *testing.T, db *sql.DB, conversation uuid.UUID) {
	t.Helper()
	var sender uuid.UUID
	must(t, db.QueryRow("SELECT sender_id FROM messages LIMIT 1").Scan(&sender))
	insert := func(seq, clientMsgID any) error {
		id := uuid.New()
		_, err := db.Exec(`INSERT INTO messages (id, conversation_id, seq, sender_id, client_msg_id, text, created_at)
			VALUES (?, ?, ?, ?, ?, 'x', 1)`, id[:], conversation[:], seq, sender[:], clientMsgID)
		return err
	}
	if insert(nil, nil) == nil {
		t.Error("a message without a seq was taken")
	}
	if insert(7, nil) == nil {
		t.Error("a seq was taken twice")
	}
	must(t, insert(1001, "X1"))
	if insert(1002, "X1") == nil {
		t.Error("a client's id was taken twice")
	}
	must(t, insert(1003, nil))
	mustExec(t, db, "DELETE FROM messages WHERE seq > 1000")
}
