//go:build linux

// Command gateway measures the whole gateway beside a chat server as a good Node team
// writes it (bench/peer-node), by `xabar loadtest`'s engine: PostgreSQL (fsync on), Redis
// and one or two nodes of each, alternating in rounds. What counts is the CPU time of all
// server processes for a unit of work, and the ratio to the better peer within a round.
// Groups without acknowledgements are measured beside Centrifugo too, which fans out and
// does nothing else.
//
//	make bench [BENCH='-rounds 1 -duration 5s -only direct']
//
// It writes docs/benchmarks.md and exits with 1 when a run was wrong (something lost,
// doubled, without a receipt; a peer that reorders is reported and goes on).
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"xabar/internal/loadtest"
)

// config is the command line.
type config struct {
	rounds   int
	duration time.Duration
	only     string
	out      string
	skip     string

	centrifugo string // its binary; empty: none
}

func main() {
	var c config
	flag.IntVar(&c.rounds, "rounds", 3, "how often each is measured; medians count")
	flag.DurationVar(&c.duration, "duration", 10*time.Second, "of each measurement")
	flag.StringVar(&c.only, "only", "", "measurements whose names contain this")
	flag.StringVar(&c.skip, "skip", "", "servers to leave out, by the start of their names")
	flag.StringVar(&c.out, "out", "docs/benchmarks.md", "report to write; empty: none")
	flag.StringVar(&c.centrifugo, "centrifugo", "", "binary of Centrifugo; without it, group measurements go on without it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, &c)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c *config) (err error) {
	if err := raiseFileLimit(); err != nil {
		return err
	}
	if err := c.findCentrifugo(); err != nil {
		return err
	}
	b, err := setUp(ctx, c)
	if err != nil {
		return err
	}
	defer func() {
		if e := b.close(); err == nil {
			err = e
		}
	}()
	r := newReport(c)
	for round := range c.rounds {
		for _, m := range measurements(c.duration) {
			if !strings.Contains(m.name, c.only) {
				continue
			}
			contestants := c.contestants(&m)
			for i := range contestants {
				s := contestants[(i+round)%len(contestants)] // nobody is always the first
				result, err := b.measure(ctx, s, m)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", m.name, s.name, err)
				}
				fmt.Printf("%d  %-52s %-12s %s\n", round+1, m.name, s.name, r.add(m, s, result))
			}
			if c.out == "" {
				continue
			}
			if err := r.write(c.out, round+1); err != nil { // after each: whoever stops early has something
				return err
			}
		}
	}
	fmt.Println("\n" + r.table() + r.besideCentrifugo())
	return r.faults()
}

// contestants are those whom a measurement compares.
func (c *config) contestants(m *measurement) (all []*side) {
	for i := range sides {
		if s := &sides[i]; !c.skips(s) && (s.ours() || !m.ours) {
			all = append(all, s)
		}
	}
	if m.fanOut && c.centrifugo != "" && !c.skips(&centrifugoSide) {
		all = append(all, &centrifugoSide)
	}
	return all
}

func (c *config) skips(s *side) bool { return c.skip != "" && strings.HasPrefix(s.name, c.skip) }

// raiseFileLimit allows as many open files as this process may ask for; the servers inherit it.
func raiseFileLimit() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	l.Cur = l.Max
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
}

// side is a server that is measured.
type side struct {
	name    string
	command func(b *bench, m *measurement, database string) *exec.Cmd
	desc    func() (*loadtest.Description, error)
	empty   bool // it makes its own schema
}

// ours says whether it is what the others are compared with.
func (s *side) ours() bool { return s == &sides[0] }

const secret = "a secret that only this benchmark uses, 32 bytes"

var sides = []side{
	{
		name: "xabar", desc: func() (*loadtest.Description, error) { return loadtest.Xabar(), nil },
		command: func(b *bench, m *measurement, database string) *exec.Cmd {
			args := []string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--database-url", database,
				"--jwt-secret", secret, "--data-dir", b.dir, "--log-format", "json",
				"--limit-handshakes", "off", "--limit-connections", "off", "--limit-events", "off",
				"--limit-sends", "off", "--limit-conversations", "off"}
			if m.nodes > 1 || m.redis {
				args = append(args, "--redis-url", b.redis.url())
			}
			return exec.Command(b.binary, args...)
		},
	},
	node("node cte", "cte"),
	node("node steps", "steps"),
}

func node(name, variant string) side {
	return side{
		name: name, empty: true,
		desc: func() (*loadtest.Description, error) {
			return loadtest.ReadDescription(filepath.Join("bench", "peer-node", "loadtest.yaml"))
		},
		command: func(b *bench, m *measurement, database string) *exec.Cmd {
			cmd := exec.Command("node", filepath.Join("bench", "peer-node", "server.js"))
			cmd.Env = append(os.Environ(), "DATABASE_URL="+database, "JWT_SECRET="+secret, "VARIANT="+variant, "PORT=0", "NODE_ENV=production")
			if m.nodes > 1 || m.redis {
				cmd.Env = append(cmd.Env, "REDIS_URL="+b.redis.url())
			}
			if m.options.NoAcks {
				cmd.Env = append(cmd.Env, "ACKS=off")
			}
			return cmd
		},
	}
}
