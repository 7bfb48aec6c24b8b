package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"time"

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

// syncSQL looks, for each of the users $1, at its conversations with $2 < id <= $3, at most $4 of
// them, in the order of their ids, which nothing changes while a client pages. $5, $6, $7 are what
// the clients hold of conversations in that range, those of each user from $10 to $11. Both lists
// are laid one upon the other by grouping: no join whose plan depends on their lengths. $8 is a
// page's size; one more is fetched.
//
// A user's first row tells how far the look went; it comes alone when nothing is new.
var syncSQL = `
SELECT i.ord, s.*
FROM unnest($1::uuid[], $10::int8[], $11::int8[]) WITH ORDINALITY AS i (usr, lo, hi, ord)
CROSS JOIN LATERAL (` + strings.NewReplacer(
	"$1", "i.usr", "$5::uuid[]", "($5::uuid[])[i.lo:i.hi]", "$6::int8[]", "($6::int8[])[i.lo:i.hi]", "$7::int8[]", "($7::int8[])[i.lo:i.hi]",
).Replace(syncOneSQL) + `) s`

// syncOneSQL is syncSQL of one user.
const syncOneSQL = `
WITH seen AS MATERIALIZED (
  SELECT m.conversation_id, m.joined_seq, c.last_seq, c.version
  FROM members m
  CROSS JOIN LATERAL (SELECT * FROM conversations y WHERE y.id = m.conversation_id LIMIT 1) c
  WHERE m.user_id = $1 AND m.conversation_id > $2::uuid AND m.conversation_id <= $3::uuid
  ORDER BY m.conversation_id LIMIT $4::int8
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
  ORDER BY b.conversation_id LIMIT $8::int8
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

// messages reads messageArrays, the first of them at i.
func (r row) messages(i int, conversation chat.ID) []chat.Message {
	r = r[i : i+messageArraysWidth]
	all := make([]chat.Message, r.elements(0))
	each := func(column int, set func(m *chat.Message, v row)) {
		r.each(column, func(n int, v row) { set(&all[n], v) })
	}
	each(0, func(m *chat.Message, v row) { m.ID, m.ConversationID = v.id(0), conversation })
	each(1, func(m *chat.Message, v row) { m.Seq = v.int(0) })
	each(2, func(m *chat.Message, v row) { m.Version = v.int(0) })
	each(3, func(m *chat.Message, v row) { m.SenderID = v.id(0) })
	each(4, func(m *chat.Message, v row) { m.ClientMsgID = string(v[0]) })
	each(5, func(m *chat.Message, v row) { m.Text = string(v[0]) })
	each(6, func(m *chat.Message, v row) { m.ReplyToSeq = v.optional(0) })
	each(7, func(m *chat.Message, v row) { m.CreatedAt = v.time(0) })
	each(8, func(m *chat.Message, v row) { m.EditedAt = v.optionalTime(0) })
	each(9, func(m *chat.Message, v row) { m.DeletedAt = v.optionalTime(0) })
	each(10, func(m *chat.Message, v row) { m.Number = v.int(0) })
	return all
}

// messageArraysWidth is how many messageArrays there are.
const messageArraysWidth = 11

// elements is the length of the one-dimensional array in a column; none of NULL.
func (r row) elements(i int) int {
	if len(r[i]) < arrayHeader {
		return 0
	}
	return int(binary.BigEndian.Uint32(r[i][arrayHeader-8:]))
}

// each gives the elements of the array in a column one after the other, as rows of one column.
func (r row) each(i int, read func(n int, v row)) {
	var v [1][]byte
	for n, b := 0, r[i][min(arrayHeader, len(r[i])):]; n < r.elements(i); n++ {
		size := int32(binary.BigEndian.Uint32(b))
		b, v[0] = b[4:], nil
		if size >= 0 {
			v[0], b = b[:size:size], b[size:]
		}
		read(n, v[:])
	}
}

// held is what a client holds in a range of conversations.
type held struct {
	user           chat.ID
	ids            []chat.ID
	seqs, versions []int64
	upTo           chat.ID // the range's end
	more           bool    // the client named more beyond it
}

// lastID is beyond every conversation's.
var lastID = chat.ID(bytes.Repeat([]byte{0xFF}, 16))

// heldAfter takes the next syncScan of the named positions.
func heldAfter(user chat.ID, positions map[chat.ID]chat.SyncPosition, after chat.ID) held {
	h := held{user: user, upTo: lastID}
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

// A sync from the beginning that names few positions is shared with others', as long as it
// brings little: what it brings is held in memory until all is read. Most bring nothing, or what
// was written in a minute's absence.
const (
	lightSync         = 8
	lightSyncMessages = 64
)

// Sync implements chat.MessageStore.
func (s *Store) Sync(ctx context.Context, user chat.ID, q chat.SyncQuery) (chat.SyncPage, error) {
	after, _, err := cursor.Decode(cursor.Sync, q.Cursor)
	if err != nil {
		return chat.SyncPage{Conversations: []chat.SyncConversation{}}, err
	}
	h := heldAfter(user, q.Positions, after.ID)
	look := syncLook{scanned: -1} // nobody has looked
	if q.Cursor == "" && len(q.Positions) <= shareTogether {
		look, err = s.syncs.Do(ctx, h)
	}
	if err == nil && look.cut(lightSync) {
		look, err = s.syncAlone(ctx, h, after.ID)
	}
	if err != nil {
		return chat.SyncPage{Conversations: []chat.SyncConversation{}}, err
	}
	return look.page(&q, &h), nil
}

// syncLook is what syncSQL found: how far it looked, how many conversations with news it met, and
// those that it brings.
type syncLook struct {
	scanned, found int
	last           *chat.ID
	brought        []chat.SyncConversation
}

// cut says that this is not the page, of size, that a look by itself would have brought.
func (l *syncLook) cut(size int) bool {
	return l.scanned < 0 || l.found > size || len(l.brought) < l.found
}

// page makes the answer.
func (l *syncLook) page(q *chat.SyncQuery, h *held) chat.SyncPage {
	page := chat.SyncPage{Conversations: make([]chat.SyncConversation, 0, len(l.brought))}
	all, _ := trim(l.brought, chat.PageLimit)
	for _, c := range all {
		if held, named := q.Positions[c.Conversation.ID]; named && len(c.Messages) == 0 && len(c.Changes) == 0 &&
			(held.Version == 0 || held.Version >= c.Conversation.Version) {
			continue // nothing but holes beyond what it holds
		}
		page.Conversations = append(page.Conversations, c)
	}
	switch {
	case l.found > len(all):
		page.NextCursor = cursor.Encode(cursor.Sync, cursor.Cursor{ID: all[len(all)-1].Conversation.ID})
	case l.scanned == syncScan:
		page.NextCursor = cursor.Encode(cursor.Sync, cursor.Cursor{ID: *l.last})
	case h.more:
		page.NextCursor = cursor.Encode(cursor.Sync, cursor.Cursor{ID: h.upTo})
	}
	return page
}

// syncAlone reads a whole page.
func (s *Store) syncAlone(ctx context.Context, h held, after chat.ID) (syncLook, error) {
	var look [1]syncLook
	err := s.runSync(ctx, []held{h}, look[:], after, h.upTo, chat.PageLimit, syncMessages)
	return look[0], err
}

// readSyncs is the readshare.Exec of syncs: light ones from the beginning.
func (s *Store) readSyncs(ctx context.Context, all []held, looks []syncLook) error {
	return s.runSync(ctx, all, looks, chat.ID{}, lastID, lightSync, lightSyncMessages)
}

func (s *Store) runSync(ctx context.Context, all []held, looks []syncLook, after, upTo chat.ID, size, messages int64) error {
	n := 0
	for i := range all {
		n += len(all[i].ids)
	}
	users, lo, hi := newArray(oidUUID, len(all), 16), newArray(oidInt8, len(all), 8), newArray(oidInt8, len(all), 8)
	ids, seqs, versions := newArray(oidUUID, n, 16), newArray(oidInt8, n, 8), newArray(oidInt8, n, 8)
	n = 0
	for i := range all {
		h := &all[i]
		users.id(h.user)
		lo.int(int64(n + 1))
		n += len(h.ids)
		hi.int(int64(n))
		for k, id := range h.ids {
			ids.id(id)
			seqs.int(h.seqs[k])
			versions.int(h.versions[k])
		}
	}
	now := s.now()
	return s.readBinary(ctx, "xabar_sync", syncSQL, [][]byte{
		users.b, after[:], upTo[:], int8Of(syncScan), ids.b, seqs.b, versions.b, int8Of(size + 1), int8Of(messages), lo.b, hi.b,
	}, func() { clear(looks) }, func(r row) { looks[r.int(0)-1].add(r[1:], now) })
}

// add takes a row of syncSQL behind the user's place.
func (l *syncLook) add(r row, now time.Time) {
	l.scanned, l.last, l.found = int(r.int(0)), r.optionalID(1), int(r.int(2))
	const messages, changes, view = 4, 4 + messageArraysWidth, 4 + 2*messageArraysWidth
	conversation := r.view(view)
	if conversation == nil {
		return
	}
	unmuted(conversation, now)
	c := chat.SyncConversation{Conversation: *conversation, Changes: r.messages(changes, conversation.ID)}
	c.Messages, c.HasMore = trim(r.messages(messages, conversation.ID), chat.PageLimit)
	l.brought = append(l.brought, c)
}

func int8Of(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
