package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the migrations run on database/sql

	"xabar/migrations"
)

// EnvURL names a running server for the tests, as a user who may create
// databases.
const EnvURL = "XABAR_TEST_POSTGRES_URL"

// shared is the process's one server.
var shared struct {
	once   sync.Once
	server *Server // nil: EnvURL's
	admin  string
	err    error
}

// Main runs a package's tests and stops the shared server after them.
func Main(m *testing.M) int {
	code := m.Run()
	if err := StopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return max(code, 1)
	}
	return code
}

// StopShared removes the template and stops the shared server if one runs; for a
// TestMain of one's own. No test may ask for a database afterwards.
func StopShared() error {
	template.mu.Lock()
	defer template.mu.Unlock()
	if shared.server != nil {
		return shared.server.Close()
	}
	if template.name == "" {
		return nil
	}
	return execute(context.Background(), shared.admin, fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", template.name))
}

// Database makes a migrated database for this test and returns its URL. It is
// dropped at the test's end.
func Database(tb testing.TB) string {
	tb.Helper()
	admin := sharedAdmin(tb)
	template, err := ensureTemplate(tb.Context(), admin)
	if err != nil {
		tb.Fatal(err)
	}
	return create(tb, admin, template)
}

// EmptyDatabase is Database without a schema.
func EmptyDatabase(tb testing.TB) string {
	tb.Helper()
	return create(tb, sharedAdmin(tb), "template0")
}

// Database makes a migrated database on this server; it stays until Close.
func (s *Server) Database(ctx context.Context, name string) (string, error) {
	if err := execute(ctx, s.URL("postgres"), "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", err
	}
	return s.URL(name), Migrate(ctx, s.URL(name))
}

// Migrate brings the database to the newest schema.
func Migrate(ctx context.Context, url string) error {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	return errors.Join(migrations.Up(ctx, migrations.Postgres, db), db.Close())
}

func sharedAdmin(tb testing.TB) string {
	tb.Helper()
	shared.once.Do(func() {
		if shared.admin = os.Getenv(EnvURL); shared.admin != "" {
			return
		}
		if shared.server, shared.err = New(Options{}); shared.err == nil {
			shared.admin = shared.server.URL("postgres")
		}
	})
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.admin
}

var made atomic.Int64

func create(tb testing.TB, admin, template string) string {
	tb.Helper()
	name := fmt.Sprintf("xabar_test_%d_%d_%d", os.Getpid(), time.Now().UnixMilli(), made.Add(1))
	if err := execute(tb.Context(), admin, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, template)); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		// FORCE: a test that fails may leave connections.
		if err := execute(context.Background(), admin, fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", name)); err != nil {
			tb.Error(err)
		}
	})
	return withDatabase(tb, admin, name)
}

var template struct {
	mu   sync.Mutex
	name string // "" until made
}

// ensureTemplate makes this process's migrated template, once.
func ensureTemplate(ctx context.Context, admin string) (string, error) {
	template.mu.Lock()
	defer template.mu.Unlock()
	if template.name != "" {
		return template.name, nil
	}
	name := fmt.Sprintf("xabar_template_%d_%d", os.Getpid(), time.Now().UnixMilli())
	if err := execute(ctx, admin, fmt.Sprintf("CREATE DATABASE %s TEMPLATE template0", name)); err != nil {
		return "", err
	}
	target, err := replaceDatabase(admin, name)
	if err != nil {
		return "", err
	}
	if err := Migrate(ctx, target); err != nil {
		return "", err
	}
	template.name = name
	return name, nil
}

func withDatabase(tb testing.TB, admin, name string) string {
	tb.Helper()
	u, err := replaceDatabase(admin, name)
	if err != nil {
		tb.Fatal(err)
	}
	return u
}

func replaceDatabase(admin, name string) (string, error) {
	u, err := url.Parse(admin)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

// execute runs one statement on a connection of its own.
func execute(ctx context.Context, url, statement string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(explain(err, statement), conn.Close(context.Background()))
}

func explain(err error, statement string) error {
	var known *pgconn.PgError
	if errors.As(err, &known) {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return err
}
