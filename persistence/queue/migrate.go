package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivermigrate"

	"xabar/migrations"
)

// migrate brings River's schema up to date.
func migrate[TTx any](ctx context.Context, driver riverdriver.Driver[TTx], log *slog.Logger) error {
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet(log)})
	if err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	// A process that migrates the same SQLite file at the same moment makes one of the
	// two fail; what it then finds is up to date, or one step further.
	const attempts = 5
	for range attempts {
		if _, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("queue: migrate: %w", err)
	}
	return nil
}

// check refuses a schema that is older than this program's River.
func check[TTx any](ctx context.Context, driver riverdriver.Driver[TTx], log *slog.Logger) error {
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet(log)})
	if err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	result, err := migrator.Validate(ctx, nil)
	if err != nil {
		return fmt.Errorf("queue: look at the schema: %w", err)
	}
	if !result.OK {
		return fmt.Errorf("queue: %w", migrations.ErrOlder)
	}
	return nil
}

// migrateLock names PostgreSQL's advisory lock: "xabar ri" in ASCII. River has none of
// its own for migrations.
const migrateLock = 0x7861626172207269

// migrateAlone lets one node at a time migrate.
func migrateAlone(ctx context.Context, pool *pgxpool.Pool, do func() error) (err error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(migrateLock)); err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	defer func() {
		_, unlock := conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", int64(migrateLock))
		err = errors.Join(err, unlock)
	}()
	return do()
}
