package doctor

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"xabar/internal/testkit/pgtest"
	"xabar/migrations"
)

func examinePostgres(t *testing.T, url string, change func(*PostgresInput)) (*Report, []ClockSample) {
	t.Helper()
	in := PostgresInput{URL: url, Connections: 20, Migrate: true, Now: time.Now}
	if change != nil {
		change(&in)
	}
	var r Report
	return &r, Postgres(t.Context(), &r, in)
}

func execute(t *testing.T, url string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, s := range statements {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// as is the URL with another user and password.
func as(t *testing.T, address, user, password string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

// TestADurableServer has one server for what is well and for what a password, a role and
// settings can break.
func TestADurableServer(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Durable: true})
	address, err := server.Database(t.Context(), "chat")
	if err != nil {
		t.Fatal(err)
	}
	r, samples := examinePostgres(t, address, nil)
	allWell(t, r)
	want(t, r, "database", "commit", OK, "until it is on the disk")
	want(t, r, "schema", "version", OK, "the newest")
	if len(samples) != 1 || samples[0].Ahead.Abs() > time.Second {
		t.Errorf("clock: %v", samples)
	}
	_, wrong := examinePostgres(t, address, func(in *PostgresInput) { in.Now = off(time.Hour) })
	var clock Report
	Clock(&clock, off(time.Hour), wrong)
	want(t, &clock, "clock", "time", Problem, "PostgreSQL", "behind", "chrony")

	t.Run("settings that lose messages", func(t *testing.T) {
		execute(t, address, "ALTER DATABASE chat SET synchronous_commit = off", "ALTER DATABASE chat SET default_transaction_read_only = on")
		r, _ := examinePostgres(t, address, nil)
		want(t, r, "database", "synchronous_commit", Problem, "ALTER SYSTEM SET synchronous_commit = on")
		want(t, r, "database", "role", Problem, "read-only")
		execute(t, server.URL("postgres"), "ALTER DATABASE chat RESET ALL")
	})
	t.Run("a role without rights", func(t *testing.T) {
		execute(t, address, "CREATE ROLE guest LOGIN PASSWORD 'right one' CONNECTION LIMIT 25")
		r, _ := examinePostgres(t, as(t, address, "guest", "x"), nil)
		want(t, r, "schema", "rights", Problem, "outbox", `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO "guest"`)
		want(t, r, "database", "connections", Warning, "enough for 1 node")
		execute(t, address, "ALTER ROLE guest CONNECTION LIMIT 3")
		r, _ = examinePostgres(t, as(t, address, "guest", "x"), nil)
		want(t, r, "database", "connections", Problem, "raise max_connections")
	})
	t.Run("a wrong password", func(t *testing.T) {
		execute(t, address, `DO $$ BEGIN EXECUTE format(
			'COPY (VALUES (''host all guest 127.0.0.1/32 scram-sha-256''), (''host all all 127.0.0.1/32 trust'')) TO %L',
			current_setting('hba_file')); END $$`, "SELECT pg_reload_conf()")
		r := awaitRefusal(t, as(t, address, "guest", "hunter2-wrong"))
		want(t, r, "database", "reachable", Problem, "password", "pg_hba.conf")
		noSecret(t, r, "hunter2-wrong")
	})
	t.Run("no such database", func(t *testing.T) {
		r, _ := examinePostgres(t, server.URL("nowhere"), nil)
		want(t, r, "database", "reachable", Problem, `CREATE DATABASE "nowhere"`)
	})
}

// awaitRefusal examines until the server has read its new rules.
func awaitRefusal(t *testing.T, address string) *Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		r, _ := examinePostgres(t, address, nil)
		if find(t, r, "database", "reachable").Level == Problem || ctx.Err() != nil {
			return r
		}
	}
}

