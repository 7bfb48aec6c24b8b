package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"xabar/gateway/events"
	"xabar/persistence/meter"
	"xabar/rooms"
)

// registerNodeMetrics adds the figures of the moment: who is here, what waits where.
func (a *App) registerNodeMetrics() {
	r := a.registry
	r.part = partProcess
	s := &scraped{registry: r}
	draining := s.gauge("xabar_draining", "1 from the beginning of the node's end: it takes no new connections.")
	r.part = partConnections
	users := s.gauge("xabar_users", "Users with a socket on this node.")
	roomCount := s.gauge("xabar_rooms", "Rooms with a socket on this node.")
	r.part = partDelivery
	pending := s.gauge("xabar_pending_acks", "Acknowledgements of messages that may still come in time.")
	gaps := s.gauge("xabar_position_gaps", "Acknowledgements that wait for a gap before them to close.")
	r.part = partQueues
	length := s.gauge("xabar_queue_length",
		"What waits in a queue, by queue: `store_…` for the database, `delivery` for fan-out, `redis` for other nodes, `notifications` for scheduling. Of a queue in several parts, the fullest part.", "queue")
	limit := s.gauge("xabar_queue_limit", "How much can wait in it. A full queue refuses what comes (`overloaded`), or holds up who fills it.", "queue")
	reads := s.gauge("xabar_reads_waiting", "Requests for history, lists and the like that wait for their turn to read the database.")
	local, hasRooms := a.io.Adapter().(interface{ Rooms() []string })
	s.register(func(ch chan<- prometheus.Metric) {
		stats := a.hub.Stats()
		draining(ch, boolean(a.hub.Draining()))
		users(ch, float64(stats.Users))
		if hasRooms {
			roomCount(ch, float64(len(local.Rooms())))
		}
		pending(ch, float64(stats.PendingAcks))
		gaps(ch, float64(stats.Gaps))
		reads(ch, float64(stats.Reads))
		for _, q := range a.queues(stats) {
			length(ch, float64(q.Waiting), q.Name)
			limit(ch, float64(q.Bound), q.Name)
		}
	})
}

// queues are all bounded queues of the node.
func (a *App) queues(stats events.Stats) []meter.Queue {
	all := []meter.Queue{{Name: "delivery", Waiting: stats.Queued, Bound: events.QueueBound}}
	if source, ok := a.store.(meter.Source); ok {
		for _, q := range source.Stats().Queues {
			q.Name = "store_" + q.Name
			all = append(all, q)
		}
	}
	if redis := a.sharing.redis; redis != nil {
		all = append(all, meter.Queue{Name: "redis", Waiting: redis.Stats().Queued, Bound: rooms.QueueBound})
	}
	if scheduler := a.notify.scheduler; scheduler != nil {
		waiting, bound := scheduler.Fill()
		all = append(all, meter.Queue{Name: "notifications", Waiting: waiting, Bound: bound})
	}
	return all
}
