package postgres

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
	"xabar/internal/testkit/pgtest"
)

func epochOf(t *testing.T, s *Store) chat.ID {
	t.Helper()
	check, err := s.CheckPositions(t.Context(), chat.NewID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return check.Epoch
}

// A database that was copied into another one has an epoch of its own, once; the first one keeps
// its own. A role that may not ask the server who it is changes nothing.
func TestTheEpochFollowsThePlace(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	address, err := server.Database(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	first := openURL(t, address, Options{})
	epoch := epochOf(t, first)
	if again := epochOf(t, openURL(t, address, Options{})); again != epoch || epoch == (chat.ID{}) {
		t.Errorf("a second node has the epoch %v, the first one %v", again, epoch)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	exec := func(database string, statements ...string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), server.URL(database))
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range statements {
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		if err := conn.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	exec("postgres",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'first'",
		"CREATE DATABASE second TEMPLATE first")
	restored := epochOf(t, openURL(t, server.URL("second"), Options{}))
	if restored == epoch {
		t.Error("the copy has the epoch of the original")
	}
	if again := epochOf(t, openURL(t, server.URL("second"), Options{})); again != restored {
		t.Errorf("opened again it has %v, after %v", again, restored)
	}
	if again := epochOf(t, openURL(t, address, Options{})); again != epoch {
		t.Errorf("the original has the epoch %v, after %v", again, epoch)
	}

	exec("second", "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC",
		"CREATE ROLE plain LOGIN", "GRANT ALL ON ALL TABLES IN SCHEMA public TO plain", "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO plain")
	plain, err := url.Parse(server.URL("second"))
	if err != nil {
		t.Fatal(err)
	}
	plain.User = url.User("plain")
	if again := epochOf(t, openURL(t, plain.String(), Options{})); again != restored {
		t.Errorf("a role that may not ask makes it %v, after %v", again, restored)
	}
}
