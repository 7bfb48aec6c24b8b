package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"xabar/chat"
	"xabar/gateway/dialect"
	"xabar/gateway/events"
	"xabar/gateway/socketio"
	"xabar/internal/ratelimit"
	"xabar/rooms"
)

// sharing is what connects a node with others: nothing on a node that runs alone.
type sharing struct {
	redis       *rooms.Redis // nil: alone
	presence    chat.Presence
	broadcaster chat.Broadcaster
	adapter     socketio.AdapterFactory
	close       func() error // of what Run does not end
}

// localRooms are rooms that no other node needs to know of.
var localRooms = []string{"presence:"}

// share connects the node's hub with those of other nodes, where --redis-url says
// so. service is asked only once events flow.
func (a *App) share(service func() *chat.Service) (*sharing, error) {
	dialects, err := dialect.Load(a.cfg.DialectDir)
	if err != nil {
		return nil, usageError{fmt.Errorf("--dialect-dir:\n%w", err)}
	}
	config := events.Config{
		Dialects:     dialects,
		Authenticate: a.authenticate,
		CheckRevoked: a.revoked.Check,
		Restored:     a.restored.tell,
		AckTimeout:   a.cfg.AckTimeout,
		Limits:       events.Limits{Events: ratelimit.Rate(a.cfg.LimitEvents), Connections: int(a.cfg.LimitConnections)},
		MaxPayload:   maxPayload,
		Metrics:      newEventMetrics(a.registry, a.limited),
		Features:     a.notify.channels.Features(),
		Logger:       a.log,
		Tracer:       a.traces.port(),
	}
	if a.cfg.RedisURL == "" {
		a.hub = events.New(config)
		alone := rooms.NewMemoryPresence(chat.SystemClock{}, a.store.SetLastSeen, a.log)
		return &sharing{presence: alone, broadcaster: a.hub, adapter: rooms.Memory(), close: alone.Close}, nil
	}
	redis, err := rooms.Open(a.cfg.RedisURL, rooms.Options{
		Sharded: a.cfg.RedisSharded, LocalRooms: localRooms, PresenceTTL: a.cfg.PresenceTTL, Logger: a.log,
		RoundTrip: newRoundTripMetrics(a.registry), Linger: true,
	})
	if err != nil {
		return nil, err
	}
	var bus *rooms.Bus
	config.Cluster = true
	config.Connected = func() bool { return len(redis.Health()) == 0 }
	config.Interest = func(ctx context.Context, users, groups []chat.ID) (func(), bool, error) {
		return bus.Hold(ctx, users, groups)
	}
	a.hub = events.New(config)
	bus = redis.Bus(rooms.BusConfig{
		Local: a.hub,
		Receive: func(event chat.Event) {
			if err := a.hub.Receive(context.Background(), event); err != nil {
				a.log.Debug("an event of another node came too late", "error", err)
			}
			if _, revoked := event.(chat.AccessRevoked); revoked {
				a.revoked.Heard()
			}
		},
		Published: func(e *chat.MessageStored) { service().FannedOut(e) },
		Tracer:    a.traces.port(),
	})
	registerClusterMetrics(a.registry, redis)
	redis.OnRecovered(a.hub.Repair)
	online := redis.Presence(chat.SystemClock{}, a.store.SetLastSeen)
	online.Watched(a.hub.Watched)
	return &sharing{
		redis: redis, presence: online,
		broadcaster: bus, adapter: redis.Adapters(), close: func() error { return nil },
	}, nil
}

// probeRedis is a check of /readyz: without Redis a node is degraded, not down.
func probeRedis(redis *rooms.Redis) func(context.Context) error {
	return func(context.Context) error {
		if reasons := redis.Health(); len(reasons) > 0 {
			return errors.New(strings.Join(reasons, "; "))
		}
		return nil
	}
}