func TestFsyncOffIsAProblem(t *testing.T) {
	t.Parallel()
	r, _ := examinePostgres(t, pgtest.Database(t), nil) // tests' own server saves itself the disk
	want(t, r, "database", "fsync", Problem, "loses acknowledged messages", "ALTER SYSTEM SET fsync = on")
	want(t, r, "database", "full_page_writes", Problem)
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	latest, err := migrations.Latest(migrations.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		prepare []string
		version int // 0: none
		fixed   bool
		level   Level
		says    []string
	}{
		"empty":                {version: 0, level: OK, says: []string{"serve"}},
		"empty, not by itself": {version: 0, fixed: true, level: Problem, says: []string{"xabar migrate up", "000001_users"}},
		"older":                {version: 5, level: Warning, says: []string{"back up", "000006_versions", fmt.Sprintf("5 of %d", latest)}},
		"older and fixed":      {version: 5, fixed: true, level: Problem, says: []string{"--no-migrate", "xabar migrate up"}},
		"newer": {version: latest, prepare: []string{"UPDATE schema_migrations SET version = 999"},
			level: Problem, says: []string{"999", "a newer one", "run the newer xabar"}},
		"ahead": {version: latest, prepare: []string{"UPDATE schema_migrations SET version = 999", "INSERT INTO schema_compatibility (version, oldest) VALUES (999, 1)"},
			level: Warning, says: []string{"999", "can go on", "upgrading.md"}},
		"dirty": {version: 3, prepare: []string{"UPDATE schema_migrations SET dirty = true"},
			level: Problem, says: []string{"unfinished", "schema_migrations"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := pgtest.EmptyDatabase(t)
			db, err := sql.Open("pgx", address)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if tc.version > 0 {
				if err := migrations.To(t.Context(), migrations.Postgres, db, tc.version); err != nil {
					t.Fatal(err)
				}
			}
			execute(t, address, tc.prepare...)
			r, _ := examinePostgres(t, address, func(in *PostgresInput) { in.Migrate = !tc.fixed })
			want(t, r, "schema", "version", tc.level, tc.says...)
		})
	}
}

// TestTablesAreThoseOfTheSchema keeps the list of tables up to date.
func TestTablesAreThoseOfTheSchema(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	if known := slices.Sorted(slices.Values(tables)); !slices.Equal(names, known) {
		t.Errorf("the schema has %v, doctor looks at %v", names, known)
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	r, samples := examinePostgres(t, "postgres://me:hunter2-wrong@"+closedPort(t)+"/chat", nil)
	want(t, r, "database", "reachable", Problem, "refused", "listen_addresses")
	noSecret(t, r, "hunter2-wrong")
	if samples != nil || len(r.Findings()) != 1 {
		t.Errorf("it goes on: %s", text(t, r))
	}
	r, _ = examinePostgres(t, "postgres://me:hunter2-wrong@[bad/db", nil)
	want(t, r, "database", "address", Problem)
	noSecret(t, r, "hunter2-wrong")
}

// TestAPoolerThatDropsSettings has a proxy that changes the first packet, as a pooler does
// that is told to ignore startup parameters.
func TestAPoolerThatDropsSettings(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Host = rewriting(t, u.Host, "statement_timeout\x00"+postgresPatience, "statement_timeout\x001111")
	r, _ := examinePostgres(t, u.String(), nil)
	want(t, r, "database", "session", Problem, "1111ms", "session mode")
}

// rewriting forwards connections to target and replaces old by new, of the same length, in what
// clients send first. It is an address.
func rewriting(t *testing.T, target, old, new string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
	forward := func(client net.Conn) {
		defer client.Close()
		server, err := net.Dial("tcp", target)
		if err != nil {
			return
		}
		running.Go(func() {
			_, _ = io.Copy(client, server)
			client.Close()
		})
		defer server.Close()
		first := make([]byte, 4096)
		n, err := client.Read(first)
		if err != nil {
			return
		}
		if _, err := server.Write(bytes.Replace(first[:n], []byte(old), []byte(new), 1)); err == nil {
			_, _ = io.Copy(server, client)
		}
	}
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { forward(client) })
		}
	})
	return listener.Addr().String()
}
