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
	// Oldest is the oldest version of the schema whose programs can work with this database;
	// 0 when nothing is applied.
	Oldest int
}

// TooNew says that this program can't work with the database: a newer one has changed it in
// a way that only newer ones understand.
func (s State) TooNew() bool { return s.Version > s.Latest && s.Oldest > s.Latest }

// Ahead says that a newer program has migrated the database, and this one can go on with it.
func (s State) Ahead() bool { return s.Version > s.Latest && !s.TooNew() }

// Up applies what is pending: nothing where a newer program has gone further in a way that
// lets this one go on. Errors: ErrNewer, and what the database says.
func Up(ctx context.Context, dialect Dialect, db *sql.DB) error {
	return up(ctx, files, dialect, db)
}

func up(ctx context.Context, fsys fs.FS, dialect Dialect, db *sql.DB) error {
	err := run(ctx, fsys, dialect, db, (*migrate.Migrate).Up)
	if errors.Is(err, errAhead) {
		return nil
	}
	return err
}

// To goes up or down to a version; 0 is down to nothing. Errors: as Down.
func To(ctx context.Context, dialect Dialect, db *sql.DB, version int) error {
	if version == 0 {
		return known(run(ctx, files, dialect, db, (*migrate.Migrate).Down))
	}
	return known(run(ctx, files, dialect, db, func(m *migrate.Migrate) error { return m.Migrate(uint(version)) }))
}

// known is for what only a program can do that knows all of the database's steps.
func known(err error) error {
	if errors.Is(err, errAhead) {
		return fmt.Errorf("%w: what takes its newest steps back is the program that made them", ErrNewer)
	}
	return err
}

// Down takes the newest steps (at least 1) back. It fails when there are not as
// many, and with ErrNewer when this program does not know them.
func Down(ctx context.Context, dialect Dialect, db *sql.DB, steps int) error {
	if steps < 1 {
		return fmt.Errorf("migrations: can't go down %d steps", steps)
	}
	return known(run(ctx, files, dialect, db, func(m *migrate.Migrate) error { return m.Steps(-steps) }))
}

// Status reads where the database stands; it changes nothing.
func Status(ctx context.Context, dialect Dialect, db *sql.DB) (State, error) {
	return status(ctx, files, dialect, db)
}

func status(ctx context.Context, fsys fs.FS, dialect Dialect, db *sql.DB) (State, error) {
	all, err := list(fsys, dialect)
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
	switch {
	case version > len(all):
		state.Oldest, err = readOldest(ctx, dialect, conn, version)
	case version > 0:
		state.Oldest = all[version-1].Oldest
	}
	return state, err
}

// Check is nil when this program can work with the database's schema. Errors: ErrNewer,
// ErrOlder.
func Check(ctx context.Context, dialect Dialect, db *sql.DB) error {
	return check(ctx, files, dialect, db)
}

func check(ctx context.Context, fsys fs.FS, dialect Dialect, db *sql.DB) error {
	state, err := status(ctx, fsys, dialect, db)
	switch {
	case err != nil:
		return err
	case state.TooNew():
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
	drv := newDriver(ctx, dialect, conn, all)
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
	if errors.Is(err, errAhead) {
		return errAhead
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
