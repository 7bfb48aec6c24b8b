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
	"time"

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
	only := flag.String("only", "", "one measurement: peer, send, complete, peer-rate, rate or lists")
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
		for _, m := range b.measurements() {
			if only != "" && m.name != only {
				continue
			}
			r, err := b.measure(ctx, fmt.Sprintf("r%d_%s", round, m.database()), m.run)
			if err != nil {
				return false, fmt.Errorf("%s: %w", m.name, err)
			}
			fmt.Printf("%-10s %s\n", m.name, r)
			series[m.name] = append(series[m.name], r)
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

// measure runs one measurement on a database of its own.
func (b *bench) measure(ctx context.Context, database string, run func(context.Context, string) (result, error)) (result, error) {
	url, err := b.server.Database(ctx, database)
	if err != nil {
		return result{}, err
	}
	if err := fill(ctx, url, b.conversations); err != nil {
		return result{}, err
	}
	return run(ctx, url)
}
