//go:build linux

package main

import (
	"context"
	"strings"
	"sync/atomic"
	"time"
)

// echo emits events that are acknowledged, one at a time by each client: CPU per event.
func (b *bench) echo(ctx context.Context) (figures, error) {
	conns, err := b.dialMany(ctx, b.echoers, dialWebSocket)
	if err != nil {
		return nil, err
	}
	var (
		answers atomic.Int64
		over    atomic.Bool
		frame   = textFrame(`427["echo","` + strings.Repeat("x", textSize) + `"]`)
	)
	for _, c := range conns {
		c.onReply = func(c *conn) {
			answers.Add(1)
			if !over.Load() {
				_ = c.write(frame) // a connection that fails ends the loop at its next read
			}
		}
		if err := c.write(frame); err != nil {
			return nil, err
		}
	}
	if err := b.pause(ctx, b.duration/4); err != nil { // warm up
		return nil, err
	}
	w, err := b.watch(func() (int64, error) {
		from := answers.Load()
		err := b.pause(ctx, b.duration)
		return answers.Load() - from, err
	})
	over.Store(true)
	return figures{echoCPU: w.micros()}, err
}

// pause lets the load go on for d.
func (b *bench) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-b.loop.done:
		return b.loop.failed()
	case <-time.After(d):
		return nil
	}
}
