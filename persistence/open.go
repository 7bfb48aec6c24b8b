// Package persistence chooses the Store: Open is the one visible switch. The
// stores are in its subpackages and pass one contract suite, storetest; what
// they share (group commit, cursors) lies beside them, their schemas in
// migrations.
package persistence

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"xabar/chat"
	"xabar/persistence/meter"
	"xabar/persistence/postgres"
	"xabar/persistence/sqlite"
)

// Options are what every store takes. Zero values take the defaults.
type Options struct {
	Clock  chat.Clock   // default: the machine's
	Logger *slog.Logger // default: slog's
	// Observe, if not nil, hears of the batches of each queue.
	Observe meter.Observe
	Migrate bool // bring the schema up to date first; else an older one is refused
}

// Open opens the database that url names: sqlite:PATH, or postgres://…
// (postgresql://… is the same). The caller closes the Store.
//
// Errors: an unknown kind of url, a database that can't be reached, and
// migrations.ErrNewer and migrations.ErrOlder. They never contain url, which may
// hold a password.
func Open(ctx context.Context, url string, opts Options) (chat.Store, error) {
	scheme, rest, _ := strings.Cut(url, ":")
	switch scheme {
	case "sqlite":
		return opened(sqlite.Open(ctx, rest, sqlite.Options{Clock: opts.Clock, Logger: opts.Logger, Observe: opts.Observe, Migrate: opts.Migrate}))
	case "postgres", "postgresql":
		return opened(postgres.Open(ctx, url, postgres.Options{Clock: opts.Clock, Logger: opts.Logger, Observe: opts.Observe, Migrate: opts.Migrate}))
	default:
		return nil, fmt.Errorf("persistence: a database url is sqlite:PATH or postgres://…, not %q:…", scheme)
	}
}

// opened keeps a failed Open's nil pointer from becoming a Store that is not nil.
func opened[S chat.Store](store S, err error) (chat.Store, error) {
	if err != nil {
		return nil, err
	}
	return store, nil
}
