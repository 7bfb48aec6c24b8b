package persistence

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"xabar/migrations"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOpenSQLite(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "xabar.db")
	if store, err := Open(t.Context(), url, Options{}); !errors.Is(err, migrations.ErrOlder) || store != nil {
		t.Fatalf("an empty database without Migrate: %v, %v", store, err)
	}
	store, err := Open(t.Context(), url, Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	dialect, db, err := OpenSchema(url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := migrations.Check(t.Context(), dialect, db); err != nil {
		t.Errorf("what Open made: %v", err)
	}
}

// TestOpenRefuses: a clear error, a nil Store, and nothing of a password.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"", "sqlite:", "sqlite::memory:", "sqlite:" + filepath.Join(t.TempDir(), "none", "x.db"), "mysql://me:hunter2@host/db",
		"xabar.db", "postgres://me:hunter2@127.0.0.1:1/db", "postgres://me:hunter2@[bad/db", "me:hunter2@host",
	} {
		ctx := t.Context()
		start := time.Now()
		store, err := Open(ctx, url, Options{Migrate: true})
		if err == nil || store != nil {
			t.Errorf("%q: %v, %v", url, store, err)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error has the password: %v", url, err)
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("%q: refused after %v", url, took)
		}
	}
	for _, url := range []string{"", "sqlite:", "mysql://me:hunter2@host/db"} {
		if _, db, err := OpenSchema(url); err == nil || db != nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("OpenSchema(%q): %v, %v", url, db, err)
		}
	}
}
