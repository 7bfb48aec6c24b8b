package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"xabar/chat"
	"xabar/internal/testkit/pgtest"
)

// TestRacedOnTwoNodes: both nodes have looked for the repeat, in vain, before either
// stores the message.
func TestRacedOnTwoNodes(t *testing.T) {
	t.Parallel()
	// By the statement for one message the loser finds that the conversation has gone on, and takes no
	// number; a reply goes by the one for many.
	t.Run("one", func(t *testing.T) { testRaced(t, nil, 3) })
	t.Run("many", func(t *testing.T) {
		first := int64(1)
		testRaced(t, &first, 4)
	})
}

func testRaced(t *testing.T, reply *int64, next int64) {
	t.Parallel()
	url := pgtest.Database(t)
	nodes := []*Store{openURL(t, url, Options{}), openURL(t, url, Options{})}
	u := users(t, nodes[0], 2)
	c := direct(t, nodes[0], u[0], u[1])
	mustSend(t, nodes[0], u[0], c, "first")
	db := admin(t, url)
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT 1 FROM conversations WHERE id = $1 FOR UPDATE`, c); err != nil {
		t.Fatal(err)
	}
	results := make([]chat.SendResult, 2)
	var wg sync.WaitGroup
	for i, node := range nodes {
		wg.Go(func() {
			var err error
			results[i], err = send(t.Context(), node, chat.SendMessage{SenderID: u[0], ConversationID: c, ClientMsgID: "X1", Text: fmt.Sprint("from node ", i), ReplyToSeq: reply})
			if err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "both wait for the lock", func() bool {
		return number(t, db, `SELECT count(*) FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) OR NOT granted AND locktype = 'transactionid'`) >= 2
	})
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if a, b := results[0], results[1]; a.Message.ID != b.Message.ID || a.Message.Text != b.Message.Text || a.Message.Seq != b.Message.Seq || a.Duplicate == b.Duplicate {
		t.Errorf("two answers: %+v and %+v", results[0], results[1])
	}
	if n := number(t, db, `SELECT count(*) FROM messages`); n != 2 {
		t.Errorf("%d rows", n)
	}
	if n := number(t, db, `SELECT count(*) FROM outbox`); n != 2 {
		t.Errorf("%d outbox events", n)
	}
	if res := mustSend(t, nodes[0], u[0], c, "next"); res.Message.Seq != next || res.Sender.NewRead != next {
		t.Errorf("after the race: %+v", res)
	}
}

// TestRacedInTwoConversations: an id that is used in two conversations at the same moment is
// taken by one; the number that the other took stays a hole.
func TestRacedInTwoConversations(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	nodes := []*Store{openURL(t, url, Options{}), openURL(t, url, Options{})}
	u := users(t, nodes[0], 3)
	c := []chat.ID{direct(t, nodes[0], u[0], u[1]), direct(t, nodes[0], u[0], u[2])}
	db := admin(t, url)
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT 1 FROM members WHERE user_id = $1 FOR UPDATE`, u[0]); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, node := range nodes {
		wg.Go(func() {
			_, errs[i] = send(t.Context(), node, chat.SendMessage{SenderID: u[0], ConversationID: c[i], ClientMsgID: "X1", Text: "one"})
		})
	}
	eventually(t, "both wait for a lock", func() bool {
		return number(t, db, `SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype IN ('transactionid', 'tuple')`) >= 2
	})
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	lost := 0
	if errs[0] == nil {
		lost = 1
	}
	if errs[1-lost] != nil || chat.CodeOf(errs[lost]) != chat.CodeConflict {
		t.Fatalf("errors: %v and %v", errs[0], errs[1])
	}
	if n := number(t, db, `SELECT count(*) FROM messages`); n != 1 {
		t.Errorf("%d rows", n)
	}
	if n := number(t, db, `SELECT count(*) FROM outbox`); n != 1 {
		t.Errorf("%d outbox events", n)
	}
	if res := mustSend(t, nodes[0], u[0], c[lost], "next"); res.Message.Seq != 2 || res.Sender.NewRead != 2 {
		t.Errorf("after the race: %+v", res)
	}
}

