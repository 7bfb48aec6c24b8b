package postgres

import (
	"bytes"
	"context"
	"log/slog"
	"slices"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
	"xabar/persistence/groupcommit"
)

// closing is an outbox event to remove, and who is to be looked at again because of
// it.
type closing struct {
	key chat.OutboxKey
	due []chat.Due
}

type closeItem = groupcommit.Item[closing, struct{}]

// closeSQL removes outbox events. A removal lost in a crash of the database is a
// fan-out repeated, so nobody waits for the disk: synchronous_commit is off for
// this transaction (the third argument of set_config).
const closeSQL = `
WITH setting AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
DELETE FROM outbox o
USING (SELECT i.conv, i.seq FROM setting CROSS JOIN unnest($1::uuid[], $2::int8[]) AS i (conv, seq) OFFSET 0) i
WHERE (o.conversation_id, o.seq) >= (i.conv, i.seq) AND (o.conversation_id, o.seq) <= (i.conv, i.seq)`

// closeDueSQL is closeSQL, and begins waits: users, conversations, reasons, seqs and
// ends, sorted by member. Removal and waits are lost together or not at all.
const closeDueSQL = `
WITH due AS (` + dueInsertSQL + `
  SELECT gen_random_uuid(), d.usr, d.conv, d.reason, d.seq, d.at
  FROM unnest($3::uuid[], $4::uuid[], $5::int8[], $6::int8[], $7::timestamptz[]) AS d (usr, conv, reason, seq, at)
  ON CONFLICT DO NOTHING
), setting AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
DELETE FROM outbox o
USING (SELECT i.conv, i.seq FROM setting CROSS JOIN unnest($1::uuid[], $2::int8[]) AS i (conv, seq) OFFSET 0) i
WHERE (o.conversation_id, o.seq) >= (i.conv, i.seq) AND (o.conversation_id, o.seq) <= (i.conv, i.seq)`

// CloseOutbox implements chat.OutboxStore.
func (s *Store) CloseOutbox(key chat.OutboxKey, due ...chat.Due) {
	s.closes.EnqueueLater(context.Background(), 0, closing{key, due}, func(_ struct{}, err error) {
		if err != nil {
			s.opts.Logger.Debug("an outbox event was not removed; it will be fanned out again", slog.Any("error", err))
		}
	})
}

// maxDueClosed bounds the waits that one transaction begins, beyond those of one event.
const maxDueClosed = 4096

// execCloses runs a batch: in one transaction, if not very many members are absent.
func (s *Store) execCloses(ctx context.Context, _ int, batch []*closeItem) {
	for len(batch) > 0 {
		n, due := 0, newDueSet()
		for n < len(batch) && len(due.all) < maxDueClosed {
			due.add(batch[n].Req.due...)
			n++
		}
		err := s.closeSome(ctx, batch[:n], due.sorted())
		for _, it := range batch[:n] {
			it.Err = err
		}
		batch = batch[n:]
	}
}

func (s *Store) closeSome(ctx context.Context, batch []*closeItem, due []chat.Due) error {
	keys := make([]chat.OutboxKey, len(batch))
	for i, it := range batch {
		keys[i] = it.Req.key
	}
	slices.SortFunc(keys, func(a, b chat.OutboxKey) int {
		if c := bytes.Compare(a.ConversationID[:], b.ConversationID[:]); c != 0 {
			return c
		}
		return int(min(max(a.Seq-b.Seq, -1), 1))
	})
	conversations, seqs := newArray(oidUUID, len(keys), 16), newArray(oidInt8, len(keys), 8)
	for _, key := range keys {
		conversations.id(key.ConversationID)
		seqs.int(key.Seq)
	}
	params := [][]byte{conversations.b, seqs.b}
	statement := closeStatement
	if len(due) > 0 {
		statement, params = closeDueStatement, append(params, dueParams(due)...)
	}
	return again(ctx, func() error { return runBinary(ctx, s.write, statement, params, func(row) {}) })
}

// claimSQL leases what is due, passing over what another node is leasing now. A
// lease that ends later than any can is one of before the clock was stepped back. An
// event whose message has been erased since goes.
const claimSQL = `
WITH old AS MATERIALIZED (
  SELECT o.conversation_id, o.seq FROM outbox o
  WHERE o.leased_until <= coalesce($1::timestamptz, statement_timestamp())
  ORDER BY o.leased_until LIMIT $2
  FOR UPDATE SKIP LOCKED
), ahead AS MATERIALIZED (
  SELECT o.conversation_id, o.seq FROM outbox o
  WHERE o.leased_until > coalesce($1::timestamptz, statement_timestamp()) + 2 * $3::float8 * interval '1 second'
  ORDER BY o.leased_until LIMIT $2
  FOR UPDATE SKIP LOCKED
), due AS (
  SELECT * FROM old UNION ALL SELECT * FROM ahead LIMIT $2
), kept AS MATERIALIZED (
  SELECT due.*, (SELECT 1 FROM messages x WHERE x.conversation_id = due.conversation_id AND x.seq = due.seq LIMIT 1) IS NOT NULL AS exists
  FROM due
), leased AS (
  UPDATE outbox o SET leased_until = coalesce($1::timestamptz, statement_timestamp()) + $3::float8 * interval '1 second'
  FROM kept
  WHERE (o.conversation_id, o.seq) >= (kept.conversation_id, kept.seq) AND (o.conversation_id, o.seq) <= (kept.conversation_id, kept.seq)
    AND kept.exists
  RETURNING o.conversation_id, o.seq
), orphans AS (
  DELETE FROM outbox o USING kept
  WHERE (o.conversation_id, o.seq) >= (kept.conversation_id, kept.seq) AND (o.conversation_id, o.seq) <= (kept.conversation_id, kept.seq)
    AND NOT kept.exists
)
SELECT c.kind, c.user_low, c.user_high, c.member_count, ` + messageColumns + `
FROM leased l
CROSS JOIN LATERAL (SELECT * FROM messages x WHERE x.conversation_id = l.conversation_id AND x.seq = l.seq LIMIT 1) x
CROSS JOIN LATERAL (SELECT * FROM conversations y WHERE y.id = l.conversation_id LIMIT 1) c
ORDER BY x.created_at, x.conversation_id, x.seq`

// ClaimOutbox implements chat.OutboxStore.
func (s *Store) ClaimOutbox(ctx context.Context, limit int) ([]chat.OutboxEvent, error) {
	var now any
	if s.leaseFrom() != nil {
		now = s.now()
	}
	return collect(ctx, s, func(rows pgx.Rows) (chat.OutboxEvent, error) {
		var e chat.OutboxEvent
		var low, high *chat.ID
		err := rows.Scan(append([]any{&e.Kind, &low, &high, &e.MemberCount}, messageFields(&e.Message)...)...)
		if low != nil && high != nil {
			e.MemberIDs = []chat.ID{*low, *high}
		}
		return e, err
	}, claimSQL, now, limit, chat.OutboxLease.Seconds())
}
