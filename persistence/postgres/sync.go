package postgres

import (
	"bytes"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
	"xabar/persistence/internal/cursor"
)

// syncScan is how many of a user's conversations one page looks at: a page costs
// the same for a user with any number of them, and may be short or empty with a
// cursor to go on.
const syncScan = 512

// messageArrays are a conversation's messages as one row of arrays.
const messageArrays = `
  array_agg(x.id) AS ids, array_agg(x.seq) AS seqs, array_agg(coalesce(x.version, x.seq)) AS versions,
  array_agg(x.sender_id) AS senders, array_agg(coalesce(x.client_msg_id, '')) AS clients, array_agg(x.text) AS texts,
  array_agg(x.reply_to_seq) AS replies, array_agg(x.created_at) AS created, array_agg(x.edited_at) AS edited,
  array_agg(x.deleted_at) AS deleted, array_agg(x.number) AS numbers`

// syncSQL looks at the user's ($1) conversations with $2 < id <= $3, at most $4 of
// them, in the order of their ids, which nothing changes while a client pages.
// $5, $6, $7 are what the client holds of conversations in that range. Both lists
// are laid one upon the other by grouping: no join whose plan depends on their
// lengths. $8 is the page's size; one more is fetched.
//
// The first row tells how far the look went; it comes alone when nothing is new.
const syncSQL = `
WITH seen AS MATERIALIZED (
  SELECT m.conversation_id, m.joined_seq, c.last_seq, c.version
  FROM members m
  CROSS JOIN LATERAL (SELECT * FROM conversations y WHERE y.id = m.conversation_id LIMIT 1) c
  WHERE m.user_id = $1 AND m.conversation_id > $2 AND m.conversation_id <= $3
  ORDER BY m.conversation_id LIMIT $4
), news AS MATERIALIZED (
  SELECT b.conversation_id, max(b.joined_seq) AS joined_seq, max(b.held) AS held, max(b.held_version) AS held_version,
         least(max(b.last_seq) - greatest(max(b.held), max(b.joined_seq)), 50) AS more
  FROM (
    SELECT conversation_id, joined_seq, last_seq, version, NULL::int8 AS held, NULL::int8 AS held_version FROM seen
    UNION ALL
    SELECT p.id, NULL, NULL, NULL, p.seq, p.version FROM unnest($5::uuid[], $6::int8[], $7::int8[]) AS p (id, seq, version)
  ) b
  GROUP BY b.conversation_id
  HAVING max(b.last_seq) IS NOT NULL AND (max(b.held) IS NULL OR max(b.last_seq) > max(b.held)
         OR max(b.held_version) > 0 AND max(b.version) > max(b.held_version))
  ORDER BY b.conversation_id LIMIT $8
), page AS MATERIALIZED (
  SELECT * FROM (SELECT *, sum(more) OVER (ORDER BY conversation_id) - more AS before FROM news) p WHERE before < $9::int8
)
SELECT e.scanned, e.last, e.found, v.held,
       n.ids, n.seqs, n.versions, n.senders, n.clients, n.texts, n.replies, n.created, n.edited, n.deleted, n.numbers,
       h.ids, h.seqs, h.versions, h.senders, h.clients, h.texts, h.replies, h.created, h.edited, h.deleted, h.numbers, ` + viewColumns + `
FROM (SELECT (SELECT count(*) FROM seen) AS scanned,
             (SELECT conversation_id FROM seen ORDER BY conversation_id DESC LIMIT 1) AS last,
             (SELECT count(*) FROM news) AS found) e
LEFT JOIN (
  (SELECT *, $1::uuid AS user_id FROM page) v
  CROSS JOIN LATERAL (
    SELECT ` + messageArrays + ` FROM (
      SELECT * FROM messages y WHERE y.conversation_id = v.conversation_id AND y.seq > greatest(v.held, v.joined_seq)
      ORDER BY y.seq LIMIT 51) x) n
  CROSS JOIN LATERAL (
    SELECT ` + messageArrays + ` FROM (
      SELECT * FROM messages y WHERE y.conversation_id = v.conversation_id AND y.changed_at IS NOT NULL
        AND v.held_version > 0 AND y.version > v.held_version AND y.seq <= v.held AND y.seq > v.joined_seq
      ORDER BY y.version LIMIT 50) x) h ` + viewJoins + `
) ON true
ORDER BY v.conversation_id`

// syncMessages bounds the messages of a page before its last conversation: the
// longest texts make a page of some 2.5 MB, common ones 0.4.
const syncMessages = 1200

// The 50 and 51 of syncSQL.
var _ [50]struct{} = [chat.PageLimit]struct{}{}

