package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"xabar/rooms"
)

// newRoundTripMetrics makes what hears of round trips to Redis.
func newRoundTripMetrics(r *registry) func(time.Duration) {
	r.part = partCluster
	took := r.histogram("xabar_redis_round_trip_seconds", "Time that round trips with publications took; one carries what came meanwhile.", latencies).WithLabelValues()
	return func(d time.Duration) { took.Observe(d.Seconds()) }
}

// registerClusterMetrics adds what a node knows of its connection to the others.
func registerClusterMetrics(r *registry, redis *rooms.Redis) {
	r.part = partCluster
	s := &scraped{registry: r}
	degraded := s.gauge("xabar_redis_degraded", "1 while this node may not hear other nodes, or not be heard; /readyz gives the reasons.")
	subscriptions := s.gauge("xabar_redis_subscriptions", "Channels that are heard, or about to be.")
	figures := []struct {
		emit emitter
		read func(rooms.Stats) int64
	}{
		{s.counter("xabar_redis_connects_total", "Pub/sub connections made; more than one means that one was lost."), func(s rooms.Stats) int64 { return s.Connects }},
		{s.counter("xabar_redis_published_total", "Publications that Redis has taken."), func(s rooms.Stats) int64 { return s.Published }},
		{s.counter("xabar_redis_refused_total", "Publications refused because Redis was down or the queue full."), func(s rooms.Stats) int64 { return s.Refused }},
		{s.counter("xabar_redis_failed_total", "Publications that failed on the way."), func(s rooms.Stats) int64 { return s.Failed }},
		{s.counter("xabar_redis_events_total", "Chat events of other nodes that concern users here."), func(s rooms.Stats) int64 { return s.Events }},
		{s.counter("xabar_redis_echoes_total", "Chat events of this node that came back to it."), func(s rooms.Stats) int64 { return s.Echoes }},
		{s.counter("xabar_redis_doubles_total", "Chat events that came on a second channel, and were dropped."), func(s rooms.Stats) int64 { return s.Doubles }},
		{s.counter("xabar_redis_malformed_total", "Chat events that could not be understood."), func(s rooms.Stats) int64 { return s.Malformed }},
		{s.counter("xabar_redis_unknown_total", "Chat events of nodes of a newer version that this one can't read; it reads the database instead."), func(s rooms.Stats) int64 { return s.Unknown }},
	}
	s.register(func(ch chan<- prometheus.Metric) {
		stats := redis.Stats()
		degraded(ch, boolean(len(redis.Health()) > 0))
		subscriptions(ch, float64(stats.Subscriptions))
		for _, f := range figures {
			f.emit(ch, float64(f.read(stats)))
		}
	})
}
