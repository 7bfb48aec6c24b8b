package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"xabar/chat"
	"xabar/persistence/meter"
)

// Stats implements meter.Source.
func (s *Store) Stats() meter.Stats {
	queue := func(name string, fill func() (waiting, bound int)) meter.Queue {
		waiting, bound := fill()
		return meter.Queue{Name: name, Waiting: waiting, Bound: bound}
	}
	return meter.Stats{
		Queues: []meter.Queue{
			queue(meter.Sends, s.sends.Fill), queue(meter.Positions, s.moves.Fill), queue(meter.Outbox, s.closes.Fill),
			queue(meter.Reads, s.sharedFill),
		},
		Pools: []meter.Pool{poolStats("read", s.read), poolStats("write", s.write)},
	}
}

func poolStats(name string, pool *pgxpool.Pool) meter.Pool {
	stat := pool.Stat()
	return meter.Pool{
		Name: name, Used: int(stat.AcquiredConns()), Idle: int(stat.IdleConns()), Max: int(stat.MaxConns()),
		Waits: stat.EmptyAcquireCount(), WaitTime: stat.EmptyAcquireWaitTime(),
	}
}

const backlogSQL = `
SELECT count(*), min(created_at)
FROM (SELECT o.created_at FROM outbox o ORDER BY o.leased_until LIMIT $1) o`

// OutboxBacklog implements chat.OutboxStore.
func (s *Store) OutboxBacklog(ctx context.Context) (chat.Backlog, error) {
	var backlog chat.Backlog
	var oldest *time.Time
	err := s.queryRow(ctx, backlogSQL, []any{chat.MaxBacklog}, &backlog.Length, &oldest)
	if oldest != nil {
		backlog.Oldest = *oldest
	}
	return backlog, err
}
