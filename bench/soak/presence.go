package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"xabar/bench/soak/check"
	"xabar/chat"
)

// ghostTime is how long a connection may live whose client has vanished without a word:
// ping interval and ping timeout, the grace of presence, and a little.
const ghostTime = 60 * time.Second

// truth is on how many nodes each user has a connection.
func (s *soak) truth() check.Online {
	truth := check.Online{}
	for _, u := range s.users {
		on := map[*node]bool{}
		for _, d := range u.devices {
			if c, _ := d.connection(); c != nil {
				on[c.node] = true
			}
		}
		if len(on) > 0 {
			truth[u.id] = len(on)
		}
	}
	return truth
}

// entries reads what Redis says of who is online: hashes of users (16 bytes) with the nodes
// (8 bytes each) that hold them (rooms/presence_redis.go).
func (s *soak) entries(ctx context.Context) (online check.Online, nodes int64, err error) {
	online = check.Online{}
	redis := s.cluster.client
	for keys := redis.Scan(ctx, 0, "*:1:on:*", 1000).Iterator(); ; {
		if !keys.Next(ctx) {
			if err := keys.Err(); err != nil {
				return nil, 0, err
			}
			break
		}
		users, err := redis.HGetAll(ctx, keys.Val()).Result()
		if err != nil {
			return nil, 0, err
		}
		for user, nodes := range users {
			if len(user) != len(chat.ID{}) || len(nodes)%8 != 0 {
				return nil, 0, fmt.Errorf("%s has the entry %q: %q", keys.Val(), user, nodes)
			}
			online[uuid.UUID([]byte(user))] += len(nodes) / 8
		}
	}
	names, err := redis.Keys(ctx, "*:1:nodes").Result()
	if err != nil || len(names) != 1 {
		return nil, 0, errors.Join(err, fmt.Errorf("the list of nodes is %v", names))
	}
	nodes, err = redis.ZCard(ctx, names[0]).Result()
	return online, nodes, err
}

// checkPresence waits until entries and answers are as they must be, and adds what is
// still wrong when the time is over.
func (s *soak) checkPresence(ctx context.Context, askers int) error {
	return s.untilRight(ctx, ghostTime, func(ctx context.Context, wrong *check.Faults) error {
		truth := s.truth()
		online, count, err := s.entries(ctx)
		if err != nil {
			return err
		}
		check.ComparePresence(online, truth, wrong)
		if count != nodes {
			wrong.Add(check.Presence, "Redis knows %d nodes", count)
		}
		return s.askPresence(ctx, askers, truth, wrong)
	})
}

// askPresence has some users ask for everybody: all are in one group.
func (s *soak) askPresence(ctx context.Context, askers int, truth check.Online, wrong *check.Faults) error {
	ids := make([]chat.ID, len(s.users))
	for i, u := range s.users {
		ids[i] = u.id
	}
	for _, u := range s.users {
		if askers == 0 {
			return nil
		}
		c, ready := u.devices[0].connection()
		if !ready {
			continue
		}
		askers--
		r, err := c.ask(ctx, "presence", obj{"userIds": ids})
		if err != nil {
			return err
		}
		if len(r.Presence) != len(ids) {
			wrong.Add(check.Presence, "%s asked for %d users and was told of %d", u.name, len(ids), len(r.Presence))
		}
		check.CompareAnswer(u.id, r.Presence, truth, wrong)
	}
	return nil
}

// checkGauges compares what nodes count with what is.
func (s *soak) checkGauges(ctx context.Context, connections map[*node]int) error {
	return s.untilRight(ctx, ghostTime, func(ctx context.Context, wrong *check.Faults) error {
		for _, n := range s.cluster.nodes {
			m, err := n.metrics(ctx)
			if err != nil {
				return err
			}
			if got := int(m["xabar_connections"]); got != connections[n] {
				wrong.Add(check.Counters, "%s counts %d connections of %d", n.name, got, connections[n])
			}
			if opened, closed := int(m["xabar_connections_opened_total"]), int(m["xabar_connections_closed_total"]); opened-closed != connections[n] {
				wrong.Add(check.Counters, "%s has opened %d connections and closed %d, and %d are open", n.name, opened, closed, connections[n])
			}
		}
		return nil
	})
}

// emptyGauges are 0, or what they were, on a node without clients.
var emptyGauges = []string{
	"xabar_rooms", "xabar_users", "xabar_sockets", "xabar_pending_acks", "xabar_position_gaps",
	"xabar_redis_subscriptions", "xabar_queue_length", "xabar_reads_waiting",
}

// neverCounted are counters that stay at 0 whatever happens.
var neverCounted = []string{
	"xabar_panics_total", "xabar_malformed_packets_total", "xabar_redis_malformed_total", "xabar_redis_unknown_total",
}

// checkEmpty checks nodes without clients.
func (s *soak) checkEmpty(ctx context.Context) error {
	for i, n := range s.cluster.nodes {
		var m metrics
		err := within(ctx, ghostTime, func(ctx context.Context) (err error) {
			if m, err = n.metrics(ctx); err != nil {
				return err
			}
			for _, name := range emptyGauges {
				if m[name] != s.base[i][name] {
					return fmt.Errorf("%s says %s %v; before there was a client it said %v", n.name, name, m[name], s.base[i][name])
				}
			}
			return nil
		})
		if err != nil {
			s.faults.Add(check.Counters, "%v", err)
		}
		for _, name := range neverCounted {
			if m[name] != 0 {
				s.faults.Add(check.Counters, "%s says %s %v", n.name, name, m[name])
			}
		}
		for series, count := range m {
			if strings.HasPrefix(series, "xabar_events_total{") && strings.Contains(series, `"internal"`) && count > 0 {
				s.faults.Add(check.Counters, "%s says %s %v", n.name, series, count)
			}
		}
		for _, name := range slices.Concat(neverCounted, emptyGauges) {
			if _, known := m[name]; !known {
				s.faults.Add(check.Counters, "%s has no %s", n.name, name)
			}
		}
	}
	return nil
}