// messageRows takes messageArrays.
type messageRows struct {
	ids, senders    []chat.ID
	seqs, versions  []int64
	numbers         []int64
	clients, texts  []string
	replies         []*int64
	created         []time.Time
	edited, deleted []*time.Time
}

func (a *messageRows) fields() []any {
	return []any{&a.ids, &a.seqs, &a.versions, &a.senders, &a.clients, &a.texts, &a.replies, &a.created, &a.edited, &a.deleted, &a.numbers}
}

func (a *messageRows) messages(conversation chat.ID) []chat.Message {
	all := make([]chat.Message, len(a.ids))
	for i := range all {
		all[i] = chat.Message{
			ID: a.ids[i], ConversationID: conversation, Seq: a.seqs[i], Version: a.versions[i], SenderID: a.senders[i],
			ClientMsgID: a.clients[i], Text: a.texts[i], ReplyToSeq: a.replies[i], CreatedAt: chat.At(a.created[i]),
			EditedAt: optional(a.edited[i]), DeletedAt: optional(a.deleted[i]), Number: a.numbers[i],
		}
	}
	return all
}

func optional(t *time.Time) *chat.Time {
	if t == nil {
		return nil
	}
	at := chat.At(*t)
	return &at
}

// held is what a client holds in a range of conversations.
type held struct {
	ids            []chat.ID
	seqs, versions []int64
	upTo           chat.ID // the range's end
	more           bool    // the client named more beyond it
}

// lastID is beyond every conversation's.
var lastID = chat.ID(bytes.Repeat([]byte{0xFF}, 16))

// heldAfter takes the next syncScan of the named positions.
func heldAfter(positions map[chat.ID]chat.SyncPosition, after chat.ID) held {
	h := held{upTo: lastID}
	for _, id := range sortedIDs(positions) {
		if bytes.Compare(id[:], after[:]) <= 0 {
			continue
		}
		if len(h.ids) == syncScan {
			h.upTo, h.more = h.ids[syncScan-1], true
			break
		}
		h.ids = append(h.ids, id)
		h.seqs = append(h.seqs, positions[id].Seq)
		h.versions = append(h.versions, positions[id].Version)
	}
	return h
}

// Sync implements chat.MessageStore.
func (s *Store) Sync(ctx context.Context, user chat.ID, q chat.SyncQuery) (chat.SyncPage, error) {
	page := chat.SyncPage{Conversations: []chat.SyncConversation{}}
	after, _, err := cursor.Decode(cursor.Sync, q.Cursor)
	if err != nil {
		return page, err
	}
	h := heldAfter(q.Positions, after.ID)
	now := s.now()
	var look syncLook
	all, err := collect(ctx, s, func(rows pgx.Rows) (*chat.SyncConversation, error) {
		return scanSync(rows, &look, now)
	}, syncSQL, user, after.ID, h.upTo, syncScan, h.ids, h.seqs, h.versions, chat.PageLimit+1, syncMessages)
	if err != nil {
		return page, err
	}
	all, _ = trim(all, chat.PageLimit)
	for _, c := range all {
		if c == nil {
			continue
		}
		if held, named := q.Positions[c.Conversation.ID]; named && len(c.Messages) == 0 && len(c.Changes) == 0 &&
			(held.Version == 0 || held.Version >= c.Conversation.Version) {
			continue // nothing but holes beyond what it holds
		}
		page.Conversations = append(page.Conversations, *c)
	}
	switch {
	case look.found > len(all):
		page.NextCursor = cursor.Encode(cursor.Sync, cursor.Cursor{ID: all[len(all)-1].Conversation.ID})
	case look.scanned == syncScan:
		page.NextCursor = cursor.Encode(cursor.Sync, cursor.Cursor{ID: *look.last})
	case h.more:
		page.NextCursor = cursor.Encode(cursor.Sync, cursor.Cursor{ID: h.upTo})
	}
	return page, nil
}

// syncLook is how far syncSQL looked and how many conversations with news it found.
type syncLook struct {
	scanned, found int
	last           *chat.ID
}

// scanSync reads a row of syncSQL; nil when it holds no conversation.
func scanSync(rows pgx.Rows, look *syncLook, now time.Time) (*chat.SyncConversation, error) {
	var heldSeq *int64
	var messages, changes messageRows
	before := append([]any{&look.scanned, &look.last, &look.found, &heldSeq}, messages.fields()...)
	view, err := scanMaybeView(rows, append(before, changes.fields()...)...)
	if err != nil || view == nil {
		return nil, err
	}
	unmuted(view, now)
	c := &chat.SyncConversation{Conversation: *view, Changes: changes.messages(view.ID)}
	c.Messages, c.HasMore = trim(messages.messages(view.ID), chat.PageLimit)
	return c, nil
}
