package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xabar/chat"
	"xabar/migrations"
	"xabar/persistence/storetest"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, path := range map[string]string{
		"no path": "", "memory": ":memory:", "a folder": dir, "no such folder": filepath.Join(dir, "none", "x.db"),
	} {
		if s, err := Open(t.Context(), path, Options{Migrate: true}); err == nil {
			t.Errorf("%s: opened", name)
			s.Close()
		}
	}
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(t.Context(), text, Options{Migrate: true}); err == nil {
		t.Error("a text file was opened")
		s.Close()
	}
}

func TestOpenChecksTheVersion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	if _, err := Open(t.Context(), path, Options{}); !errors.Is(err, migrations.ErrOlder) {
		t.Errorf("an empty file without Migrate: %v", err)
	}
	if err := open(t, path, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatalf("a migrated file without Migrate: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := rawDB(t, path).Exec("UPDATE schema_migrations SET version = version + 1"); err != nil {
		t.Fatal(err)
	}
	for _, migrate := range []bool{true, false} {
		if _, err := Open(t.Context(), path, Options{Migrate: migrate}); !errors.Is(err, migrations.ErrNewer) {
			t.Errorf("a newer file (migrate %v): %v", migrate, err)
		}
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a?b #c%20.db") // a path is not a URL
	s := open(t, path, Options{})
	defer s.Close()
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is readable by others: %v", suffix, info.Mode())
		}
	}
	var journal string
	var synchronous, foreignKeys, queryOnly int
	for query, dest := range map[string]any{
		"PRAGMA journal_mode": &journal, "PRAGMA synchronous": &synchronous, "PRAGMA foreign_keys": &foreignKeys,
	} {
		if _, err := s.writer.one(query, nil, dest); err != nil {
			t.Fatal(err)
		}
	}
	if journal != "wal" || synchronous != 2 || foreignKeys != 1 {
		t.Errorf("the writer has journal %s, synchronous %d, foreign keys %d", journal, synchronous, foreignKeys)
	}
	if err := s.readDB.QueryRow("PRAGMA query_only").Scan(&queryOnly); err != nil || queryOnly != 1 {
		t.Errorf("readers may write: %d, %v", queryOnly, err)
	}
}

// TestPlans reads EXPLAIN QUERY PLAN of everything that is asked often: no table
// may be scanned from end to end, on an empty database and on one with
// statistics.
func TestPlans(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	s := open(t, path, Options{})
	defer s.Close()
	fillForPlans(t, s)
	raw := rawDB(t, path)
	queries := map[string]string{
		"repeat": repeatQuery, "number": numberQuery, "position": positionQuery, "claim": claimQuery,
		"before": historyBefore, "after": historyAfter, "between": betweenQuery,
		"news": newsQuery, "changes": changesQuery, "sync": afterQuery,
		"list": listQuery, "unread": unreadQuery, "session": sessionQuery, "conversation": conversationQuery,
		"members": membersQuery, "receipts": receiptsQuery, "contacts": contactsQuery, "acquainted": acquaintedQuery,
		"prune": pruneQuery, "pruneScan": pruneScanQuery,
		"blocks": blocksQuery, "blockedAmong": blockedAmongQuery, "messagesOf": messagesOfQuery, "olderOf": olderOfQuery,
		"settings": settingsQuery, "user": userByID, "external": userByExternal,
	}
	sorts := map[string]bool{"list": true, "contacts": true} // by what another table holds
	for _, analysed := range []bool{false, true} {
		if analysed {
			if _, err := raw.Exec("ANALYZE"); err != nil {
				t.Fatal(err)
			}
		}
		for name, query := range queries {
			for _, step := range plan(t, s, query) {
				full := strings.HasPrefix(step, "SCAN") && !fine(step)
				if full || strings.Contains(step, "TEMP B-TREE FOR ORDER BY") && !sorts[name] || strings.Contains(step, "AUTOMATIC") {
					t.Errorf("%s (analysed %v): %s", name, analysed, step)
				}
			}
		}
	}
}

// fine scans are of what a query has made itself, of its parameters, and of the
// outbox, by age: it is nearly empty, and a claim reads its beginning.
func fine(step string) bool {
	for _, of := range []string{"SCAN page", "SCAN ask", "SCAN CONSTANT", "SCAN o USING COVERING INDEX outbox_by_age", "SCAN o USING INDEX outbox_by_age"} {
		if strings.HasPrefix(step, of) {
			return true
		}
	}
	return false
}

