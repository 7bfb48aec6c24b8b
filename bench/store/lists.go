package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
	"xabar/persistence/postgres"
)

// Sizes of what is read: one user's conversations and their messages.
const (
	listConversations = 10_000
	listMessages      = 1_000_000
)

// reading is one of the queries that a client waits for.
type reading struct {
	name string
	run  func(ctx context.Context, s *postgres.Store) error
}

// lists measures what PostgreSQL spends on a page for a user of many
// conversations.
func (b *bench) lists(ctx context.Context) (series []read, err error) {
	url, err := b.server.Database(ctx, "lists")
	if err != nil {
		return nil, err
	}
	if err := fillLists(ctx, url); err != nil {
		return nil, err
	}
	store, err := postgres.Open(ctx, url, postgres.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	first, err := b.timeReading(ctx, store, reading{"first list ever", func(ctx context.Context, s *postgres.Store) error {
		_, err := s.Conversations(ctx, userID(0), chat.PageRequest{})
		return err
	}}, 1)
	if err != nil {
		return nil, err
	}
	later, err := laterCursors(ctx, store)
	if err != nil {
		return nil, err
	}
	series = append(series, first)
	if err := settled(ctx, store); err != nil {
		return nil, err
	}
	for _, r := range readings(later) {
		if _, err := b.timeReading(ctx, store, r, 20); err != nil { // warm
			return nil, err
		}
		measured, err := b.timeReading(ctx, store, r, 300)
		if err != nil {
			return nil, err
		}
		series = append(series, measured)
	}
	return series, nil
}

// cursors of pages in the middle.
type cursors struct{ list, sync string }

func laterCursors(ctx context.Context, s *postgres.Store) (c cursors, err error) {
	for range 100 {
		page, err := s.Conversations(ctx, userID(0), chat.PageRequest{Cursor: c.list})
		if err != nil {
			return c, err
		}
		c.list = page.NextCursor
	}
	for range 10 {
		page, err := s.Sync(ctx, userID(0), chat.SyncQuery{Cursor: c.sync, Positions: allHeld(0)})
		if err != nil {
			return c, err
		}
		c.sync = page.NextCursor
	}
	return c, nil
}

// allHeld are the positions of a client that lacks the last missing messages of
// each conversation.
func allHeld(missing int64) map[chat.ID]chat.SyncPosition {
	held := make(map[chat.ID]chat.SyncPosition, listConversations)
	for n := range listConversations {
		held[conversationID(n)] = chat.SyncPosition{Seq: listMessages/listConversations - missing}
	}
	return held
}

func readings(later cursors) []reading {
	list := func(cursor string) func(context.Context, *postgres.Store) error {
		return func(ctx context.Context, s *postgres.Store) error {
			page, err := s.Conversations(ctx, userID(0), chat.PageRequest{Cursor: cursor})
			if err == nil && len(page.Conversations) != chat.PageLimit {
				return fmt.Errorf("a page of %d conversations", len(page.Conversations))
			}
			return err
		}
	}
	sync := func(missing int64, cursor string) func(context.Context, *postgres.Store) error {
		held := allHeld(missing)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Sync(ctx, userID(0), chat.SyncQuery{Positions: held, Cursor: cursor})
			return err
		}
	}
	return []reading{
		{"conversations, first page", list("")},
		{"conversations, page 101", list(later.list)},
		{"unread total", func(ctx context.Context, s *postgres.Store) error {
			_, err := s.UnreadTotal(ctx, userID(0))
			return err
		}},
		{"session", func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Session(ctx, userID(0))
			return err
		}},
		{"history, newest", func(ctx context.Context, s *postgres.Store) error {
			_, err := s.History(ctx, userID(0), chat.HistoryQuery{ConversationID: conversationID(rand.IntN(listConversations))})
			return err
		}},
		{"history, before the middle", func(ctx context.Context, s *postgres.Store) error {
			middle := int64(listMessages / listConversations * 2 / 3)
			_, err := s.History(ctx, userID(0), chat.HistoryQuery{ConversationID: conversationID(rand.IntN(listConversations)), BeforeSeq: &middle})
			return err
		}},
		{"sync, all held, first page", sync(0, "")},
		{"sync, all held, page 11", sync(0, later.sync)},
		{"sync, 1 missing in each, first page", sync(1, "")},
		{"sync, 50 missing in each, first page", sync(50, "")},
	}
}

// settled waits until the store has settled what the user's lists met.
func settled(ctx context.Context, s *postgres.Store) error {
	for {
		loose, err := s.LooseConversations(ctx, userID(0))
		if err != nil || loose <= 256 {
			return err
		}
		if _, err := s.UnreadTotal(ctx, userID(0)); err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// read is PostgreSQL's CPU for one query.
type read struct {
	name string
	cpu  time.Duration
}

func (b *bench) timeReading(ctx context.Context, s *postgres.Store, r reading, times int) (read, error) {
	before, err := b.cpu()
	if err != nil {
		return read{}, err
	}
	for range times {
		if err := r.run(ctx, s); err != nil {
			return read{}, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	after, err := b.cpu()
	return read{r.name, (after - before) / time.Duration(times)}, err
}

// fillLists gives user 0 all conversations, a minute apart, everything delivered and
// every second one not read to its end.
func fillLists(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the bench has what it came for
	each := listMessages / listConversations
	me, conversation := "'"+userID(0).String()+"'::uuid", uuidSQL(7, fmt.Sprintf("(%d + n)", firstNumber))
	peer := uuidSQL(4, fmt.Sprintf("(%d + n + 1)", firstNumber))
	conversations := fmt.Sprintf("generate_series(0::bigint, %d) n", listConversations-1)
	ago := fmt.Sprintf("now() - (%d - n) * interval '1 minute'", listConversations)
	for _, sql := range []string{
		`INSERT INTO users (id, name, created_at) SELECT ` + me + `, 'me', now() UNION ALL SELECT ` + peer + `, 'user ' || n, now() FROM ` + conversations,
		fmt.Sprintf(`INSERT INTO conversations (id, kind, user_low, user_high, member_count, last_seq, version, created_at, last_message_at)
			SELECT %s, 'direct', %s, %s, 2, %d, %d, now() - interval '1 year', date_trunc('milliseconds', %s) FROM %s`,
			conversation, me, peer, each, each, ago, conversations),
		fmt.Sprintf(`INSERT INTO members (conversation_id, user_id, peer_id, role, joined_at, last_delivered_seq, last_read_seq)
			SELECT %s, CASE k WHEN 0 THEN %s ELSE %s END, CASE k WHEN 1 THEN %s ELSE %s END, 'member', now(), %d, %d - n %% 2
			FROM %s, generate_series(0, 1) k`, conversation, me, peer, me, peer, each, each, conversations),
		fmt.Sprintf(`INSERT INTO messages (id, conversation_id, seq, sender_id, client_msg_id, text, created_at)
			SELECT gen_random_uuid(), %s, q, CASE q %% 2 WHEN 0 THEN %s ELSE %s END, n || '-' || q, '%s', %s - (%d - q) * interval '1 second'
			FROM generate_series(1, %d) q, %s`, conversation, me, peer, text, ago, each, each, conversations),
		`VACUUM ANALYZE`,
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}
