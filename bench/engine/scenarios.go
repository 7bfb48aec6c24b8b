//go:build linux

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// figures are what one scenario found about one server in one round, by name.
type figures map[string]float64

// A scenario is one measurement.
type scenario struct {
	name         string
	pingInterval time.Duration
	skip         func(p *peer) bool // who can't
	run          func(ctx context.Context, b *bench) (figures, error)
}

// bench is what a scenario works with.
type bench struct {
	*config
	server *server
	loop   *loop

	failedDials atomic.Int64
}

// Heartbeats are out of the way, but where they are what is measured.
const (
	longPing  = 25 * time.Second
	shortPing = 5 * time.Second
)

var scenarios = []*scenario{
	{name: "fanout-1", pingInterval: longPing, run: func(ctx context.Context, b *bench) (figures, error) { return b.fanOut(ctx, 1) }},
	{name: "fanout-8", pingInterval: longPing, run: func(ctx context.Context, b *bench) (figures, error) { return b.fanOut(ctx, 8) }},
	{name: "echo", pingInterval: longPing, run: func(ctx context.Context, b *bench) (figures, error) { return b.echo(ctx) }},
	{name: "idle", pingInterval: shortPing, run: func(ctx context.Context, b *bench) (figures, error) {
		return b.idleConnections(ctx, "", dialWebSocket)
	}},
	{name: "upgraded", pingInterval: shortPing, skip: func(p *peer) bool { return p.floor }, run: func(ctx context.Context, b *bench) (figures, error) {
		return b.idleConnections(ctx, "upgraded ", dialUpgraded)
	}},
	{name: "churn", pingInterval: longPing, skip: cannotChurn, run: func(ctx context.Context, b *bench) (figures, error) { return b.churning(ctx) }},
}

func scenarioNames() (names []string) {
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return names
}

// Names of the figures, with their units.
const (
	fanOut1     = "fan-out, 1 in flight, µs/delivery"
	fanOut8     = "fan-out, 8 in flight, µs/delivery"
	echoCPU     = "echo, µs/event"
	connectCPU  = "connect, µs"
	idleRSS     = "idle connection, RSS kB"
	idleCPU     = "idle connection, µs/heartbeat"
	atRest      = "large room at rest, µs/delivery"
	inChurn     = "large room in churn, µs/delivery"
	churnFactor = "large room, churn/rest"

	receivedShare = ", received of sent %"
	disorderly    = ", out of order %"
	failedDials   = "connections that failed"
)

// work is one stretch of load on the server.
type work struct {
	cpu   time.Duration
	units int64
}

func (w work) micros() float64 { return float64(w.cpu.Nanoseconds()) / 1000 / float64(max(w.units, 1)) }

// watch measures the server's CPU during f, which returns how many units it has worked.
func (b *bench) watch(f func() (int64, error)) (work, error) {
	before, err := b.server.usage()
	if err != nil {
		return work{}, err
	}
	units, err := f()
	if err != nil {
		return work{}, err
	}
	after, err := b.server.usage()
	if err == nil && units == 0 {
		err = fmt.Errorf("nothing came in %s", b.duration)
	}
	return work{after.cpu - before.cpu, units}, err
}