func plan(t *testing.T, s *Store, query string) []string {
	t.Helper()
	stmt, err := s.readDB.Prepare("EXPLAIN QUERY PLAN " + query)
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	params := strings.Count(query, "?")
	for n := 9; n > 0; n-- { // numbered parameters count once
		if strings.Contains(query, fmt.Sprintf("?%d", n)) {
			params = n
			break
		}
	}
	args := make([]any, params)
	rows, err := stmt.Query(args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return steps
}

// fillForPlans makes enough rows for statistics to have an opinion.
func fillForPlans(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	var users []chat.ID
	for n := range 20 {
		u, err := s.EnsureUser(ctx, chat.UserRef(fmt.Sprint("u", n)), fmt.Sprint("u", n))
		if err != nil {
			t.Fatal(err)
		}
		users = append(users, u.ID)
	}
	answered := make(chan error, 400)
	for _, other := range users[1:] {
		c, _, err := s.OpenDirect(ctx, users[0], other)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.AddContact(ctx, users[0], other); err != nil {
			t.Fatal(err)
		}
		for n := range 10 {
			s.Send(ctx, chat.SendMessage{SenderID: other, ConversationID: c.ID, ClientMsgID: fmt.Sprint(n), Text: "x"},
				func(_ chat.SendResult, err error) { answered <- err })
		}
	}
	for range 190 {
		if err := <-answered; err != nil {
			t.Fatal(err)
		}
	}
}

// TestFailedCommit: when the transaction can't be committed, everybody in it is
// told, nothing is stored, and the store goes on when the fault is over.
func TestFailedCommit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	s := open(t, path, Options{Clock: storetest.NewClock()})
	defer s.Close()
	ctx := t.Context()
	a, err := s.EnsureUser(ctx, "a", "A")
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.EnsureUser(ctx, "b", "B")
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := s.OpenDirect(ctx, a.ID, b.ID)
	if err != nil {
		t.Fatal(err)
	}
	send := func() (chat.SendResult, error) {
		type answer struct {
			res chat.SendResult
			err error
		}
		answered := make(chan answer, 1)
		s.Send(ctx, chat.SendMessage{SenderID: a.ID, ConversationID: c.ID, ClientMsgID: "X1", Text: "x"},
			func(res chat.SendResult, err error) { answered <- answer{res, err} })
		got := <-answered
		return got.res, got.err
	}
	pages := func(n int) {
		t.Helper()
		if _, err := write(ctx, s, func(t *tx) (struct{}, error) {
			return struct{}{}, t.run(fmt.Sprintf("PRAGMA max_page_count = %d", n))
		}); err != nil {
			t.Fatal(err)
		}
	}
	// A full disk, as SQLite sees it.
	pages(1)
	huge := strings.Repeat("x", 2000)
	var full error
	for n := 0; full == nil; n++ {
		if n > 1000 {
			t.Fatal("the file never became full")
		}
		done := make(chan error, 1)
		s.Send(ctx, chat.SendMessage{SenderID: b.ID, ConversationID: c.ID, ClientMsgID: fmt.Sprint(n), Text: huge},
			func(_ chat.SendResult, err error) { done <- err })
		full = <-done
	}
	if chat.CodeOf(full) != chat.CodeUnavailable || strings.Contains(chat.AsError(full).Message, "disk") {
		t.Errorf("a full disk: %v", full)
	}
	before, err := s.Conversation(ctx, a.ID, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	pages(1 << 30)
	res, err := send()
	if err != nil || res.Message.Seq != before.LastSeq+1 || res.Duplicate {
		t.Errorf("after the fault: %+v, %v; want seq %d", res, err, before.LastSeq+1)
	}
}

// TestClosesRideOnTheNextBatch: removals of outbox events that nobody follows make
// a batch of their own, and what a failed batch took comes back.
func TestCloses(t *testing.T) {
	t.Parallel()
	flushed := make(chan struct{}, 10)
	c := newCloses(func() { flushed <- struct{}{} })
	c.add(closing{key: chat.OutboxKey{Seq: 1}}, closing{key: chat.OutboxKey{Seq: 2}})
	<-flushed
	keys := c.take()
	if len(keys) != 2 || c.waiting() != 0 {
		t.Errorf("took %v, %d left", keys, c.waiting())
	}
	c.putBack(keys)
	<-flushed
	for range closesBound {
		c.add(closing{key: chat.OutboxKey{Seq: 3}})
	}
	if got := c.waiting(); got != closesBound {
		t.Errorf("%d wait, the bound is %d", got, closesBound)
	}
	if keys := c.take(); len(keys) != closesBatch || keys[0].key.Seq != 1 || keys[2].key.Seq != 3 {
		t.Errorf("a batch took %d", len(keys))
	}
	c.close()
}