// TestOneBadItem: what the database refuses fails alone in its batch.
func TestOneBadItem(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	u := users(t, s, 2)
	c := direct(t, s, u[0], u[1])
	texts := []string{"good", "a\x00b", "good", strings.Repeat("x", 2001), "", "\xff", "good"}
	want := []chat.Code{"", chat.CodeInvalidText, "", chat.CodeTextTooLong, chat.CodeTextEmpty, chat.CodeInvalidText, ""}
	batch := make([]*sendItem, len(texts))
	for i, text := range texts {
		batch[i] = &sendItem{Req: chat.SendMessage{SenderID: u[0], ConversationID: c, ClientMsgID: fmt.Sprint(i), Text: text}}
	}
	s.execSends(t.Context(), 0, batch)
	last := int64(0)
	for i, it := range batch {
		wantCode(t, it.Err, want[i])
		if it.Err == nil {
			if it.Res.Message.Seq <= last {
				t.Errorf("item %d has seq %d after %d", i, it.Res.Message.Seq, last)
			}
			last = it.Res.Message.Seq
		}
	}
}

// TestRepeatsInOneBatch: the batch is the same as its items one by one.
func TestRepeatsInOneBatch(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	u := users(t, s, 3)
	c1, c2 := direct(t, s, u[0], u[1]), direct(t, s, u[0], u[2])
	none := int64(99)
	item := func(c chat.ID, id string, reply *int64) *sendItem {
		return &sendItem{Req: chat.SendMessage{SenderID: u[0], ConversationID: c, ClientMsgID: id, Text: id, ReplyToSeq: reply}}
	}
	batch := []*sendItem{item(c1, "a", nil), item(c1, "a", nil), item(c1, "b", &none), item(c1, "b", nil), item(c2, "a", nil), item(c1, "c", nil)}
	s.execSends(t.Context(), 0, batch)
	for i, want := range []struct {
		code      chat.Code
		seq       int64
		duplicate bool
	}{{"", 1, false}, {"", 1, true}, {chat.CodeInvalidArgument, 0, false}, {"", 2, false}, {chat.CodeConflict, 0, false}, {"", 3, false}} {
		wantCode(t, batch[i].Err, want.code)
		if got := batch[i].Res; got.Message.Seq != want.seq || got.Duplicate != want.duplicate {
			t.Errorf("item %d: %+v, want %+v", i, got, want)
		}
	}
}

// crowd is people and their conversations, used from several nodes at once.
type crowd struct {
	t             *testing.T
	nodes         []*Store
	people        []chat.ID
	conversations []chat.ID
	members       map[chat.ID][]chat.ID
}

func newCrowd(t *testing.T, url string, nodes int) *crowd {
	c := &crowd{t: t, members: map[chat.ID][]chat.ID{}}
	for range nodes {
		c.nodes = append(c.nodes, openURL(t, url, Options{ReadConns: 4}))
	}
	c.people = users(t, c.nodes[0], 8)
	for i, a := range c.people {
		for _, b := range c.people[:i] {
			id := direct(t, c.nodes[0], a, b)
			c.conversations, c.members[id] = append(c.conversations, id), []chat.ID{a, b}
		}
	}
	for range 3 {
		g, err := c.nodes[0].CreateGroup(t.Context(), c.people[0], "group", c.people)
		if err != nil {
			t.Fatal(err)
		}
		c.conversations, c.members[g.ID] = append(c.conversations, g.ID), c.people
	}
	return c
}

