package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"xabar/rooms"
)

// clusterMetrics are what a node knows of its connection to the others. They are read
// together at each scrape, so that figures which belong together agree.
type clusterMetrics struct {
	redis    *rooms.Redis
	degraded *prometheus.Desc
	figures  []clusterFigure
}

type clusterFigure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(rooms.Stats) float64
}

func newClusterMetrics(redis *rooms.Redis) *clusterMetrics {
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("xabar_redis_"+name, help, nil, nil)
	}
	m := &clusterMetrics{redis: redis, degraded: describe("degraded", "1 while this node may not hear other nodes, or not be heard; /readyz gives the reasons.")}
	add := func(kind prometheus.ValueType, name, help string, read func(rooms.Stats) float64) {
		m.figures = append(m.figures, clusterFigure{describe(name, help), kind, read})
	}
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	add(gauge, "subscriptions", "Channels that are heard, or about to be.", func(s rooms.Stats) float64 { return float64(s.Subscriptions) })
	add(gauge, "queued", "Publications that wait for Redis.", func(s rooms.Stats) float64 { return float64(s.Queued) })
	add(counter, "connects_total", "Pub/sub connections made; more than one means that one was lost.", func(s rooms.Stats) float64 { return float64(s.Connects) })
	add(counter, "published_total", "Publications that Redis has taken.", func(s rooms.Stats) float64 { return float64(s.Published) })
	add(counter, "round_trips_total", "Round trips to Redis for publications.", func(s rooms.Stats) float64 { return float64(s.RoundTrips) })
	add(counter, "refused_total", "Publications refused because Redis was down or the queue full.", func(s rooms.Stats) float64 { return float64(s.Refused) })
	add(counter, "failed_total", "Publications that failed on the way.", func(s rooms.Stats) float64 { return float64(s.Failed) })
	add(counter, "events_total", "Chat events of other nodes that concern users here.", func(s rooms.Stats) float64 { return float64(s.Events) })
	add(counter, "echoes_total", "Chat events of this node that came back to it.", func(s rooms.Stats) float64 { return float64(s.Echoes) })
	add(counter, "doubles_total", "Chat events that came on a second channel, and were dropped.", func(s rooms.Stats) float64 { return float64(s.Doubles) })
	add(counter, "malformed_total", "Chat events that could not be understood.", func(s rooms.Stats) float64 { return float64(s.Malformed) })
	return m
}

// Describe implements prometheus.Collector.
func (m *clusterMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.degraded
	for _, f := range m.figures {
		ch <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (m *clusterMetrics) Collect(ch chan<- prometheus.Metric) {
	degraded := 0.0
	if len(m.redis.Health()) > 0 {
		degraded = 1
	}
	ch <- prometheus.MustNewConstMetric(m.degraded, prometheus.GaugeValue, degraded)
	stats := m.redis.Stats()
	for _, f := range m.figures {
		ch <- prometheus.MustNewConstMetric(f.desc, f.kind, f.read(stats))
	}
}
