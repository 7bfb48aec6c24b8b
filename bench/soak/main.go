// Command soak runs a whole deployment (three nodes of the real binary, PostgreSQL with
// fsync, Redis), has clients of all sorts talk on it while it breaks things at random, and
// then checks that nothing was lost, doubled, reordered or left behind: in the database, on
// every device, in presence, in what nodes count, and in their memory.
//
//	go run ./bench/soak [-duration 10m] [-seed N] [-users 40] [-rate 40] [-report FILE] [-keep]
//
// It exits with 1 if something is wrong. docs/guides/soak.md explains its report.
//
// A soak is a cluster, users with devices (device, connection), a deck of faults, and
// questions at the end (finish). What is right is decided in the package check.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	opts := options{out: os.Stdout}
	flag.DurationVar(&opts.duration, "duration", 10*time.Minute, "how long things are broken; starting and checking take some two minutes more")
	flag.Uint64Var(&opts.seed, "seed", uint64(time.Now().UnixNano()%1e9), "the same seed breaks the same things; default: another one each time")
	flag.IntVar(&opts.users, "users", 40, "users, with one to three devices each")
	flag.Float64Var(&opts.rate, "rate", 40, "messages a second, all together")
	flag.StringVar(&opts.binary, "binary", "", "the gateway; default: it is built from the sources")
	path := flag.String("report", "", "a file for the report as JSON")
	keep := flag.Bool("keep", false, "keep the nodes' logs and profiles also when all is well")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := soakIn(ctx, opts, *path, *keep)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	case !r.ok():
		os.Exit(1)
	}
}

// soakIn soaks in a folder of its own, which stays if something was wrong.
func soakIn(ctx context.Context, opts options, path string, keep bool) (r *report, err error) {
	if opts.users < 10 || opts.rate <= 0 || opts.duration <= 0 {
		return nil, errors.New("at least 10 users, a rate and a duration are wanted")
	}
	if opts.dir, err = os.MkdirTemp("", "xabar-soak-"); err != nil {
		return nil, err
	}
	fmt.Fprintf(opts.out, "Soak of %v with seed %d; logs in %s\n", opts.duration, opts.seed, opts.dir)
	if r, err = run(ctx, opts); err != nil {
		return nil, err
	}
	fmt.Fprint(opts.out, r.text())
	if path != "" {
		body, err := json.MarshalIndent(r, "", "  ")
		if err == nil {
			err = os.WriteFile(path, append(body, '\n'), 0o644)
		}
		if err != nil {
			return nil, err
		}
	}
	if r.ok() && !keep {
		return r, os.RemoveAll(opts.dir)
	}
	fmt.Fprintf(opts.out, "The nodes' logs, and profiles of them at the end, are in %s\n", opts.dir)
	return r, nil
}
