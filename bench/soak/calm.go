package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"xabar/bench/soak/check"
	"xabar/internal/sioclient"
)

// wellAgain is how long everything may take to be well after the last fault.
const wellAgain = 90 * time.Second

// calm waits until every node is ready and every device is connected to its own node,
// caught up, and owes nothing.
func (s *soak) calm(ctx context.Context, d time.Duration) error {
	s.cluster.heal()
	for _, n := range s.cluster.nodes {
		if err := within(ctx, d, n.ready); err != nil {
			s.faults.Add(check.Stuck, "%v", err)
		}
	}
	for _, d := range s.devices {
		d.poke()
	}
	err := within(ctx, d, func(context.Context) error {
		for _, d := range s.devices {
			c, _ := d.connection()
			if !d.resting() || c == nil || c.node != s.cluster.nodes[d.home] {
				d.poke()
				return fmt.Errorf("%s is not back, or waits for answers", d.name)
			}
		}
		return nil
	})
	if err != nil {
		s.faults.Add(check.Stuck, "after %v %v", d, err)
	}
	return ctx.Err()
}

// checkpoint is a calm moment at which nothing is sent, and nodes are measured.
func (s *soak) checkpoint(ctx context.Context) error {
	s.talking.Store(false)
	began := time.Now()
	if err := s.calm(ctx, wellAgain); err != nil {
		return err
	}
	took := time.Since(began)
	settle := 5 * time.Second // what a fault has left behind is through
	if s.opts.short {
		settle = time.Second
	}
	pause(ctx, settle)
	s.sayRates("calm")
	var text string
	for _, n := range s.cluster.nodes {
		sample, _, err := s.sample(ctx, n)
		if err != nil {
			return err
		}
		s.samples = append(s.samples, sample)
		text += fmt.Sprintf("  %d: %d/%d/%.1f", n.number, sample.Connections, sample.Goroutines, float64(sample.Heap)/1e6)
	}
	s.say("all was well after %v; connections/goroutines/MB of heap by node:%s", took.Round(10*time.Millisecond), text)
	s.talking.Store(true)
	return nil
}

// sample measures a node after a collection of its garbage. Goroutines that are just
// passing are not meant: the least of some looks counts.
func (s *soak) sample(ctx context.Context, n *node) (check.Sample, metrics, error) {
	sioclient.CloseIdleConnections() // those of clients that are gone are not the node's doing
	pause(ctx, 200*time.Millisecond)
	if err := n.collect(ctx); err != nil {
		return check.Sample{}, nil, err
	}
	var least check.Sample
	var last metrics
	for range 3 {
		m, err := n.metrics(ctx)
		if err != nil {
			return check.Sample{}, nil, err
		}
		now := check.Sample{
			At: time.Since(s.start), Node: n.number, Life: n.child.number(), Connections: int(m["xabar_connections"]),
			Goroutines: int(m["go_goroutines"]), Heap: int(m["go_memstats_heap_alloc_bytes"]),
			Inuse: int(m["go_memstats_heap_inuse_bytes"]), RSS: int(m["process_resident_memory_bytes"]),
		}
		if last == nil {
			least = now
		}
		least.Goroutines, least.Heap = min(least.Goroutines, now.Goroutines), min(least.Heap, now.Heap)
		last = m
		pause(ctx, 100*time.Millisecond)
	}
	s.noteClosed(lifeOf{n.number, least.Life}, last)
	return least, last, nil
}

// noteClosed keeps why a node has closed connections so far.
func (s *soak) noteClosed(of lifeOf, m metrics) {
	why := map[string]int{}
	for series, count := range m {
		if reason, ok := strings.CutPrefix(series, `xabar_connections_closed_total{reason="`); ok && count > 0 {
			why[strings.TrimSuffix(reason, `"}`)] = int(count)
		}
	}
	s.closed[of] = why
}

// closedWhy adds up the lives, as far as they were measured.
func (s *soak) closedWhy() map[string]int {
	all := map[string]int{}
	for _, why := range s.closed {
		for reason, n := range why {
			all[reason] += n
		}
	}
	return all
}

// sampleFresh measures the nodes before there is a client.
func (s *soak) sampleFresh(ctx context.Context) error {
	pause(ctx, time.Second) // what a start does is over
	for _, n := range s.cluster.nodes {
		if err := within(ctx, time.Minute, n.ready); err != nil {
			return err
		}
		sample, m, err := s.sample(ctx, n)
		if err != nil {
			return err
		}
		s.fresh, s.base = append(s.fresh, sample), append(s.base, m)
	}
	return nil
}

// lookAtDelivered compares stored positions with what devices hold, while everything goes
// on: what is claimed must be held. Not at every occasion, as the whole database is read.
func (s *soak) lookAtDelivered(ctx context.Context) error {
	if time.Since(s.looked) < 20*time.Second && !s.opts.short {
		return nil
	}
	db, err := s.snapshot(ctx, false)
	if err != nil {
		return err
	}
	s.compareDelivered(db)
	s.looked = time.Now()
	s.looks++
	return nil
}

func (s *soak) compareDelivered(db *check.Snapshot) {
	for _, u := range s.users {
		var records []*check.Record
		for _, d := range u.devices {
			records = append(records, d.record)
		}
		db.CompareDelivered(u.id, records, &s.faults)
	}
}
