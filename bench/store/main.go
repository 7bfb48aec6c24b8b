// Command store measures the PostgreSQL store against the transaction that a chat
// server usually sends for each message, under pgbench, on one server that it
// starts itself with fsync on. It prints both sides, their ratios, and whether the
// targets are met; it exits with 1 when one is not.
//
//	go run ./bench/store [-duration 8s] [-rounds 3]
//
// The CPU figures are PostgreSQL's own (all its processes, from /proc), so they
// depend on the machine but not on what else the benchmark does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"xabar/internal/testkit/pgtest"
	"xabar/persistence/postgres"
)

func main() {
	b := &bench{}
	flag.DurationVar(&b.duration, "duration", 8*time.Second, "of each measurement")
	flag.IntVar(&b.rounds, "rounds", 3, "how often each is measured; the median counts")
	flag.IntVar(&b.conversations, "conversations", 10000, "direct conversations to send to, at random")
	flag.IntVar(&b.senders, "senders", 256, "senders that wait for their answers at saturation")
	flag.IntVar(&b.rate, "rate", 400, "sends a second for the latencies")
	flag.IntVar(&b.options.SendShards, "send-shards", 0, "of the store; 0 is its default")
	flag.IntVar(&b.options.MoveShards, "move-shards", 0, "of the store; 0 is its default")
	only := flag.String("only", "", "some, with commas: peer, send, complete, peer-rate, rate or lists")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	met, err := b.run(ctx, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	if !met {
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	duration      time.Duration
	rounds        int
	conversations int
	senders       int
	rate          int
	options       postgres.Options
	server        *pgtest.Server
}

func (b *bench) cpu() (time.Duration, error) { return serverCPU(b.server.PID()) }

// run measures in rounds, so that both sides meet the same moods of the machine.
func (b *bench) run(ctx context.Context, only string) (met bool, err error) {
	b.server, err = pgtest.New(pgtest.Options{Durable: true, Settings: map[string]string{
		"shared_buffers": "1GB", "max_wal_size": "4GB", "checkpoint_timeout": "15min",
	}})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, b.server.Close()) }()
	series := map[string][]result{}
	for round := range b.rounds {
		for _, group := range b.measurements() {
			group = slices.DeleteFunc(group, func(m measurement) bool { return only != "" && !slices.Contains(strings.Split(only, ","), m.name) })
			results, err := b.measure(ctx, round, group)
			if err != nil {
				return false, err
			}
			for i, m := range group {
				fmt.Printf("%-10s %s\n", m.name, results[i])
				series[m.name] = append(series[m.name], results[i])
			}
		}
	}
	var reads []read
	if only == "" || only == "lists" {
		if reads, err = b.lists(ctx); err != nil {
			return false, fmt.Errorf("lists: %w", err)
		}
	}
	return report(series, reads), nil
}

// measure runs measurements, each on a database of its own, in turns that are short enough for all of them to
// meet the same disk. The databases are dropped, else their autovacuum would disturb what is measured next.
func (b *bench) measure(ctx context.Context, round int, group []measurement) ([]result, error) {
	results := make([]result, len(group))
	turns := 1
	if len(group) > 1 {
		turns = 8
	}
	urls := make([]string, len(group))
	for i, m := range group {
		name := fmt.Sprintf("r%d_%s", round, m.database())
		var err error
		if urls[i], err = b.server.Database(ctx, name); err != nil {
			return nil, err
		}
		if err := fill(ctx, urls[i], b.conversations); err != nil {
			return nil, err
		}
		defer b.drop(ctx, name)
	}
	for range turns {
		for i, m := range group {
			r, err := m.run(ctx, urls[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
			results[i].add(r)
		}
	}
	return results, nil
}

func (b *bench) drop(ctx context.Context, database string) {
	conn, err := pgx.Connect(ctx, b.server.URL("postgres"))
	if err == nil {
		_, err = conn.Exec(ctx, "DROP DATABASE "+pgx.Identifier{database}.Sanitize()+" WITH (FORCE)")
		err = errors.Join(err, conn.Close(ctx))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: what follows shares the server with an old database:", err)
	}
}
