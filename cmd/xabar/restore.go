package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"xabar/persistence"
)

// errRestored ends a node whose database was restored while it ran: a supervisor starts it anew,
// and what it remembered of the other history is gone.
var errRestored = errors.New("the database holds another history than when this node started (a restored backup?): start it again")

// restored tells Run that the database was restored.
type restored struct{ told chan struct{} }

func newRestored() restored { return restored{make(chan struct{}, 1)} }

func (r restored) tell() {
	select {
	case r.told <- struct{}{}:
	default:
	}
}

// run fails when it is told, and ends with ctx.
func (r restored) run(ctx context.Context) error {
	select {
	case <-r.told:
		return errRestored
	case <-ctx.Done():
		return nil
	}
}

type restoredCmd struct{ Storage }

// Run begins a new epoch: docs/guides/backup.md says when that is needed.
func (c *restoredCmd) Run(ctx context.Context, std streams) (err error) {
	if err := c.mustExist(); err != nil {
		return err
	}
	store, err := persistence.Open(ctx, c.url(), persistence.Options{Logger: slog.New(slog.DiscardHandler), Migrate: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	epoch, err := store.RenewEpoch(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "The history in %s is now %s. Clients that hold another one are told to reset.\n", describeDatabase(c.url()), epoch)
	return err
}

type backupCmd struct {
	Storage
	File string `arg:"" help:"Where to put the copy. It must not exist."`
}

// Run copies an embedded database while gateways use it.
func (c *backupCmd) Run(ctx context.Context, std streams) error {
	if err := c.mustExist(); err != nil {
		return err
	}
	size, err := persistence.Backup(ctx, c.url(), c.File)
	if errors.Is(err, persistence.ErrNotEmbedded) {
		return usageError{err}
	}
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	_, err = fmt.Fprintf(std.out, "%s holds everything up to now, %d bytes.\n", c.File, size)
	return err
}
