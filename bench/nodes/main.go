// Command nodes measures what it costs that a gateway is several nodes: it builds the
// gateway, starts PostgreSQL (fsync on), Redis and the nodes itself, connects clients, and
// prints what was measured beside its targets. It exits with 1 when one is missed.
//
//	go run ./bench/nodes [-duration 2s] [-rounds 11] [-pairs 256] [-only cost] [-write FILE]
//
// CPU figures are those of the processes, from /proc, so that they depend on the machine
// but little on what else runs on it; still, ratios and medians are what to look at.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"xabar/bench/internal/proc"
	"xabar/internal/testkit/pgtest"
)

func main() {
	b := &bench{}
	flag.DurationVar(&b.duration, "duration", 2*time.Second, "of each measurement of cost")
	flag.IntVar(&b.rounds, "rounds", 11, "how often cost is measured; the median counts")
	flag.IntVar(&b.pairs, "pairs", 256, "conversations with a message under way")
	flag.IntVar(&b.rate, "rate", 400, "messages a second, where there is a pause between them")
	flag.IntVar(&b.users, "users", 5000, "connected users whose Redis memory is measured")
	flag.IntVar(&b.rooms, "rooms", 100_000, "users' rooms that a node subscribes to at its start")
	only := flag.String("only", "", "one part: cost, work, start or memory")
	write := flag.String("write", "", "a file for the report in Markdown")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := b.run(ctx, *only)
	if err == nil && *write != "" {
		err = os.WriteFile(*write, []byte(r.page(ctx, b)), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	if !r.met() {
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	duration            time.Duration
	rounds, pairs, rate int
	users, rooms        int

	dir      string // of the binary and of everybody's data
	postgres *pgtest.Server
	redis    *redisServer
	made     int // databases
}

// part is something that is measured.
type part struct {
	name string
	run  func(context.Context, *report) error
}

func (b *bench) parts() []part {
	return []part{{"cost", b.cost}, {"work", b.work}, {"start", b.start}, {"memory", b.memory}}
}

func (b *bench) run(ctx context.Context, only string) (r *report, err error) {
	if b.dir, err = os.MkdirTemp("", "xabar-bench-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(b.dir, "xabar"), "./cmd/xabar")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the gateway: %w\n%s", err, out)
	}
	b.postgres, err = pgtest.New(pgtest.Options{Durable: true, Settings: map[string]string{
		"shared_buffers": "512MB", "max_wal_size": "4GB", "checkpoint_timeout": "15min",
	}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.postgres.Close()) }()
	if b.redis, err = b.startRedis(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.redis.stop()) }()
	r = &report{}
	for _, p := range b.parts() {
		if only != "" && only != p.name {
			continue
		}
		if err := p.run(ctx, r); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	r.print()
	return r, nil
}

// database makes an empty database.
func (b *bench) database(ctx context.Context) (url string, err error) {
	b.made++
	return b.postgres.Database(ctx, fmt.Sprint("bench", b.made))
}

// child is a command whose process ends with this one.
func child(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = proc.EndWithParent()
	return cmd
}
