package postgres

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
)

// How many loose rows a user may have before the settler takes them up, how many
// it leaves (the newest, which will be loose again soon), and how many it settles
// in one transaction.
const (
	looseBound = 256
	looseLeft  = 128
	settleStep = 256
)

// settleSQL settles the oldest of a user's ($1) loose rows but $2, at most $3: those
// of which everything is delivered. The caller holds the user's advisory lock.
//
// A message stored at the same moment either comes first, and then the row as it is
// locked is no longer fully delivered or has the new numbers, or it waits for the
// conversation's row and makes the member's row loose again.
const settleSQL = `
WITH ranked AS MATERIALIZED (
  SELECT m.conversation_id, m.settled_unread AS counted
  FROM members m
  CROSS JOIN LATERAL (SELECT * FROM conversations y WHERE y.id = m.conversation_id LIMIT 1) c
  WHERE m.user_id = $1 AND NOT m.settled AND m.last_delivered_seq >= c.last_seq
  ORDER BY coalesce(c.last_message_at, c.created_at) DESC, c.id DESC OFFSET $2
), pick AS MATERIALIZED (
  SELECT * FROM (SELECT * FROM ranked LIMIT $3) r ORDER BY conversation_id
), conv AS (
  UPDATE conversations c SET loose_from = 0
  FROM pick
  WHERE c.id >= pick.conversation_id AND c.id <= pick.conversation_id
  RETURNING c.id, c.last_seq, coalesce(c.last_message_at, c.created_at) AS at, pick.counted
), mem AS (
  UPDATE members m
  SET settled = true, settled_at = conv.at,
      settled_unread = CASE WHEN m.muted_until > $4::timestamptz THEN 0 ELSE conv.last_seq - m.last_read_seq END,
      -- A mute that is over is not looked at any more.
      muted_until = CASE WHEN m.muted_until > $4::timestamptz THEN m.muted_until END
  FROM conv
  WHERE (m.conversation_id, m.user_id) >= (conv.id, $1) AND (m.conversation_id, m.user_id) <= (conv.id, $1)
    AND m.last_delivered_seq >= conv.last_seq
  RETURNING m.settled_unread - conv.counted AS more
), total AS (
  UPDATE users SET settled_unread = settled_unread + (SELECT coalesce(sum(more), 0) FROM mem) WHERE id = $1
)
SELECT count(*) FROM mem`

// settler keeps the number of users' loose rows bounded: lists tell it what they
// found, one goroutine does the work.
type settler struct {
	store *Store
	queue chan chat.ID // full: the next list tells again
	stop  context.CancelFunc
	ended chan struct{}

	mu     sync.Mutex // guards queued
	queued map[chat.ID]bool
}

func newSettler(s *Store) *settler {
	ctx, cancel := context.WithCancel(context.Background())
	t := &settler{store: s, queue: make(chan chat.ID, 64), stop: cancel, ended: make(chan struct{}), queued: map[chat.ID]bool{}}
	go t.run(ctx)
	return t
}

// close ends the goroutine and waits for it.
func (t *settler) close() {
	t.stop()
	<-t.ended
}

// noticed says how many loose rows a list has met.
func (t *settler) noticed(user chat.ID, loose int64) {
	if loose <= looseBound {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queued[user] {
		return
	}
	select {
	case t.queue <- user:
		t.queued[user] = true
	default:
	}
}

func (t *settler) run(ctx context.Context) {
	defer close(t.ended)
	for {
		select {
		case <-ctx.Done():
			return
		case user := <-t.queue:
			if err := t.settle(ctx, user); err != nil && ctx.Err() == nil {
				t.store.opts.Logger.Warn("conversations were not settled; the next list tries again", slog.Any("error", err))
			}
			t.mu.Lock()
			delete(t.queued, user)
			t.mu.Unlock()
		}
	}
}

// settle works until few loose rows are left, or none that can be settled.
func (t *settler) settle(ctx context.Context, user chat.ID) error {
	for {
		step, cancel := context.WithTimeout(ctx, 30*time.Second)
		n, err := t.store.settleSome(step, user, looseLeft, settleStep)
		cancel()
		if err != nil || n == 0 {
			return err
		}
	}
}

// settleSome settles at most limit of user's loose rows but the newest keep, and
// says how many.
func (s *Store) settleSome(ctx context.Context, user chat.ID, keep, limit int) (n int, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		// By itself and first: the statement must see what the last holder wrote.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockOf(user)); err != nil {
			return err
		}
		return tx.QueryRow(ctx, settleSQL, user, keep, limit, s.now()).Scan(&n)
	})
	return n, err
}

// LooseConversations counts the conversations of user that lists must look at one by
// one; for tests and benchmarks.
func (s *Store) LooseConversations(ctx context.Context, user chat.ID) (n int, err error) {
	err = s.queryRow(ctx, `SELECT count(*) FROM members WHERE user_id = $1 AND NOT settled`, []any{user}, &n)
	return n, err
}
