package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"xabar/internal/testkit"
	"xabar/internal/testkit/pgtest"
	"xabar/internal/testkit/redistest"
)

// settings reads `name = value # comment` lines.
func settings(t *testing.T, text string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if _, twice := all[name]; !ok || twice {
			t.Errorf("not understood, or said twice: %s", line)
		}
		all[name] = strings.TrimSpace(value)
	}
	return all
}

// TestThePostgresConfOfTheRepository starts a server with deploy/postgresql.
func TestThePostgresConfOfTheRepository(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(testkit.Root(), "deploy", "postgresql", "postgresql.conf"))
	if err != nil {
		t.Fatal(err)
	}
	all := settings(t, string(text))
	if len(all) < 20 {
		t.Fatalf("only %d settings", len(all))
	}
	started := map[string]string{"shared_buffers": "32MB"} // tests run on small machines
	for name, value := range all {
		if _, ok := started[name]; !ok {
			started[name] = value
		}
	}
	server := pgtest.Start(t, pgtest.Options{Durable: true, Settings: started})
	address, err := server.Database(t.Context(), "chat")
	if err != nil {
		t.Fatal(err)
	}
	r, _ := examinePostgres(t, address, func(in *PostgresInput) { in.Connections = 24 })
	allWell(t, r, "commit", "statement") // a busy machine is no fault of the settings
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	// A setting that does not exist or cannot have that value would have kept it from starting.
	for _, name := range []string{"max_wal_size", "autovacuum_naptime", "log_min_duration_statement"} {
		var value string
		if err := conn.QueryRow(t.Context(), "SHOW "+name).Scan(&value); err != nil || !strings.HasPrefix(value, started[name]) {
			t.Errorf("%s is %s, not %s: %v", name, value, started[name], err)
		}
	}
}

// TestTheRedisConfOfTheRepository starts a server with deploy/redis.
func TestTheRedisConfOfTheRepository(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--include", filepath.Join(testkit.Root(), "deploy", "redis", "redis.conf"))
	r, _ := examineRedis(t, server.URL, false)
	allWell(t, r)
	want(t, r, "redis", "buffers", OK, "67108864 16777216 60")
	got, ok := server.Do("CONFIG", "GET", "maxmemory").([]any)
	if !ok || len(got) != 2 || got[1] != "1073741824" {
		t.Errorf("the file is not in force: %v", got)
	}
}
