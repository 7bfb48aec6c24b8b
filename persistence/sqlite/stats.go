package sqlite

import (
	"context"
	"database/sql"
	"time"

	"xabar/chat"
	"xabar/persistence/meter"
)

// Stats implements meter.Source.
func (s *Store) Stats() meter.Stats {
	waiting, bound := s.batcher.Fill()
	return meter.Stats{
		Queues: []meter.Queue{
			{Name: meter.Writes, Waiting: waiting, Bound: bound},
			{Name: meter.Outbox, Waiting: s.closes.waiting(), Bound: closesBound},
		},
		// The writer's only connection is always in use.
		Pools: []meter.Pool{poolStats("read", s.readDB)},
	}
}

func poolStats(name string, db *sql.DB) meter.Pool {
	stat := db.Stats()
	return meter.Pool{
		Name: name, Used: stat.InUse, Idle: stat.Idle, Max: stat.MaxOpenConnections,
		Waits: stat.WaitCount, WaitTime: stat.WaitDuration,
	}
}

const backlogQuery = `SELECT count(*), coalesce(min(created_at), 0) FROM (SELECT created_at FROM outbox ORDER BY created_at LIMIT ?)`

// OutboxBacklog implements chat.OutboxStore.
func (s *Store) OutboxBacklog(ctx context.Context) (chat.Backlog, error) {
	var backlog chat.Backlog
	var oldest int64
	_, err := one(ctx, s.reader, backlogQuery, []any{chat.MaxBacklog}, &backlog.Length, &oldest)
	if oldest > 0 {
		backlog.Oldest = time.UnixMilli(oldest)
	}
	return backlog, translate(ctx, err)
}
