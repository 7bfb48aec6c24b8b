package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"xabar/chat"
	"xabar/persistence"
)

type pruneCmd struct {
	Storage
	OlderThan age `required:"" placeholder:"AGE" help:"Delete messages older than this: 90d, 720h."`
}

// age is a duration that may be said in days.
type age time.Duration

// UnmarshalText implements encoding.TextUnmarshaler for the flag.
func (a *age) UnmarshalText(text []byte) error {
	s := string(text)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("%q is no number of days", s)
		}
		*a = age(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is no age such as 90d or 720h", s)
	}
	*a = age(d)
	return nil
}

// Run deletes in short transactions, while gateways go on. Interrupted, it is simply
// run again.
func (c *pruneCmd) Run(ctx context.Context, std streams) (err error) {
	if err := c.mustExist(); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	store, err := persistence.Open(ctx, c.url(), persistence.Options{Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	maintenance, ok := store.(chat.Maintenance)
	if !ok {
		return errors.New("this database cannot be pruned")
	}
	before := time.Now().Add(-time.Duration(c.OlderThan))
	deleted, err := chat.PruneAll(ctx, maintenance, before, nil)
	fmt.Fprintf(std.out, "%d messages from before %s are deleted\n", deleted, before.UTC().Format(time.RFC3339))
	return err
}
