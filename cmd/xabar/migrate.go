package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"xabar/migrations"
	"xabar/persistence"
	"xabar/persistence/queue"
)

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Bring the schema to the newest version. serve does the same by itself."`
	Down   migrateDownCmd   `cmd:"" help:"Take the newest steps back. What only they can hold is lost: back up first."`
	Status migrateStatusCmd `cmd:"" help:"Say where the schema stands; changes nothing."`
}

type migrateUpCmd struct{ Storage }

func (c *migrateUpCmd) Run(ctx context.Context, std streams) error {
	if c.DatabaseURL == "" {
		if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
			return fmt.Errorf("--data-dir: %w", err)
		}
	}
	return c.withSchema(func(dialect migrations.Dialect, db *sql.DB) error {
		if err := migrations.Up(ctx, dialect, db); err != nil {
			return err
		}
		if err := c.withQueue(ctx, true, func(queue.Queue) error { return nil }); err != nil {
			return err
		}
		return printStatus(ctx, std.out, dialect, db)
	})
}

type migrateDownCmd struct {
	Storage
	Steps int `arg:"" optional:"" default:"1" help:"How many steps."`
}

func (c *migrateDownCmd) Run(ctx context.Context, std streams) error {
	if err := c.mustExist(); err != nil {
		return err
	}
	return c.withSchema(func(dialect migrations.Dialect, db *sql.DB) error {
		if err := migrations.Down(ctx, dialect, db, c.Steps); err != nil {
			return err
		}
		return printStatus(ctx, std.out, dialect, db)
	})
}

type migrateStatusCmd struct{ Storage }

func (c *migrateStatusCmd) Run(ctx context.Context, std streams) error {
	if err := c.mustExist(); err != nil {
		return err
	}
	return c.withSchema(func(dialect migrations.Dialect, db *sql.DB) error {
		return printStatus(ctx, std.out, dialect, db)
	})
}

// withSchema opens the database for f and closes it.
func (s Storage) withSchema(f func(migrations.Dialect, *sql.DB) error) (err error) {
	dialect, db, err := persistence.OpenSchema(s.url())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return f(dialect, db)
}

// mustExist keeps a command that only looks from making an empty file.
func (s Storage) mustExist() error {
	path, isFile := strings.CutPrefix(s.url(), "sqlite:")
	if !isFile {
		return nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no database at %s", path)
	}
	return nil
}

func printStatus(ctx context.Context, w io.Writer, dialect migrations.Dialect, db *sql.DB) error {
	state, err := migrations.Status(ctx, dialect, db)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s schema: version %d of %d\n", dialect, state.Version, state.Latest)
	for _, m := range state.Pending {
		fmt.Fprintf(w, "pending: %06d_%s\n", m.Version, m.Name)
	}
	switch {
	case state.TooNew():
		return migrations.ErrNewer
	case state.Ahead():
		fmt.Fprintln(w, "a newer xabar has migrated it; this one can go on with it")
	}
	return nil
}
