package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/golang-migrate/migrate/v4/database"
)

// lockKey names PostgreSQL's advisory lock: "xabar mi" in ASCII.
const lockKey = 0x7861626172206d69

// driver is golang-migrate's view of one connection. The library's own drivers
// commit "dirty", the change and "clean" one after the other, ignore contexts,
// and don't lock SQLite against other processes; this one
//
//   - PostgreSQL: holds an advisory lock over the run and makes each step one
//     transaction with its version number;
//   - SQLite: makes the whole run one immediate transaction, with foreign keys
//     unchecked meanwhile (tables are rebuilt) and checked before the commit.
type driver struct {
	ctx     context.Context // of the run: the library's interface has none
	dialect Dialect
	conn    *sql.Conn
	all     []Migration
	inTx    bool
	failed  bool
}

// errAhead says that the database is newer than this program, which can work with it as
// it is: there is nothing to do.
var errAhead = errors.New("migrations: the database is ahead, and compatible")

func newDriver(ctx context.Context, dialect Dialect, conn *sql.Conn, all []Migration) *driver {
	return &driver{ctx: ctx, dialect: dialect, conn: conn, all: all}
}

func (d *driver) exec(query string, args ...any) error {
	if _, err := d.conn.ExecContext(d.ctx, query, args...); err != nil {
		d.failed = true
		return err
	}
	return nil
}

func (d *driver) begin(query string) error {
	err := d.exec(query)
	d.inTx = err == nil
	return err
}

func (d *driver) commit() error {
	err := d.exec("COMMIT")
	d.inTx = err != nil
	return err
}

// Lock waits for other runs, refuses a newer database and makes the version
// table.
func (d *driver) Lock() error {
	if err := d.lock(); err != nil {
		return errors.Join(err, d.Unlock())
	}
	return nil
}

func (d *driver) lock() error {
	var err error
	if d.dialect == SQLite {
		if err = d.exec("PRAGMA foreign_keys = OFF"); err == nil {
			err = d.begin("BEGIN IMMEDIATE")
		}
	} else {
		err = d.exec("SELECT pg_advisory_lock($1)", int64(lockKey))
	}
	if err != nil {
		return err
	}
	version, err := readVersion(d.ctx, d.dialect, d.conn)
	if err != nil {
		return err
	}
	if version > len(d.all) {
		d.failed = true
		oldest, err := readOldest(d.ctx, d.dialect, d.conn, version)
		if err == nil && oldest <= len(d.all) {
			err = errAhead
		} else if err == nil {
			err = fmt.Errorf("%w: version %d, known are %d", ErrNewer, version, len(d.all))
		}
		return err
	}
	for _, table := range []string{
		"schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)",
		"schema_compatibility (version bigint NOT NULL PRIMARY KEY, oldest bigint NOT NULL)",
	} {
		if err := d.exec("CREATE TABLE IF NOT EXISTS " + table); err != nil {
			return err
		}
	}
	return d.keepOldest(version) // a program of before the table has left none
}

// keepOldest says with which version the programs can work with the database.
func (d *driver) keepOldest(version int) error {
	if err := d.exec(fmt.Sprintf("DELETE FROM schema_compatibility WHERE version <> %d", version)); err != nil || version < 1 {
		return err
	}
	return d.exec(fmt.Sprintf("INSERT INTO schema_compatibility (version, oldest) VALUES (%d, %d) ON CONFLICT DO NOTHING",
		version, d.all[version-1].Oldest))
}

// Unlock ends the run: SQLite commits or gives everything up, PostgreSQL gives up
// the step that failed.
func (d *driver) Unlock() error {
	var errs []error
	if d.dialect == SQLite && d.inTx && !d.failed {
		errs = append(errs, d.checkForeignKeys())
		if !d.failed {
			errs = append(errs, d.commit())
		}
	}
	// The run's context may have ended; what follows must happen all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), 10*time.Second)
	defer cancel()
	d.ctx = ctx
	if d.inTx {
		errs = append(errs, d.exec("ROLLBACK"))
		d.inTx = false
	}
	if d.dialect == SQLite {
		errs = append(errs, d.exec("PRAGMA foreign_keys = ON"))
	} else {
		errs = append(errs, d.exec("SELECT pg_advisory_unlock($1)", int64(lockKey)))
	}
	return errors.Join(errs...)
}

