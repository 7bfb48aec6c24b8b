package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"xabar/chat"
	"xabar/persistence/groupcommit"
	"xabar/persistence/meter"
)

// batchMetrics observes the batches of one of the store's queues (groupcommit.Observer).
type batchMetrics struct{ wait, size, took prometheus.Observer }

// newBatchMetrics makes what the store tells of its batches to.
func newBatchMetrics(r *registry) meter.Observe {
	r.part = partDatabase
	wait := r.histogram("xabar_store_queue_wait_seconds",
		"Stage 2 of a message: time that requests waited for their batch, by the store's queue: send, position and outbox on PostgreSQL, write on SQLite.", latencies, "queue")
	size := r.histogram("xabar_store_batch_requests", "Requests that shared a transaction, by the store's queue.", sizes, "queue")
	took := r.histogram("xabar_store_batch_duration_seconds",
		"Stage 3 of a message: time that a batch's transaction took, commit included, by the store's queue. Counted once for each batch.", latencies, "queue")
	return func(queue string) groupcommit.Observer {
		return batchMetrics{wait.WithLabelValues(queue), size.WithLabelValues(queue), took.WithLabelValues(queue)}
	}
}

// Waited implements groupcommit.Observer.
func (m batchMetrics) Waited(d time.Duration) { m.wait.Observe(d.Seconds()) }

// Ran implements groupcommit.Observer.
func (m batchMetrics) Ran(requests int, took time.Duration) {
	m.size.Observe(float64(requests))
	m.took.Observe(took.Seconds())
}

// storeScrape bounds what one scrape asks of the database: a hanging one must not keep
// the other figures from whoever watches.
const storeScrape = time.Second

// registerStoreMetrics adds what is asked of the store at each scrape. The outbox and the
// waits are the same for all nodes of a database.
func registerStoreMetrics(r *registry, store chat.Store, notifies bool) {
	r.part = partDatabase
	s := &scraped{registry: r}
	up := s.gauge("xabar_store_up", "1 if the database answered when this was scraped.")
	length := s.gauge("xabar_outbox_length",
		"Messages that are stored and not yet known to be fanned out, on all nodes together; counted up to 10,000. Absent while the database does not answer.")
	age := s.gauge("xabar_outbox_oldest_age_seconds", "Age of the oldest of them; 0 without any. Above some seconds fan-out is stuck.")
	connections := s.gauge("xabar_store_connections", "Connections to the database, by pool (read, write) and state (used, idle).", "pool", "state")
	limit := s.gauge("xabar_store_connections_max", "Connections that a pool may have.", "pool")
	waits := s.counter("xabar_store_connection_waits_total", "Uses of a pool that had to wait for a connection, or for a new one.", "pool")
	waited := s.counter("xabar_store_connection_wait_seconds_total", "Time that these waited.", "pool")
	var overdue emitter
	if notifies {
		r.part = partNotifications
		overdue = s.gauge("xabar_notifications_overdue_seconds", "How long the oldest wait for a message's arrival is over without having been looked at, on all nodes together; 0 without any.")
	}
	s.register(func(ch chan<- prometheus.Metric) {
		ctx, cancel := context.WithTimeout(context.Background(), storeScrape)
		defer cancel()
		now := time.Now()
		backlog, err := store.OutboxBacklog(ctx)
		up(ch, boolean(err == nil))
		if err == nil {
			length(ch, float64(backlog.Length))
			age(ch, since(now, backlog.Oldest))
		}
		if overdue != nil {
			if at, any, err := store.NextDue(ctx); err == nil && any {
				overdue(ch, since(now, at))
			} else if err == nil {
				overdue(ch, 0)
			}
		}
		source, ok := store.(meter.Source)
		if !ok {
			return
		}
		for _, p := range source.Stats().Pools {
			connections(ch, float64(p.Used), p.Name, "used")
			connections(ch, float64(p.Idle), p.Name, "idle")
			limit(ch, float64(p.Max), p.Name)
			waits(ch, float64(p.Waits), p.Name)
			waited(ch, p.WaitTime.Seconds(), p.Name)
		}
	})
}

// since is how long ago then was, in seconds; 0 if it is to come, or never was.
func since(now, then time.Time) float64 {
	if then.IsZero() {
		return 0
	}
	return max(0, now.Sub(then).Seconds())
}
