package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"xabar/internal/testkit"
	"xabar/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { testkit.Main(m, pgtest.StopShared) }

// TestAShortSoak keeps the tool from rotting: few users, short faults, a seed that is known
// to deal faults of processes and of connections. A finding of it is a finding.
func TestAShortSoak(t *testing.T) {
	t.Parallel()
	binary, err := testkit.Binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	path := filepath.Join(t.TempDir(), "report.json")
	var out bytes.Buffer
	opts := options{duration: 15 * time.Second, users: 10, rate: 15, seed: 3395, short: true, binary: binary, out: &out}
	r, err := soakIn(ctx, opts, path, false)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	t.Logf("%s", &out)
	if !r.ok() {
		t.Error("something is wrong: see the report above")
	}
	if r.Acknowledged < 100 || r.Stored != r.Acknowledged || len(r.Injected) < 3 || len(r.Checks) != 13 {
		t.Errorf("the soak has done little: %+v", r)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var again report
	if err := json.Unmarshal(body, &again); err != nil || again.Seed != r.Seed || again.Acknowledged != r.Acknowledged {
		t.Errorf("the report reads as %+v: %v", again, err)
	}
}

// A seed that was printed gives the same faults again.
func TestASeedGivesASchedule(t *testing.T) {
	t.Parallel()
	schedule := func(seed uint64) (list []string) {
		s := &soak{opts: options{seed: seed, users: 10}, cluster: &cluster{}}
		for i := range nodes {
			n, err := (&cluster{database: "postgres://127.0.0.1:1/x", redisURL: "127.0.0.1:1"}).newNode(t.TempDir(), "", i+1)
			if err != nil {
				t.Fatal(err)
			}
			s.cluster.nodes = append(s.cluster.nodes, n)
		}
		defer func() {
			if err := s.cluster.close(); err != nil {
				t.Error(err)
			}
		}()
		if err := s.newUsers(); err != nil {
			t.Fatal(err)
		}
		k := &deck{rng: s.random(1), all: faults()}
		for range 2 * len(k.all) {
			f := k.deal()
			detail, _ := f.prepare(s, k.rng)
			list = append(list, f.name+": "+detail)
		}
		return list
	}
	first := schedule(5)
	if again := schedule(5); !slices.Equal(first, again) {
		t.Errorf("seed 5 gave\n%s\nand then\n%s", strings.Join(first, "\n"), strings.Join(again, "\n"))
	}
	if slices.Equal(first, schedule(6)) {
		t.Error("another seed gives the same faults")
	}
	for _, f := range faults() {
		n := 0
		for _, line := range first {
			if strings.HasPrefix(line, f.name+": ") {
				n++
			}
		}
		if n != 2 {
			t.Errorf("%s was dealt %d times in two rounds", f.name, n)
		}
	}
}

func TestTheReportShowsWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := &soak{opts: options{seed: 3, duration: time.Minute, out: &bytes.Buffer{}}, start: time.Now(), injected: map[string]int{"kill -9": 2}}
	err := s.question(t.Context(), "every device holds what the database does", func(context.Context) error {
		s.faults.Add("lost", "user1/0 lacks seq 4")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.sends = nil
	r := &report{Seed: 3, Duration: "1m0s", Injected: s.injected, Checks: s.checks, Wrong: s.faults.List()}
	text := r.text()
	for _, want := range []string{"WRONG  every device holds", "WRONG, lost: 1 times", "user1/0 lacks seq 4", "kill -9 2", "make soak SOAK=1m0s SEED=3"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	if r.ok() {
		t.Error("the report is well")
	}
	if out := fmt.Sprint(s.opts.out); !strings.Contains(out, "NO") {
		t.Errorf("the live line is %q", out)
	}
}

// Rows that the program would never write are seen by the snapshot.
func TestStrayRowsAreCounted(t *testing.T) {
	t.Parallel()
	s := &soak{cluster: &cluster{database: pgtest.Database(t)}}
	sound, err := s.snapshot(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	sound.Check(&s.faults, true)
	if !s.faults.None() {
		t.Fatalf("an empty database is wrong:\n%s", &s.faults)
	}
	conn, err := pgx.Connect(t.Context(), s.cluster.database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, row := range []string{
		`INSERT INTO users (id, name, created_at, settled_unread) VALUES ('00000000-0000-0000-0000-000000000001', 'a', now(), 7)`,
		`INSERT INTO conversations (id, kind, title, created_at) VALUES ('00000000-0000-0000-0000-0000000000c1', 'group', 'g', now())`,
		`INSERT INTO messages (id, conversation_id, seq, sender_id, client_msg_id, text, reply_to_seq, created_at)
		 VALUES (gen_random_uuid(), '00000000-0000-0000-0000-0000000000c2', 1, '00000000-0000-0000-0000-000000000002', 'x', 'text', 9, now())`,
		`INSERT INTO outbox (created_at, conversation_id, seq, leased_until) VALUES (now(), '00000000-0000-0000-0000-0000000000c1', 3, now())`,
		`INSERT INTO receipts (conversation_id, user_id, up_to_seq, at, kind)
		 VALUES ('00000000-0000-0000-0000-0000000000c1', '00000000-0000-0000-0000-000000000001', 1, now(), 1)`,
		`INSERT INTO notification_due (id, user_id, conversation_id, seq, wake_at, reason)
		 VALUES (gen_random_uuid(), '00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-0000000000c1', 4, now(), 1)`,
	} {
		if _, err := conn.Exec(t.Context(), row); err != nil {
			t.Fatalf("%s: %v", row, err)
		}
	}
	db, err := s.snapshot(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"messages of no conversation", "messages of no user", "messages of senders who are no members", "replies to what is not there",
		"conversations without members", "receipts of no member", "outbox rows of no message", "waits for notifications of no member",
		"waits for notifications beyond lastSeq", "users whose settled unread is not their sum",
	} {
		if db.Strays[want] != 1 {
			t.Errorf("%d %s are counted", db.Strays[want], want)
		}
	}
	if db.Outbox != 1 || len(db.Due) != 1 {
		t.Errorf("the outbox has %d rows and %d waits are there", db.Outbox, len(db.Due))
	}
}
