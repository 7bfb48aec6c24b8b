package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"text/tabwriter"
	"time"

	"xabar/chat"
	"xabar/persistence/queue"
)

type notificationsCmd struct {
	List  notificationsListCmd  `cmd:"" help:"Show notifications on their way, and those that failed."`
	Retry notificationsRetryCmd `cmd:"" help:"Try failed notifications again, now. Those that were delivered or read meanwhile are not sent."`
}

type notificationsListCmd struct {
	Storage
	Failed bool `help:"Only those that were given up."`
	Limit  int  `default:"50" placeholder:"N" help:"At most so many, the newest first (1 to 1000)."`
}

// Run prints a table. It has ids, and nothing of what was written.
func (c *notificationsListCmd) Run(ctx context.Context, std streams) error {
	return c.withQueue(ctx, false, func(q queue.Queue) error {
		jobs, err := q.List(ctx, chat.JobQuery{Failed: c.Failed, Limit: c.Limit})
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ID\tSTATE\tCHANNEL\tUSER\tCONVERSATIONS\tATTEMPTS\tCREATED\tNEXT\tERROR")
		for _, job := range jobs {
			next := ""
			if !job.NextAt.IsZero() {
				next = job.NextAt.UTC().Format(time.RFC3339)
			}
			fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n", job.ID, job.State, job.Channel, job.UserID,
				len(job.Conversations), job.Attempts, job.At.UTC().Format(time.RFC3339), next, strconv.Quote(job.Error))
		}
		return table.Flush()
	})
}

type notificationsRetryCmd struct {
	Storage
	IDs []int64 `arg:"" optional:"" name:"id" help:"As list shows them."`
	All bool    `help:"All that failed (at most 1000)."`
}

// Run makes them due; a running gateway sends them.
func (c *notificationsRetryCmd) Run(ctx context.Context, std streams) error {
	if c.All == (len(c.IDs) > 0) {
		return usageError{errors.New("name notifications by their ids, or say --all")}
	}
	return c.withQueue(ctx, false, func(q queue.Queue) error {
		ids := c.IDs
		if c.All {
			failed, err := q.List(ctx, chat.JobQuery{Failed: true, Limit: 1000})
			if err != nil {
				return err
			}
			for _, job := range failed {
				ids = append(ids, job.ID)
			}
		}
		for _, id := range ids {
			if err := q.Retry(ctx, id); err != nil {
				return fmt.Errorf("notification %d: %w", id, err)
			}
		}
		fmt.Fprintf(std.out, "%d notifications will be tried again.\n", len(ids))
		return nil
	})
}

// withQueue opens the queue of the database for f and closes it.
func (s Storage) withQueue(ctx context.Context, migrate bool, f func(queue.Queue) error) (err error) {
	if err := s.mustExist(); err != nil {
		return err
	}
	q, err := queue.Open(ctx, s.url(), queue.Options{Logger: slog.New(slog.DiscardHandler), Migrate: migrate})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	return f(q)
}