func (d *driver) checkForeignKeys() error {
	var table string
	var row, parent, fk any
	err := d.conn.QueryRowContext(d.ctx, "PRAGMA foreign_key_check").Scan(&table, &row, &parent, &fk)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	d.failed = true
	if err != nil {
		return err
	}
	return fmt.Errorf("a row of %s has lost what it refers to", table)
}

// SetVersion comes before a step (dirty) and after it; the step's transaction
// spans both.
func (d *driver) SetVersion(version int, dirty bool) error {
	if dirty {
		if d.dialect == Postgres {
			return d.begin("BEGIN")
		}
		return nil
	}
	if err := d.exec("DELETE FROM schema_migrations"); err != nil {
		return err
	}
	if version > 0 {
		if err := d.exec(fmt.Sprintf("INSERT INTO schema_migrations (version, dirty) VALUES (%d, false)", version)); err != nil {
			return err
		}
	}
	if err := d.keepOldest(version); err != nil {
		return err
	}
	if d.dialect == Postgres {
		return d.commit()
	}
	return nil
}

// Run applies one file.
func (d *driver) Run(migration io.Reader) error {
	text, err := io.ReadAll(migration)
	if err != nil {
		d.failed = true
		return err
	}
	return d.exec(string(text))
}

// Version is golang-migrate's: -1 is nothing applied.
func (d *driver) Version() (version int, dirty bool, err error) {
	version, err = readVersion(d.ctx, d.dialect, d.conn)
	if version == 0 {
		version = database.NilVersion
	}
	return version, false, err
}

// readVersion gives 0 when nothing is applied. A version that another tool left
// dirty is an error: only a person can say what is in that database.
func readVersion(ctx context.Context, dialect Dialect, conn *sql.Conn) (int, error) {
	if is, err := hasTable(ctx, dialect, conn, "schema_migrations"); err != nil || !is {
		return 0, err
	}
	var version int
	var dirty bool
	err := conn.QueryRowContext(ctx, "SELECT version, dirty FROM schema_migrations").Scan(&version, &dirty)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, err
	case dirty:
		return 0, fmt.Errorf("version %d was left unfinished by another tool", version)
	}
	return version, nil
}

func hasTable(ctx context.Context, dialect Dialect, conn *sql.Conn, name string) (is bool, err error) {
	query := "SELECT to_regclass($1) IS NOT NULL"
	if dialect == SQLite {
		query = "SELECT count(*) > 0 FROM sqlite_master WHERE type = 'table' AND name = $1"
	}
	return is, conn.QueryRowContext(ctx, query, name).Scan(&is)
}

// readOldest gives the oldest version whose programs can work with a database of this
// version: the version itself where that is not known, because another tool went there.
func readOldest(ctx context.Context, dialect Dialect, conn *sql.Conn, version int) (oldest int, err error) {
	if is, err := hasTable(ctx, dialect, conn, "schema_compatibility"); err != nil || !is {
		return version, err
	}
	err = conn.QueryRowContext(ctx, "SELECT oldest FROM schema_compatibility WHERE version = $1", version).Scan(&oldest)
	if errors.Is(err, sql.ErrNoRows) {
		return version, nil
	}
	return oldest, err
}

// Open is not used: the connection is given.
func (d *driver) Open(string) (database.Driver, error) {
	return nil, errors.New("migrations: the connection is given, not opened")
}

// Drop refuses: nothing here deletes a database.
func (d *driver) Drop() error { return errors.New("migrations: refusing to drop everything") }

// Close leaves the connection to run.
func (d *driver) Close() error { return nil }
