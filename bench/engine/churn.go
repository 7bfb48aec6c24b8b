//go:build linux

package main

import (
	"context"
	"errors"
	"time"
)

// cannotChurn: v2 does not complete such broadcasts.
func cannotChurn(p *peer) bool { return p.name == "zishang-v2" }

// joiners are how many sockets join and leave all the time, together as often as the flag says.
const joiners = 200

// churning broadcasts to a large room, first at rest, then while members leave and join it. All that
// the server does counts, the joining too.
func (b *bench) churning(ctx context.Context) (figures, error) {
	members := min(b.crowd, maxConnections())
	p, conns, err := b.room(ctx, members-joiners, 1)
	if err != nil {
		return nil, err
	}
	if err := b.server.collect(); err != nil {
		return nil, err
	}
	if _, err := p.run(ctx, b.duration/4); err != nil { // warm up
		return nil, err
	}
	rest, err := b.measureRoom(ctx, p)
	if err != nil {
		return nil, err
	}
	movers, err := b.dialMany(ctx, joiners, dialWebSocket)
	if err != nil {
		return nil, err
	}
	moving, stop := context.WithCancel(ctx)
	moved := make(chan error, 1)
	go func() { moved <- b.move(moving, movers) }()
	churn, err := b.measureRoom(ctx, p)
	stop()
	if err := errors.Join(err, <-moved); err != nil {
		return nil, err
	}
	f := figures{atRest: rest.micros(), inChurn: churn.micros(), "large room, members": float64(len(conns))}
	if rest.cpu > 0 {
		f[churnFactor] = churn.micros() / rest.micros()
	}
	return f, nil
}

func (b *bench) measureRoom(ctx context.Context, p *publisher) (work, error) {
	return b.watch(func() (int64, error) { return p.run(ctx, b.duration) })
}

// move makes the movers join and leave, each in its turn, b.churn joins and as many leaves a second.
func (b *bench) move(ctx context.Context, movers []*conn) error {
	frames := [][]byte{textFrame(`420["join"]`), textFrame(`420["leave"]`)}
	const turns = 100 // a second
	ticker := time.NewTicker(time.Second / turns)
	defer ticker.Stop()
	next := 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		for range 2 * b.churn / turns {
			c := movers[next%len(movers)]
			if err := c.write(frames[next/len(movers)%2]); err != nil {
				return err
			}
			next++
		}
	}
}