// act does something that users and nodes do.
func (c *crowd) act(ctx context.Context, r *rand.Rand) error {
	node := c.nodes[r.IntN(len(c.nodes))]
	conversation := c.conversations[r.IntN(len(c.conversations))]
	members := c.members[conversation]
	who := members[r.IntN(len(members))]
	switch r.IntN(10) {
	case 0, 1, 2, 3:
		_, err := send(ctx, node, chat.SendMessage{SenderID: who, ConversationID: conversation, ClientMsgID: chat.NewID().String(), Text: "x"})
		return err
	case 4, 5, 6:
		_, err := move(ctx, node, chat.PositionMove{Kind: chat.Delivered, UserID: who, ConversationID: conversation, UpTo: r.Int64N(200) + 1})
		return err
	case 7:
		_, err := move(ctx, node, chat.PositionMove{Kind: chat.Read, UserID: who, ConversationID: conversation, UpTo: r.Int64N(200) + 1})
		return err
	case 8:
		_, err := node.settleSome(ctx, who, r.IntN(4), 1+r.IntN(20))
		return err
	default:
		if len(members) == 2 {
			return node.Ping(ctx)
		}
		// Out of a group and in again; somebody else's sends meet not_found meanwhile.
		if err := node.RemoveMember(ctx, c.people[0], conversation, c.people[7]); err != nil {
			return err
		}
		_, err := node.AddMembers(ctx, c.people[0], conversation, []chat.ID{c.people[7]})
		return err
	}
}

// TestLocks: nodes that store, move, settle and change members of the same
// conversations at once never wait for each other in a circle, and what lists say
// from settled rows is what counting says.
func TestLocks(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	c := newCrowd(t, url, 2)
	var wg sync.WaitGroup
	for worker := range 12 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(worker)))
			for range 150 {
				if err := c.act(t.Context(), r); err != nil && chat.CodeOf(err) != chat.CodeNotFound {
					t.Errorf("worker %d: %v", worker, err)
					return
				}
			}
		})
	}
	wg.Wait()
	db := admin(t, url)
	if n := number(t, db, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
	if n := number(t, db, `SELECT count(*) FROM members WHERE settled`); n == 0 {
		t.Error("nothing is settled at the end: the test shows little")
	}
	c.check(db)
}

// check compares lists and totals with what the tables say without settling.
func (c *crowd) check(db *pgxpool.Pool) {
	c.t.Helper()
	for _, who := range c.people {
		want := number(c.t, db, `SELECT coalesce(sum(c.last_seq - m.last_read_seq), 0) FROM members m JOIN conversations c ON c.id = m.conversation_id WHERE m.user_id = '`+who.String()+`'`)
		total, err := c.nodes[0].UnreadTotal(c.t.Context(), who)
		if err != nil || total != int64(want) {
			c.t.Errorf("%s: unread %d (%v), counted %d", who, total, err, want)
		}
		var listed []chat.ID
		for page := (chat.PageRequest{Limit: 7}); ; {
			p, err := c.nodes[0].Conversations(c.t.Context(), who, page)
			if err != nil {
				c.t.Fatal(err)
			}
			for _, conversation := range p.Conversations {
				listed = append(listed, conversation.ID)
			}
			if page.Cursor = p.NextCursor; page.Cursor == "" {
				break
			}
		}
		ordered, err := db.Query(c.t.Context(), `SELECT c.id FROM members m JOIN conversations c ON c.id = m.conversation_id
			WHERE m.user_id = $1 ORDER BY coalesce(c.last_message_at, c.created_at) DESC, c.id DESC`, who)
		if err != nil {
			c.t.Fatal(err)
		}
		inOrder, err := pgx.CollectRows(ordered, pgx.RowTo[chat.ID])
		if err != nil {
			c.t.Fatal(err)
		}
		if !slices.Equal(listed, inOrder) {
			c.t.Errorf("%s: the list is %v, in order it is %v", who, listed, inOrder)
		}
		session, err := c.nodes[0].Session(c.t.Context(), who)
		undelivered := number(c.t, db, `SELECT count(*) FROM members m JOIN conversations c ON c.id = m.conversation_id
			WHERE m.user_id = '`+who.String()+`' AND m.last_delivered_seq < c.last_seq`)
		if err != nil || len(session.Undelivered) != undelivered || session.UnreadTotal != int64(want) || len(session.Groups) != 3 {
			c.t.Errorf("session %+v, %v; %d undelivered", session, err, undelivered)
		}
	}
	rows, err := db.Query(c.t.Context(), `SELECT row_to_json(m)::text || row_to_json(c)::text FROM members m JOIN conversations c ON c.id = m.conversation_id
		WHERE m.settled AND (c.loose_from <> 0 OR m.settled_at <> coalesce(c.last_message_at, c.created_at)
		  OR m.settled_unread <> c.last_seq - m.last_read_seq OR m.last_delivered_seq < c.last_seq)`)
	if err != nil {
		c.t.Fatal(err)
	}
	wrong, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		c.t.Fatal(err)
	}
	for _, row := range wrong {
		c.t.Errorf("a settled row that is not: %s; people are %v", row, c.people)
	}
}

