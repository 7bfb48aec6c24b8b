package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newSQLite(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)&_pragma=journal_mode(WAL)")
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

func newFile(t *testing.T) *sql.DB {
	t.Helper()
	return newSQLite(t, filepath.Join(t.TempDir(), "test.db"))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustExec(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// schema is every object's text, for comparing.
func schema(t *testing.T, db *sql.DB) string {
	t.Helper()
	rows, err := db.Query(`SELECT name || ': ' || replace(coalesce(sql, ''), '"', '') FROM sqlite_master WHERE name NOT IN ('schema_migrations', 'schema_compatibility') ORDER BY name`)
	must(t, err)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var s string
		must(t, rows.Scan(&s))
		all = append(all, s)
	}
	must(t, rows.Err())
	return strings.Join(all, "\n")
}

func TestNames(t *testing.T) {
	t.Parallel()
	var names [2][]Migration
	for i, dialect := range []Dialect{SQLite, Postgres} {
		all, err := List(dialect)
		must(t, err)
		if len(all) < 5 || all[4].Name != "messages_seq" {
			t.Fatalf("%s: %+v", dialect, all)
		}
		names[i] = all
	}
	// Later steps may be one dialect's own.
	for i := range 5 {
		if names[0][i] != names[1][i] {
			t.Errorf("step %d is %s in one dialect and %s in the other", i+1, names[0][i].Name, names[1][i].Name)
		}
	}
}

func TestBadNames(t *testing.T) {
	t.Parallel()
	good := fstest.MapFS{"sqlite/000001_a.up.sql": {}, "sqlite/000001_a.down.sql": {}}
	for name, extra := range map[string][]string{
		"without down": {"000002_b.up.sql"}, "gap": {"000003_b.up.sql", "000003_b.down.sql"},
		"two names": {"000002_b.up.sql", "000002_c.down.sql"}, "short number": {"2_b.up.sql"},
		"no name": {"000002.up.sql"}, "other suffix": {"000002_b.sql"},
		"number twice": {"000001_b.up.sql", "000001_b.down.sql"},
	} {
		all := fstest.MapFS{}
		for k, v := range good {
			all[k] = v
		}
		for _, file := range extra {
			all["sqlite/"+file] = &fstest.MapFile{}
		}
		if got, err := list(all, SQLite); err == nil {
			t.Errorf("%s: taken as %+v", name, got)
		}
	}
	if got, err := list(good, SQLite); err != nil || len(got) != 1 {
		t.Errorf("the good ones: %+v, %v", got, err)
	}
	if _, err := List("oracle"); err == nil {
		t.Error("an unknown dialect is known")
	}
}

// TestEveryStepDownAndUp takes each step back and forth: what down leaves must be
// what was there before up.
func TestEveryStepDownAndUp(t *testing.T) {
	t.Parallel()
	db, ctx := newFile(t), t.Context()
	latest, err := Latest(SQLite)
	must(t, err)
	var before []string
	for v := range latest + 1 {
		must(t, To(ctx, SQLite, db, v))
		before = append(before, schema(t, db))
	}
	for v := latest - 1; v >= 0; v-- {
		must(t, Down(ctx, SQLite, db, 1))
		if got := schema(t, db); got != before[v] {
			t.Errorf("down to %d leaves another schema:\n%s\nwant\n%s", v, got, before[v])
		}
		state, err := Status(ctx, SQLite, db)
		if err != nil || state.Version != v || state.Latest != latest || len(state.Pending) != latest-v || state.Pending[0].Version != v+1 {
			t.Errorf("status at %d: %+v, %v", v, state, err)
		}
	}
	if err := Down(ctx, SQLite, db, 1); err == nil {
		t.Error("down from nothing says it worked")
	}
	if err := Down(ctx, SQLite, db, 0); err == nil {
		t.Error("down by no steps says it worked")
	}
	must(t, Up(ctx, SQLite, db))
	must(t, Up(ctx, SQLite, db))
	if got := schema(t, db); got != before[latest] {
		t.Errorf("up again leaves another schema:\n%s", got)
	}
	must(t, Check(ctx, SQLite, db))
}

func TestOtherVersionsAreRefused(t *testing.T) {
	t.Parallel()
	db, ctx := newFile(t), t.Context()
	if err := Check(ctx, SQLite, db); !errors.Is(err, ErrOlder) {
		t.Errorf("an empty database: %v, want ErrOlder", err)
	}
	must(t, Up(ctx, SQLite, db))
	mustExec(t, db, "UPDATE schema_migrations SET version = version + 1")
	before := schema(t, db)
	for name, err := range map[string]error{
		"Check": Check(ctx, SQLite, db), "Up": Up(ctx, SQLite, db), "Down": Down(ctx, SQLite, db, 1),
	} {
		if !errors.Is(err, ErrNewer) {
			t.Errorf("%s of a newer database: %v, want ErrNewer", name, err)
		}
	}
	if got := schema(t, db); got != before {
		t.Error("a newer database was changed")
	}
	mustExec(t, db, "UPDATE schema_migrations SET version = 1, dirty = true")
	if err := Up(ctx, SQLite, db); err == nil {
		t.Error("a database that another tool left half-way was taken")
	}
}

// TestFailureLeavesNothing: a step that fails takes the whole run back.
func TestFailureLeavesNothing(t *testing.T) {
	t.Parallel()
	db, ctx := newFile(t), t.Context()
	steps := fstest.MapFS{
		"sqlite/000001_a.up.sql":   {Data: []byte("CREATE TABLE a (id INTEGER PRIMARY KEY)")},
		"sqlite/000001_a.down.sql": {Data: []byte("DROP TABLE a")},
		"sqlite/000002_b.up.sql":   {Data: []byte("CREATE TABLE b (a INTEGER REFERENCES a (id)); INSERT INTO b VALUES (7)")},
		"sqlite/000002_b.down.sql": {Data: []byte("DROP TABLE b")},
	}
	if err := run(ctx, steps, SQLite, db, (*migrate.Migrate).Up); err == nil || !strings.Contains(err.Error(), "refers to") {
		t.Errorf("a dangling reference: %v", err)
	}
	steps["sqlite/000002_b.up.sql"] = &fstest.MapFile{Data: []byte("CREATE TABLE b (x INTEGER); CREATE TABEL c")}
	if err := run(ctx, steps, SQLite, db, (*migrate.Migrate).Up); err == nil {
		t.Error("a broken statement worked")
	}
	if got := schema(t, db); got != "" {
		t.Errorf("left behind:\n%s", got)
	}
	var on int
	must(t, db.QueryRow("PRAGMA foreign_keys").Scan(&on))
	if on != 1 {
		t.Error("foreign keys stay unchecked on the connection")
	}
	steps["sqlite/000002_b.up.sql"] = &fstest.MapFile{Data: []byte("CREATE TABLE b (x INTEGER)")}
	must(t, run(ctx, steps, SQLite, db, (*migrate.Migrate).Up))
}

func TestEndedContext(t *testing.T) {
	t.Parallel()
	db := newFile(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Up(ctx, SQLite, db); !errors.Is(err, context.Canceled) {
		t.Errorf("Up with an ended context: %v", err)
	}
}

// TestTogether starts several processes' worth of runs on one file.
func TestTogether(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	var all sync.WaitGroup
	for range 6 {
		db := newSQLite(t, path)
		all.Go(func() {
			if err := Up(t.Context(), SQLite, db); err != nil {
				t.Errorf("Up: %v", err)
			}
		})
	}
	all.Wait()
	must(t, Check(t.Context(), SQLite, newSQLite(t, path)))
}

func TestFilesSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	for _, dialect := range []Dialect{SQLite, Postgres} {
		all, err := List(dialect)
		must(t, err)
		for _, m := range all {
			text, err := fs.ReadFile(files, string(dialect)+"/"+fmt.Sprintf("%06d_%s.up.sql", m.Version, m.Name))
			must(t, err)
			if !strings.HasPrefix(string(text), "--") {
				t.Errorf("%s %s has no comment that says why", dialect, fmt.Sprintf("%06d_%s.up.sql", m.Version, m.Name))
			}
		}
	}
}
