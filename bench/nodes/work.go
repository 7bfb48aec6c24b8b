package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"xabar/internal/testkit/lightclient"
)

// workNodes are the nodes of which two hold the users of the only conversation.
const workNodes = 8

// bystanders is how many users each of the other nodes has.
const bystanders = 10

// work is what a node did while a conversation went on.
type work struct {
	events, published float64 // of chat events of others; of all that it told others
	cpu               time.Duration
}

// work measures what eight nodes do for the messages of one direct conversation.
func (b *bench) work(ctx context.Context, r *report) (err error) {
	nodes, err := b.startNodes(ctx, workNodes, b.redis.url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopNodes(nodes)) }()
	for i, n := range nodes {
		for j := range bystanders {
			client, err := n.connect(ctx, fmt.Sprint("bystander", i, "-", j), nil)
			if err != nil {
				return err
			}
			defer client.Close()
		}
	}
	c, err := startCrowd(ctx, 1, nodes[0], nodes[1])
	defer c.close()
	if err == nil {
		err = c.run(warmUp, 0)
	}
	if err != nil {
		return err
	}
	before, err := observe(ctx, nodes)
	if err != nil {
		return err
	}
	messages := c.done.Load()
	if err := c.run(b.duration, 0); err != nil {
		return err
	}
	r.workMessages = c.done.Load() - messages
	after, err := observe(ctx, nodes)
	if err != nil {
		return err
	}
	for i := range nodes {
		r.work = append(r.work, work{after[i].events - before[i].events, after[i].published - before[i].published, after[i].cpu - before[i].cpu})
	}
	r.progress("%d nodes: %d messages; events by node: %v", workNodes, r.workMessages, r.work)
	return nil
}

func observe(ctx context.Context, nodes []*node) (all []work, err error) {
	for _, n := range nodes {
		m, failed := n.metrics(ctx)
		cpu, failed2 := n.CPU()
		err = errors.Join(err, failed, failed2)
		events := m["xabar_redis_events_total"] + m["xabar_redis_echoes_total"] + m["xabar_redis_doubles_total"] + m["xabar_redis_malformed_total"]
		all = append(all, work{events, m["xabar_redis_published_total"], cpu})
	}
	return all, err
}

// memory measures what Redis keeps for a connected user.
func (b *bench) memory(ctx context.Context, r *report) (err error) {
	nodes, err := b.startNodes(ctx, 2, b.redis.url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopNodes(nodes)) }()
	before, err := b.redisAtRest(ctx)
	if err != nil {
		return err
	}
	clients := make([]*lightclient.Client, b.users)
	defer func() {
		for _, c := range clients {
			if c != nil {
				c.Close()
			}
		}
	}()
	err = each(b.users, func(i int) (err error) {
		clients[i], err = nodes[i%len(nodes)].connect(ctx, fmt.Sprint("user", i), nil)
		return err
	})
	if err != nil {
		return err
	}
	after, err := b.redisAtRest(ctx)
	if err != nil {
		return err
	}
	r.userMemory = float64(after-before) / float64(b.users)
	r.progress("%d connected users: %.0f bytes of Redis each", b.users, r.userMemory)
	return nil
}

// redisAtRest is what Redis uses when that no longer changes.
func (b *bench) redisAtRest(ctx context.Context) (bytes int, err error) {
	same := 0
	err = wait(ctx, "Redis is at rest", func() (bool, error) {
		now, err := b.redis.memory(ctx)
		if same++; now-bytes > 4096 || bytes-now > 4096 {
			same = 0
		}
		bytes = now
		return same > 25, err // half a second
	})
	return bytes, err
}
