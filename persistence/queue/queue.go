// Package queue is the chat.NotifyQueue: River, on the database that the messages are
// in, so that a job is as safe as a message and there is nothing more to run.
//
// PostgreSQL is reached through a small pool of its own, on which River listens. On
// SQLite River has one connection of its own beside the Store's: every transaction
// takes the write lock before it looks at anything and waits for it, as the Store's
// do, so that neither finds the file busy. Its commits don't wait for the disk by
// themselves; the Store's next one, which removes the wait that a job came from, does
// for both, because the log is written in order.
//
// River's schema (river_*) is migrated by River itself, when a node starts and by
// xabar migrate up. It is no part of the numbered migrations, and a step down leaves
// it alone.
package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"

	"xabar/chat"
	"xabar/persistence/sqlite"
)

// Options tune a Queue. Zero values take the defaults.
type Options struct {
	// Channels are worked on by Run, each with Workers of its own, so that a slow one
	// holds up no other; default 32.
	Channels []string
	Workers  int
	// Timeout bounds an attempt; default 15 s. An attempt that has not ended after
	// Rescue (default 30 s; longer than Timeout) belongs to a node that died: it is
	// made again.
	Timeout, Rescue time.Duration
	// Pauses are the waits after each attempt that failed; after the last one the job
	// has failed. Default: 10 s, growing, about a day in all.
	Pauses []time.Duration
	Logger *slog.Logger // default slog's
	// Migrate brings River's schema up to date first; else an older one is refused
	// (migrations.ErrOlder).
	Migrate bool
	// Poll is how often new jobs are looked for, beside being told; default 1 s.
	Poll time.Duration
}

// defaultPauses add up to about a day.
var defaultPauses = []time.Duration{
	10 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute,
	time.Hour, 3 * time.Hour, 6 * time.Hour, 13 * time.Hour,
}

// Keep is how long jobs are kept that have failed; those that are done are kept for
// a day.
const Keep = 30 * 24 * time.Hour

func (o Options) withDefaults() Options {
	if o.Workers <= 0 {
		o.Workers = 32
	}
	if o.Timeout <= 0 {
		o.Timeout = 15 * time.Second
	}
	if o.Rescue <= 0 {
		o.Rescue = 30 * time.Second
	}
	if len(o.Pauses) == 0 {
		o.Pauses = defaultPauses
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Poll <= 0 {
		o.Poll = time.Second
	}
	return o
}

// Queue is a chat.NotifyQueue that can be closed.
type Queue interface {
	chat.NotifyQueue
	// Close releases the database; after Run.
	Close() error
}

// Open connects to the database that url names, as persistence.Open takes it, whose
// own schema is there. Errors never contain url.
func Open(ctx context.Context, url string, opts Options) (Queue, error) {
	opts = opts.withDefaults()
	scheme, path, _ := strings.Cut(url, ":")
	switch scheme {
	case "sqlite":
		return openSQLite(ctx, path, opts)
	case "postgres", "postgresql":
		return openPostgres(ctx, url, opts)
	default:
		return nil, fmt.Errorf("queue: a database url is sqlite:PATH or postgres://…, not %q:…", scheme)
	}
}

func openSQLite(ctx context.Context, path string, opts Options) (Queue, error) {
	db, err := sqlite.OpenBeside(path)
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	driver := riversqlite.New(db)
	if opts.Migrate {
		err = migrate(ctx, driver, opts.Logger)
	} else {
		err = check(ctx, driver, opts.Logger)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return newQueue[*sql.Tx](driver, opts, true, db.Close)
}

// Connections is how many a Queue on PostgreSQL opens at most: one listens, the others
// fetch and complete.
const Connections = 5

func openPostgres(ctx context.Context, url string, opts Options) (Queue, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("queue: the database url can't be parsed")
	}
	config.MaxConns = Connections
	config.ConnConfig.RuntimeParams["application_name"] = "xabar-queue"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	driver := riverpgxv5.New(pool)
	if opts.Migrate {
		err = migrateAlone(ctx, pool, func() error { return migrate(ctx, driver, opts.Logger) })
	} else {
		err = check(ctx, driver, opts.Logger)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return newQueue(driver, opts, false, func() error { pool.Close(); return nil })
}
