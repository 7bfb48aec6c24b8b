// Package sqlite is the embedded Store: one file, no server.
//
// All writes go through one connection and one group-commit queue, so that
// whatever waits at the same moment (sends, positions, outbox removals, and the
// rarer changes) shares one transaction and one fsync; each change stands in a
// savepoint and fails alone. Reads have a small pool of their own and see the
// last commit (write-ahead log). A commit is on the disk before its callers hear
// of it (synchronous = FULL).
//
// Other processes may open the same file (xabar migrate, a backup): a batch
// takes SQLite's write lock before it looks at anything.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"xabar/chat"
	"xabar/migrations"
	"xabar/persistence/groupcommit"
	"xabar/persistence/meter"
)

// Options tune a Store. Zero values take the defaults.
type Options struct {
	Clock      chat.Clock    // default: the machine's
	Logger     *slog.Logger  // default: slog's
	Migrate    bool          // bring the schema up to date; else an older one is refused
	QueueBound int           // writes that can wait; default 8192
	MaxBatch   int           // writes in one transaction; default 256
	Readers    int           // connections for reading; default 4
	Observe    meter.Observe // hears of the queue's batches; nil: nobody does
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = chat.SystemClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.QueueBound <= 0 {
		o.QueueBound = 8192
	}
	if o.Readers <= 0 {
		o.Readers = 4
	}
	return o
}

// busyTimeout is how long a batch waits for another process's write lock.
const busyTimeout = 5 * time.Second

// Store implements chat.Store. Make one with Open.
type Store struct {
	clock   chat.Clock
	log     *slog.Logger
	writeDB *sql.DB
	writer  *writer // its connection; used by the batcher's goroutine alone
	readDB  *sql.DB
	reader  *reader
	batcher *groupcommit.Batcher[request, result]
	closes  *closes

	close  sync.Once
	closed error
}

var _ chat.Store = (*Store)(nil)

// Open opens the file, or makes it (readable by its owner alone). The caller
// closes the Store. Errors: migrations.ErrNewer, migrations.ErrOlder (without
// Migrate), and what SQLite says of the file.
func Open(ctx context.Context, path string, opts Options) (*Store, error) {
	opts = opts.withDefaults()
	s := &Store{clock: opts.Clock, log: opts.Logger}
	if err := s.open(ctx, path, opts); err != nil {
		return nil, errors.Join(fmt.Errorf("sqlite: %s: %w", path, err), s.release())
	}
	s.closes = newCloses(s.flushCloses)
	s.batcher = groupcommit.New(groupcommit.Options{
		QueueBound: opts.QueueBound, MaxBatch: opts.MaxBatch, Observer: opts.Observe.For(meter.Writes),
	}, s.runBatch)
	return s, nil
}

func (s *Store) open(ctx context.Context, path string, opts Options) (err error) {
	if s.writeDB, err = OpenDB(path); err != nil {
		return err
	}
	s.writeDB.SetMaxOpenConns(1)
	if opts.Migrate {
		err = migrations.Up(ctx, migrations.SQLite, s.writeDB)
	} else {
		err = migrations.Check(ctx, migrations.SQLite, s.writeDB)
	}
	if err != nil {
		return err
	}
	if err := s.settleEpoch(ctx); err != nil {
		return err
	}
	conn, err := s.writeDB.Conn(ctx)
	if err != nil {
		return err
	}
	s.writer = newWriter(conn)
	if s.readDB, err = OpenDB(path, "query_only(1)"); err != nil {
		return err
	}
	s.readDB.SetMaxOpenConns(opts.Readers)
	s.readDB.SetMaxIdleConns(opts.Readers)
	s.reader = &reader{db: s.readDB}
	return s.readDB.PingContext(ctx)
}

// OpenDB opens the file, or makes an empty one, with the settings that every
// connection needs, and further pragmas; for migrations and maintenance.
func OpenDB(path string, pragmas ...string) (*sql.DB, error) {
	return openDB(path, url.Values{}, pragmas...)
}

// OpenBeside opens the file for one connection that writes beside a Store, and keeps
// to what makes that safe: each transaction waits for the write lock when it begins,
// before it has read anything. Its commits reach the disk with the Store's next one.
func OpenBeside(path string) (*sql.DB, error) {
	db, err := openDB(path, url.Values{"_txlock": {"immediate"}}, "synchronous(NORMAL)")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

func openDB(path string, query url.Values, pragmas ...string) (*sql.DB, error) {
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return nil, errors.New("the database must be a file")
	}
	// SQLite would make it readable by everybody.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	query["_pragma"] = append([]string{
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
		"journal_mode(WAL)",
		"synchronous(FULL)",
		"foreign_keys(1)",
		"cache_size(-16000)",
		"temp_store(MEMORY)", // savepoints keep what they may have to take back there
	}, pragmas...)
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode()
	return sql.Open("sqlite", dsn)
}

// Ping reads from the file.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	return translate(ctx, s.readDB.QueryRowContext(ctx, "SELECT 1 FROM schema_migrations").Scan(&one))
}

// Close lets what is queued finish and closes the file.
func (s *Store) Close() error {
	s.close.Do(func() {
		s.closes.close()
		s.batcher.Close()
		s.closed = s.release()
	})
	return s.closed
}

func (s *Store) release() error {
	var errs []error
	if s.reader != nil {
		errs = append(errs, s.reader.close())
	}
	if s.readDB != nil {
		errs = append(errs, s.readDB.Close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	if s.writeDB != nil {
		errs = append(errs, s.writeDB.Close())
	}
	return errors.Join(errs...)
}
