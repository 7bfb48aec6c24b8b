package main

import (
	"context"
	"errors"
	"slices"
	"time"
)

// warmUp is how long the load runs before it is measured.
const warmUp = 2 * time.Second

// setup is where the two users of a conversation are.
type setup struct {
	name  string
	nodes int
	redis bool
}

var setups = []setup{
	{"one node, without Redis", 1, false},
	{"one node, with Redis", 1, true},
	{"two nodes", 2, true},
}

// cost is the CPU that a message costs.
type cost struct {
	gateway, redis float64 // µs a message; of all nodes together
	perSecond      float64
}

func (c cost) total() float64 { return c.gateway + c.redis }

// cost measures a direct message, stored, answered, acknowledged by its recipient's
// device and announced as delivered to its sender: with its users on one node and on
// two, in rounds, so that all meet the same moods of the machine.
func (b *bench) cost(ctx context.Context, r *report) error {
	r.closed, r.paced = make([][]cost, len(setups)), make([][]cost, len(setups))
	for range b.rounds {
		for i, s := range setups {
			closed, paced, err := b.measureCost(ctx, s)
			if err != nil {
				return err
			}
			r.closed[i], r.paced[i] = append(r.closed[i], closed), append(r.paced[i], paced)
			r.progress("%-24s one after the other: %5.0f/s %6.1f µs + Redis %5.1f;  %d/s: %6.1f µs + Redis %5.1f",
				s.name, closed.perSecond, closed.gateway, closed.redis, b.rate, paced.gateway, paced.redis)
		}
	}
	return nil
}

func (b *bench) measureCost(ctx context.Context, s setup) (closed, paced cost, err error) {
	url := ""
	if s.redis {
		url = b.redis.url
	}
	nodes, err := b.startNodes(ctx, s.nodes, url)
	if err != nil {
		return closed, paced, err
	}
	defer func() { err = errors.Join(err, stopNodes(nodes)) }()
	c, err := startCrowd(ctx, b.pairs, nodes[0], nodes[len(nodes)-1])
	defer c.close()
	if err != nil {
		return closed, paced, err
	}
	if err := c.run(warmUp, 0); err != nil {
		return closed, paced, err
	}
	if closed, err = b.load(c, nodes, 0); err != nil {
		return closed, paced, err
	}
	paced, err = b.load(c, nodes, time.Second*time.Duration(b.pairs)/time.Duration(b.rate))
	return closed, paced, err
}

// load lets the crowd talk and divides what the processes used by the messages.
func (b *bench) load(c *crowd, nodes []*node, pause time.Duration) (cost, error) {
	used := func() (gateway, redis time.Duration, err error) {
		for _, n := range nodes {
			cpu, failed := n.CPU()
			gateway, err = gateway+cpu, errors.Join(err, failed)
		}
		redis, failed := b.redis.CPU()
		return gateway, redis, errors.Join(err, failed)
	}
	start, before := time.Now(), c.done.Load()
	gateway, redis, err := used()
	if err == nil {
		err = c.run(b.duration, pause)
	}
	count, took := float64(c.done.Load()-before), time.Since(start)
	gatewayAfter, redisAfter, failed := used()
	if count == 0 {
		failed = errors.Join(failed, errors.New("no message has come through"))
	}
	micros := func(d time.Duration) float64 { return float64(d.Microseconds()) / count }
	return cost{micros(gatewayAfter - gateway), micros(redisAfter - redis), count / took.Seconds()}, errors.Join(err, failed)
}

// median of a figure.
func median(costs []cost, figure func(cost) float64) float64 {
	values := make([]float64, len(costs))
	for i, c := range costs {
		values[i] = figure(c)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// ratio is the median over rounds of what a costs beside b in the same round.
func ratio(a, b []cost) float64 {
	values := make([]float64, len(a))
	for i := range a {
		values[i] = a[i].total() / b[i].total()
	}
	slices.Sort(values)
	return values[len(values)/2]
}
