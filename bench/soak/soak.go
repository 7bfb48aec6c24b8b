package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"xabar/bench/soak/check"
)

// options of a soak.
type options struct {
	duration time.Duration // of the faults; starting and checking come on top
	users    int
	rate     float64 // messages a second
	seed     uint64
	short    bool      // a test's: short faults, and few
	binary   string    // of the gateway; "": it is built
	dir      string    // of logs and data
	out      io.Writer // of the live lines
}

// nodes is how many gateways there are.
const nodes = 3

// soak is one run.
type soak struct {
	opts    options
	start   time.Time
	cluster *cluster
	users   []*user
	devices []*device
	every   time.Duration // between two acts of a device, on average
	talking atomic.Bool   // devices do what users do; else they only finish
	world   *world
	sends   *check.Sends
	stats   stats
	faults  check.Faults

	printing sync.Mutex // of out, and of last
	last     rates

	injected map[string]int // faults, by name; breakThings' own
	samples  []check.Sample
	fresh    []check.Sample // of the nodes before there was a client
	base     []metrics      // alike
	closed   map[lifeOf]map[string]int
	checks   []checked
	holes    int64
	stored   int
	looked   time.Time // when positions were last looked at
	looks    int
}

// run soaks. The error is of a soak that could not be made; what is wrong stands in the report.
func run(ctx context.Context, opts options) (_ *report, err error) {
	s := &soak{opts: opts, start: time.Now(), injected: map[string]int{}, closed: map[lifeOf]map[string]int{}}
	s.world, s.sends = newWorld(&s.faults), check.NewSends(&s.faults)
	if s.opts.binary == "" {
		if s.opts.binary, err = build(ctx, opts.dir); err != nil {
			return nil, err
		}
	}
	s.cluster, err = startCluster(ctx, opts.dir, s.opts.binary, nodes)
	defer func() { err = errors.Join(err, s.cluster.close()) }()
	if err != nil {
		return nil, err
	}
	if err := s.newUsers(); err != nil {
		return nil, err
	}
	s.every = time.Duration(float64(len(s.devices)) * messagesPerAct / opts.rate * float64(time.Second))
	living, leave := context.WithCancel(ctx)
	var everybody sync.WaitGroup
	defer everybody.Wait()
	defer leave()
	if err := s.sampleFresh(ctx); err != nil {
		return nil, err
	}
	for _, d := range s.devices {
		everybody.Go(func() { d.run(living) })
	}
	if err := s.soak(ctx); err != nil {
		return nil, err
	}
	if err := s.finish(ctx, func() { leave(); everybody.Wait() }); err != nil {
		return nil, err
	}
	return s.report(), nil
}

// build builds the gateway, with the race detector if this program has it.
func build(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "xabar")
	args := []string{"build", "-o", path}
	if raceDetector {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "xabar/cmd/xabar")...)
	cmd.Env = os.Environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the gateway: %w\n%s", err, out)
	}
	return path, nil
}

// random makes a source of its own for each who draws, from the seed.
func (s *soak) random(who uint64) *rand.Rand { return rand.New(rand.NewPCG(s.opts.seed, who)) }

// soak starts the talk and breaks things until the time is over, with a calm moment now and
// then at which nodes are measured.
func (s *soak) soak(ctx context.Context) error {
	if err := s.calm(ctx, time.Minute); err != nil {
		return err
	}
	s.say("%d users with %d devices are there", len(s.users), len(s.devices))
	if err := s.openConversations(ctx); err != nil {
		return err
	}
	s.talking.Store(true)
	warm, part := 15*time.Second, 90*time.Second
	if s.opts.short {
		warm, part = 3*time.Second, s.opts.duration
	}
	pause(ctx, warm)
	s.sayRates("warmed up")
	if err := s.checkpoint(ctx); err != nil {
		return err
	}
	k := &deck{rng: s.random(1), all: faults()}
	for end := time.Now().Add(s.opts.duration); time.Now().Before(end); {
		until := time.Now().Add(part)
		if until.After(end) {
			until = end
		}
		if err := s.breakThings(ctx, until, k); err != nil {
			return err
		}
		if err := s.checkpoint(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}
