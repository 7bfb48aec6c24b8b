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

// deployment is a setup with its users, ready to talk.
type deployment struct {
	nodes []*node
	crowd *crowd
}

func (d *deployment) close() error {
	d.crowd.close()
	return stopNodes(d.nodes)
}

// cost measures a direct message, stored, answered, acknowledged by its recipient's
// device and announced as delivered to its sender: with its users on one node and on
// two. The setups take turns, a moment each, so that all meet the same moods of the
// machine; while one talks the others are idle.
func (b *bench) cost(ctx context.Context, r *report) (err error) {
	var all []*deployment
	defer func() {
		for _, d := range all {
			err = errors.Join(err, d.close())
		}
	}()
	for _, s := range setups {
		d, err := b.deploy(ctx, s)
		all = append(all, d)
		if err == nil {
			err = d.crowd.run(warmUp, 0)
		}
		if err != nil {
			return err
		}
	}
	r.closed, r.paced = make([][]cost, len(setups)), make([][]cost, len(setups))
	pause := time.Second * time.Duration(b.pairs) / time.Duration(b.rate)
	for range b.rounds {
		for i, d := range all {
			closed, err := b.load(d, 0)
			if err != nil {
				return err
			}
			paced, err := b.load(d, pause)
			if err != nil {
				return err
			}
			r.closed[i], r.paced[i] = append(r.closed[i], closed), append(r.paced[i], paced)
			r.progress("%-24s one after the other: %5.0f/s %6.1f µs + Redis %5.1f;  %d/s: %6.1f µs + Redis %5.1f",
				setups[i].name, closed.perSecond, closed.gateway, closed.redis, b.rate, paced.gateway, paced.redis)
		}
	}
	return nil
}

// deploy starts a setup and connects its users. The deployment is to be closed also
// after an error.
func (b *bench) deploy(ctx context.Context, s setup) (*deployment, error) {
	url := ""
	if s.redis {
		url = b.redis.url
	}
	d := &deployment{crowd: &crowd{ctx: ctx}}
	var err error
	if d.nodes, err = b.startNodes(ctx, s.nodes, url); err != nil {
		return d, err
	}
	d.crowd, err = startCrowd(ctx, b.pairs, d.nodes[0], d.nodes[len(d.nodes)-1])
	return d, err
}

// load lets the crowd talk and divides what the processes used by the messages.
func (b *bench) load(d *deployment, pause time.Duration) (cost, error) {
	nodes, c := d.nodes, d.crowd
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
