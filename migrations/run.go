package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/source/iofs"
)

// ErrNewer says that a newer binary has migrated the database.
var ErrNewer = errors.New("the database's schema is newer than this program")

// ErrOlder says that the database must be migrated before use.
var ErrOlder = errors.New("the database's schema is older than this program; run: xabar migrate up")

// State is where a database stands.
type State struct {
	Version int         // 0: nothing applied
	Latest  int         // what Up leads to
	Pending []Migration // in order
}

// Up applies what is pending. Errors: ErrNewer, and what the database says.
func Up(ctx context.Context, dialect Dialect, db *sql.DB) error {
	return run(ctx, files, dialect, db, (*migrate.Migrate).Up)
}

// To goes up or down to a version; 0 is down to nothing.
func To(ctx context.Context, dialect Dialect, db *sql.DB, version int) error {
	if version == 0 {
		return run(ctx, files, dialect, db, (*migrate.Migrate).Down)
	}
	return run(ctx, files, dialect, db, func(m *migrate.Migrate) error { return m.Migrate(uint(version)) })
}

// Down takes the newest steps (at least 1) back. It fails when there are not as
// many.
func Down(ctx context.Context, dialect Dialect, db *sql.DB, steps int) error {
	if steps < 1 {
		return fmt.Errorf("migrations: can't go down %d steps", steps)
	}
	return run(ctx, files, dialect, db, func(m *migrate.Migrate) error { return m.Steps(-steps) })
}

// Status reads where the database stands; it changes nothing.
func Status(ctx context.Context, dialect Dialect, db *sql.DB) (State, error) {
	all, err := List(dialect)
	if err != nil {
		return State{}, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return State{}, err
	}
	defer conn.Close()
	version, err := readVersion(ctx, dialect, conn)
	if err != nil {
		return State{}, err
	}
	state := State{Version: version, Latest: len(all)}
	if version < len(all) {
		state.Pending = all[version:]
	}
	return state, nil
}

// Check is nil when the database's schema is this binary's. Errors: ErrNewer,
// ErrOlder.
func Check(ctx context.Context, dialect Dialect, db *sql.DB) error {
	state, err := Status(ctx, dialect, db)
	switch {
	case err != nil:
		return err
	case state.Version > state.Latest:
		return fmt.Errorf("%w: version %d, known are %d", ErrNewer, state.Version, state.Latest)
	case state.Version < state.Latest:
		return fmt.Errorf("%w (version %d of %d)", ErrOlder, state.Version, state.Latest)
	}
	return nil
}

// run wires golang-migrate to the embedded files and to one connection.
func run(ctx context.Context, fsys fs.FS, dialect Dialect, db *sql.DB, do func(*migrate.Migrate) error) error {
	all, err := list(fsys, dialect)
	if err != nil {
		return err
	}
	source, err := iofs.New(fsys, string(dialect))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	defer source.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	drv := newDriver(ctx, dialect, conn, len(all))
	m, err := migrate.NewWithInstance("embedded", source, string(dialect), drv)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	m.LockTimeout = 24 * time.Hour // ctx bounds the wait; another node may migrate for long
	m.PrefetchMigrations = uint(len(all) + 1)
	err = do(m)
	if errors.Is(err, migrate.ErrNoChange) {
		err = nil
	}
	var dbErr *database.Error
	if errors.As(err, &dbErr) && dbErr.OrigErr != nil {
		err = dbErr.OrigErr // without the whole file's text
	}
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	return nil
}
