//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// stall is how long nothing may come before what is missing counts as lost.
const stall = time.Second

// poll is how often the publisher looks how far the members are, which is a read of a counter.
const poll = 50 * time.Microsecond

// textSize is the size of a broadcast's or echo's text in bytes.
const textSize = 100

// publisher keeps a number of broadcasts to the room in flight.
type publisher struct {
	b        *bench
	conn     *conn
	members  int64
	inFlight int64

	number int64 // of the last broadcast, over all runs

	sent  int64 // broadcasts of this run
	lost  int64 // deliveries of it that are given up
	from  int64 // what the loop had received at its start
	seen  int64 // what it had received when last something came,
	moved time.Time
}

// run publishes for d and returns how many deliveries came.
func (p *publisher) run(ctx context.Context, d time.Duration) (delivered int64, err error) {
	p.from, p.sent, p.lost, p.seen = p.b.loop.received.Load(), 0, 0, 0
	p.moved = time.Now()
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := p.wait(ctx, p.inFlight-1); err != nil {
			return 0, err
		}
		p.sent++
		p.number++
		text := fmt.Sprintf("%0*d%s", seqDigits, p.number, strings.Repeat("x", textSize-seqDigits))
		if err := p.conn.write(textFrame(`42["publish","` + text + `"]`)); err != nil {
			return 0, err
		}
	}
	err = p.wait(ctx, 0)
	return p.b.loop.received.Load() - p.from, err
}

// wait returns when at most n broadcasts are under way.
func (p *publisher) wait(ctx context.Context, n int64) error {
	for {
		got := p.b.loop.received.Load() - p.from
		if got+p.lost >= (p.sent-n)*p.members {
			return nil
		}
		now := time.Now()
		switch {
		case got != p.seen:
			p.seen, p.moved = got, now
		case now.Sub(p.moved) > stall:
			p.lost, p.moved = p.sent*p.members-got, now
			return nil
		}
		if err := p.b.loop.failed(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll):
		}
	}
}

// join makes the connections members of the room.
func (b *bench) join(ctx context.Context, conns []*conn) error {
	joined := make(chan struct{}, len(conns))
	for _, c := range conns {
		c.onReply = func(*conn) { joined <- struct{}{} }
		if err := c.write(textFrame(`420["join"]`)); err != nil {
			return err
		}
	}
	for range conns {
		select {
		case <-joined:
		case <-time.After(startTimeout):
			return fmt.Errorf("%d of %d have joined", len(joined), len(conns))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// room opens connections that join the room, and a publisher beside them.
func (b *bench) room(ctx context.Context, members int, inFlight int64) (*publisher, []*conn, error) {
	conns, err := b.dialMany(ctx, members+1, dialWebSocket)
	if err != nil {
		return nil, nil, err
	}
	if err := b.join(ctx, conns[1:]); err != nil {
		return nil, nil, err
	}
	return &publisher{b: b, conn: conns[0], members: int64(members), inFlight: inFlight}, conns[1:], nil
}

// fanOut broadcasts to a room: CPU per delivery.
func (b *bench) fanOut(ctx context.Context, inFlight int64) (figures, error) {
	p, _, err := b.room(ctx, b.members, inFlight)
	if err != nil {
		return nil, err
	}
	if _, err := p.run(ctx, b.duration/4); err != nil { // warm up
		return nil, err
	}
	disorder := b.loop.disorder.Load()
	w, err := b.watch(func() (int64, error) { return p.run(ctx, b.duration) })
	if err != nil {
		return nil, err
	}
	name := fanOut1
	if inFlight > 1 {
		name = fanOut8
	}
	short, _, _ := strings.Cut(name, ", µs")
	return figures{
		name:                  w.micros(),
		short + receivedShare: 100 * float64(w.units) / float64(p.sent*p.members),
		short + disorderly:    100 * float64(b.loop.disorder.Load()-disorder) / float64(w.units),
	}, nil
}
