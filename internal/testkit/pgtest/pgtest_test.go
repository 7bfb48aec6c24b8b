package pgtest_test

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"xabar/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestDatabaseIsMigratedAndOnesOwn(t *testing.T) {
	for range 2 {
		url := pgtest.Database(t)
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		var users int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM users").Scan(&users); err != nil {
			t.Fatal(err)
		}
		if users != 0 {
			t.Fatalf("a new database holds %d users", users)
		}
		if _, err := conn.Exec(t.Context(), "INSERT INTO users (id, name, created_at) VALUES (gen_random_uuid(), 'x', now())"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRestartKeepsWhatWasCommitted(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	url, err := server.Database(t.Context(), "kept")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "INSERT INTO users (id, name, created_at) VALUES (gen_random_uuid(), 'x', now())"); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(true); err != nil {
		t.Fatal(err)
	}
	if err := conn.Ping(t.Context()); err == nil {
		t.Fatal("the old connection survived an immediate restart")
	}
	again, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close(t.Context())
	var users int
	if err := again.QueryRow(t.Context(), "SELECT count(*) FROM users").Scan(&users); err != nil || users != 1 {
		t.Fatalf("after the restart: %d users, %v", users, err)
	}
}