func admin(tb testing.TB, url string) *pgxpool.Pool {
	tb.Helper()
	db, err := pgxpool.New(tb.Context(), url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(db.Close)
	return db
}

func number(tb testing.TB, db *pgxpool.Pool, query string) (n int) {
	tb.Helper()
	if err := db.QueryRow(tb.Context(), query).Scan(&n); err != nil {
		tb.Fatal(err)
	}
	return n
}

// TestSettledWhileSending: a send that has begun when a member is being settled
// makes it loose again.
func TestSettledWhileSending(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	s, db := openURL(t, url, Options{}), admin(t, url)
	u := users(t, s, 2)
	c := direct(t, s, u[0], u[1])
	mustSend(t, s, u[0], c, "one")
	mustMove(t, s, chat.PositionMove{Kind: chat.Read, UserID: u[1], ConversationID: c, UpTo: 1})
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var settled int
	if err := tx.QueryRow(t.Context(), settleSQL, u[1], 0, 10, s.now()).Scan(&settled); err != nil || settled != 1 {
		t.Fatalf("settled %d, %v", settled, err)
	}
	answered := make(chan error, 1)
	s.Send(t.Context(), chat.SendMessage{SenderID: u[0], ConversationID: c, ClientMsgID: "two", Text: "two"},
		func(_ chat.SendResult, err error) { answered <- err })
	eventually(t, "the send waits for the conversation", func() bool {
		return number(t, db, `SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'`) > 0
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if n := number(t, db, `SELECT count(*) FROM members WHERE settled`); n != 0 {
		t.Errorf("%d settled rows", n)
	}
	if unread, err := s.UnreadTotal(t.Context(), u[1]); unread != 1 || err != nil {
		t.Errorf("unread %d, %v", unread, err)
	}
}

// TestJoinedWhileSending: a member who joins, and is settled, after a send has begun
// is loose when the message is there.
func TestJoinedWhileSending(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	s, db := openURL(t, url, Options{}), admin(t, url)
	u := users(t, s, 3)
	g, err := s.CreateGroup(t.Context(), u[0], "group", u[1:2])
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	do := func(sql string, args ...any) {
		t.Helper()
		if _, err := tx.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	do(`SELECT 1 FROM conversations WHERE id = $1 FOR UPDATE`, g.ID)
	answered := make(chan error, 1)
	s.Send(t.Context(), chat.SendMessage{SenderID: u[0], ConversationID: g.ID, ClientMsgID: "x", Text: "x"},
		func(_ chat.SendResult, err error) { answered <- err })
	eventually(t, "the send waits for the conversation", func() bool {
		return number(t, db, `SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'`) > 0
	})
	do(`INSERT INTO members (conversation_id, user_id, role, joined_at, settled, settled_at) VALUES ($1, $2, 'member', now(), true, now())`, g.ID, u[2])
	do(`UPDATE conversations SET member_count = 3, version = version + 1, loose_from = 0 WHERE id = $1`, g.ID)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if unread, err := s.UnreadTotal(t.Context(), u[2]); unread != 1 || err != nil {
		t.Errorf("unread %d, %v", unread, err)
	}
}
