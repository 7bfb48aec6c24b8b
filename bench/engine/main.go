//go:build linux

// Command engine measures what a Socket.IO server costs, side by side with others:
// Node's socket.io 4.8, zishang520/socket.io v2.5.0 and its servers/socket v3.0.6, and
// a bare gobwas/ws server without any protocol as the floor.
//
//	make bench-engine [FLAGS='-rounds 5 -only fanout-1,echo']
//
// Each server is a process of its own, started anew for each measurement; the load
// comes from this process, over raw WebSockets. What counts is the server's CPU (user and
// system, from /proc) per unit of work, and its RSS: they depend on the machine, but little
// on what else runs there. The servers take turns, so that each round is a fair pair
// whatever the machine does meanwhile; ratios are formed within a round, and the table has
// their median and spread.
//
// It prints a table and whether the targets are met, writes table.txt, results.json and plot.svg, and
// exits with 1 if a target is missed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// config is what the flags say.
type config struct {
	rounds   int
	duration time.Duration // of one measurement
	members  int           // of the room of the fan-out
	echoers  int           // clients that wait for their answer each
	idle     int           // connections
	crowd    int           // members of the room that others join and leave
	churn    int           // sockets that join and leave in a second
	peers    []string
	only     []string
	out      string
}

func main() {
	if kind := os.Getenv(serveEnv); kind != "" {
		if err := serve(kind); err != nil {
			fmt.Fprintln(os.Stderr, "engine:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	met, err := run(ctx, parseFlags())
	if err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		os.Exit(2)
	}
	if !met {
		os.Exit(1)
	}
}

func parseFlags() *config {
	c := &config{}
	flag.IntVar(&c.rounds, "rounds", 3, "how often each is measured")
	flag.DurationVar(&c.duration, "duration", 3*time.Second, "of each measurement")
	flag.IntVar(&c.members, "members", 1000, "members of the room that is broadcast to")
	flag.IntVar(&c.echoers, "echoers", 50, "clients that emit and wait for the acknowledgement")
	flag.IntVar(&c.idle, "idle", 5000, "idle connections")
	flag.IntVar(&c.crowd, "crowd", 20_000, "members of the room that others join and leave")
	flag.IntVar(&c.churn, "churn", 1000, "sockets that join and leave that room in a second")
	names := strings.Join(peerNames(), ",")
	peers := flag.String("peers", names, "who runs")
	only := flag.String("only", strings.Join(scenarioNames(), ","), "what is measured")
	flag.StringVar(&c.out, "out", filepath.Join("bench", "results", "engine"), "folder for table.txt, results.json and plot.svg")
	flag.Parse()
	c.peers, c.only = strings.Split(*peers, ","), strings.Split(*only, ",")
	return c
}

func run(ctx context.Context, c *config) (met bool, err error) {
	if err := raiseFileLimit(); err != nil {
		return false, err
	}
	peers, cleanup, err := choosePeers(ctx, c.peers)
	if err != nil {
		return false, err
	}
	defer cleanup()
	report := newReport(c)
	for round := range c.rounds {
		for _, s := range scenarios {
			if !slices.Contains(c.only, s.name) {
				continue
			}
			for i := range peers {
				p := peers[(i+round)%len(peers)] // nobody is always first
				if s.skip != nil && s.skip(p) {
					continue
				}
				figures, err := measure(ctx, c, p, s)
				if err != nil && (p.name == ours || p.floor || ctx.Err() != nil) {
					return false, fmt.Errorf("%s, %s: %w", s.name, p.name, err)
				}
				if err != nil { // a peer that fails is a result too
					report.fail(p, s.name, err)
					fmt.Fprintf(os.Stderr, "round %d  %-12s %-12s FAILED: %v\n", round+1, s.name, p.name, err)
					continue
				}
				report.add(p, figures)
				fmt.Fprintf(os.Stderr, "round %d  %-12s %-12s %s\n", round+1, s.name, p.name, brief(figures))
			}
		}
	}
	text, met := report.text()
	fmt.Print(text)
	return met, errors.Join(report.write("table.txt", []byte(text)), report.writeJSON(), report.writePlot())
}

// measure runs one scenario against a fresh process of p.
func measure(ctx context.Context, c *config, p *peer, s *scenario) (figures, error) {
	server, err := p.start(ctx, s.pingInterval)
	if err != nil {
		return nil, err
	}
	b := &bench{config: c, server: server, loop: newLoop()}
	figures, err := s.run(ctx, b)
	if n := b.failedDials.Load(); n > 0 && err == nil {
		figures[s.name+", "+failedDials] = float64(n)
	}
	return figures, errors.Join(err, b.loop.close(), server.stop())
}
