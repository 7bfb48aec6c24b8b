//go:build linux

package main

import "context"

// idleConnections opens many connections and leaves them alone: CPU to connect, RSS above the empty
// process (garbage collected, here and there), CPU of a heartbeat.
func (b *bench) idleConnections(ctx context.Context, prefix string, dial func(int) (*conn, error)) (figures, error) {
	// A few first, so that what a process needs once is not counted.
	if _, err := b.dialMany(ctx, dialers, dial); err != nil {
		return nil, err
	}
	if err := b.server.collect(); err != nil {
		return nil, err
	}
	empty, err := b.server.usage()
	if err != nil {
		return nil, err
	}
	connect, err := b.watch(func() (int64, error) {
		_, err := b.dialMany(ctx, b.idle, dial)
		return int64(b.idle), err
	})
	if err != nil {
		return nil, err
	}
	f := figures{prefix + connectCPU: connect.micros()}
	// Once the first heartbeats are through all that is touched by them is there.
	if err := b.pause(ctx, shortPing); err != nil {
		return nil, err
	}
	const intervals = 2
	beats, err := b.watch(func() (int64, error) {
		return int64(intervals * b.idle), b.pause(ctx, intervals*shortPing)
	})
	if err != nil {
		return nil, err
	}
	f[prefix+idleCPU] = beats.micros()
	if err := b.server.collect(); err != nil {
		return nil, err
	}
	full, err := b.server.usage()
	f[prefix+idleRSS] = float64(full.rss-empty.rss) / 1024 / float64(b.idle)
	f[prefix+"threads"] = float64(full.threads)
	return f, err
}
