//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"xabar/gateway/auth"
	"xabar/internal/loadtest"
)

// measurement is something to measure, and what is aimed at.
type measurement struct {
	name    string
	unit    string // of the figure
	nodes   int
	redis   bool // also with one node
	ours    bool // no peer does it
	fanOut  bool // Centrifugo takes part
	stored  int  // messages that are there before, in other conversations
	beside  int  // connections that only wait
	flat    int  // other than 0: the measurement so far from this one is what it is compared with
	options loadtest.Options
	figure  func(*loadtest.Result) float64
	target  float64 // of the ratio to the better peer, or to the other measurement; 0: none
	p99     float64 // the same of the 99th percentile of send to delivered
}

func cpu(r *loadtest.Result) float64 { return r.CPU() }

// gatewayMemory is kB for each connection, in the nodes alone.
func gatewayMemory(r *loadtest.Result) (kB float64) {
	for name, each := range r.Connect.RSSPerConn {
		if name == "nodes" {
			kB += each
		}
	}
	return kB
}

func measurements(d time.Duration) []measurement {
	const message, delivery = "µs CPU a message", "µs CPU a delivery"
	direct := func(apart bool, rate float64) loadtest.Options {
		return loadtest.Options{Scenario: "direct", Users: 512, Apart: apart, Rate: rate, Duration: d, Warmup: warmUp}
	}
	group := func(window int, noAcks bool) loadtest.Options {
		return loadtest.Options{Scenario: "group", Users: 1000, GroupSize: 1000, Window: window, NoAcks: noAcks, Duration: d, Warmup: warmUp}
	}
	return append([]measurement{
		{name: "direct, 1 node, 256 pairs, one in flight each", unit: message, nodes: 1, options: direct(false, 0), figure: cpu, target: 0.2},
		{name: "direct, 2 nodes, pairs apart, one in flight each", unit: message, nodes: 2, options: direct(true, 0), figure: cpu, target: 0.2},
		{name: "direct, 1 node, 400 a second", unit: message, nodes: 1, options: direct(false, 400), figure: cpu, target: 0.35, p99: 0.7},
		{name: "direct, 2 nodes, pairs apart, 400 a second", unit: message, nodes: 2, options: direct(true, 400), figure: cpu, target: 0.35, p99: 0.7},
		{name: "group of 1,000, acknowledged, one in flight", unit: delivery, nodes: 1, options: group(1, false), figure: cpu, target: 0.55},
		{name: "group of 1,000, acknowledged, eight in flight", unit: delivery, nodes: 1, options: group(8, false), figure: cpu, target: 0.4},
		{name: "group of 1,000, without acknowledgements", unit: delivery, nodes: 1, fanOut: true, options: group(1, true), figure: cpu, target: 0.4},
		{name: "group of 1,000, without acknowledgements, eight in flight", unit: delivery, nodes: 1, fanOut: true, options: group(8, true), figure: cpu, target: 0.4},
		{name: "reconnect storm of 2,000, with sync", unit: "µs CPU a client", nodes: 1, redis: true,
			options: loadtest.Options{Scenario: "reconnect", Users: 2222, Duration: max(d, 9*time.Second), Jitter: time.Second}, figure: cpu, target: 0.5},
		{name: "idle connections, memory of the node", unit: "kB a connection", nodes: 1, redis: true,
			options: loadtest.Options{Scenario: "idle", Users: idleUsers(), Duration: max(d, settled), Warmup: time.Second}, figure: gatewayMemory},
	}, append(growths(d), flats(d)...)...)
}

// measure starts the servers for one side, runs, and stops them.
func (b *bench) measure(ctx context.Context, s *side, m measurement) (result *loadtest.Result, err error) {
	if s == &centrifugoSide {
		return b.fanOut(ctx, &m)
	}
	database, drop, err := b.database(ctx, s.empty)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := drop(); err == nil {
			err = e
		}
	}()
	if err := b.redis.flush(ctx); err != nil {
		return nil, err
	}
	if m.stored > 0 {
		if err := fill(ctx, database, m.stored); err != nil {
			return nil, err
		}
	}
	o := m.options
	if o.Description, err = s.desc(); err != nil {
		return nil, err
	}
	o.Token = loadtest.Minted(minter(), "bench-")
	o.Processes = append(o.Processes, loadtest.Process{Name: "postgres", PID: b.postgres.PID()})
	if m.nodes > 1 || m.redis {
		o.Processes = append(o.Processes, loadtest.Process{Name: "redis", PID: b.redis.cmd.Process.Pid})
	}
	for range m.nodes {
		p, err := start(s.command(b, &m, database))
		if err != nil {
			return nil, err
		}
		defer p.stop()
		o.Targets = append(o.Targets, p.url)
		o.Processes = append(o.Processes, loadtest.Process{Name: "nodes", PID: p.cmd.Process.Pid})
	}
	if m.beside > 0 {
		done, e := waiting(ctx, o, m.beside)
		if e != nil {
			return nil, e
		}
		defer func() { err = errors.Join(err, done()) }()
	}
	before, err := b.redis.memory(ctx)
	if err != nil {
		return nil, err
	}
	if result, err = loadtest.Run(ctx, o); err != nil {
		return nil, err
	}
	if m.options.Scenario == "idle" {
		after, err := b.redis.peak(ctx)
		if err != nil {
			return nil, err
		}
		result.Connect.RSSPerConn["redis data"] = float64(after-before) / 1000 / float64(o.Users)
	}
	return result, nil
}

// warmUp is not measured: compilers and caches of both sides are cold at first.
const warmUp = 2 * time.Second

// settled is when a node that does nothing has become small: two heartbeats, and the collection of garbage
// that Go runs every two minutes at least.
const settled = 150 * time.Second

func minter() *auth.Minter { return auth.NewMinter([]byte(secret), nil) }

// idleUsers are as many as may be open here, at most 20,000.
func idleUsers() int { return min(20000, maxConnections()) }

// name of a figure and its unit.
func (m *measurement) title() string { return fmt.Sprintf("%s (%s)", m.name, m.unit) }
