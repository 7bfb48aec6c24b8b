package storetest

import (
	"fmt"
	"slices"
	"time"

	"xabar/chat"
)

func (e *env) history(user chat.ID, q chat.HistoryQuery) chat.HistoryPage {
	e.Helper()
	page, err := e.store.History(e.ctx, user, q)
	e.ok(err, "History %+v", q)
	return page
}

func (e *env) page(got chat.HistoryPage, want []int64, hasMore bool) {
	e.Helper()
	if !slices.Equal(seqs(got.Messages), want) || got.HasMore != hasMore {
		e.Errorf("page %v, more %v; want %v, %v", seqs(got.Messages), got.HasMore, want, hasMore)
	}
}

var historyCases = map[string]func(*env){
	"history/NewestFirst120": func(e *env) {
		a, b, c := e.pair()
		e.fill(a, c, 120) // the clock stands still: equal timestamps
		first := e.history(b, chat.HistoryQuery{ConversationID: c, Limit: 500})
		e.page(first, count(120, 71), true)
		if first.LastSeq != 120 {
			e.Errorf("lastSeq %d", first.LastSeq)
		}
		e.send(a, c, "between two pages")
		e.page(e.history(b, chat.HistoryQuery{ConversationID: c, BeforeSeq: ptr(int64(71)), Limit: 500}), count(70, 21), true)
		e.page(e.history(b, chat.HistoryQuery{ConversationID: c, BeforeSeq: ptr(int64(21))}), count(20, 1), false)
		_, err := e.store.History(e.ctx, e.user("x"), chat.HistoryQuery{ConversationID: c})
		e.code(chat.CodeNotFound, err, "a third user")
	},
	"history/122": func(e *env) {
		a, _, c := e.pair()
		e.fill(a, c, 122)
		e.page(e.history(a, chat.HistoryQuery{ConversationID: c, Limit: 500}), count(122, 73), true)
		e.page(e.history(a, chat.HistoryQuery{ConversationID: c, BeforeSeq: ptr(int64(73)), Limit: 500}), count(72, 23), true)
		e.page(e.history(a, chat.HistoryQuery{ConversationID: c, BeforeSeq: ptr(int64(23)), Limit: 500}), count(22, 1), false)
	},
	"history/OldestFirst": func(e *env) {
		a, _, c := e.pair()
		e.fill(a, c, 120)
		e.page(e.history(a, chat.HistoryQuery{ConversationID: c, AfterSeq: ptr(int64(0))}), count(1, 50), true)
		e.page(e.history(a, chat.HistoryQuery{ConversationID: c, AfterSeq: ptr(int64(50))}), count(51, 100), true)
		e.page(e.history(a, chat.HistoryQuery{ConversationID: c, AfterSeq: ptr(int64(100))}), count(101, 120), false)
		e.page(e.history(a, chat.HistoryQuery{ConversationID: c, AfterSeq: ptr(int64(120))}), nil, false)
		e.page(e.history(a, chat.HistoryQuery{ConversationID: c, AfterSeq: ptr(int64(70))}), count(71, 120), false)
	},
	"history/Limits": func(e *env) {
		a, _, c := e.pair()
		e.page(e.history(a, chat.HistoryQuery{ConversationID: c}), nil, false)
		e.fill(a, c, 60)
		for limit, want := range map[int]int{-3: 1, 0: 50, 1: 1, 7: 7, 50: 50, 51: 50, 1 << 40: 50} {
			if got := len(e.history(a, chat.HistoryQuery{ConversationID: c, Limit: limit}).Messages); got != want {
				e.Errorf("limit %d gives %d messages, want %d", limit, got, want)
			}
		}
		e.page(e.history(a, chat.HistoryQuery{ConversationID: c, BeforeSeq: ptr(int64(1))}), nil, false)
	},
	"history/FromJoiningOn": func(e *env) {
		u := e.users(3)
		c := e.group(u[0], u[1])
		e.fill(u[0], c, 5)
		_, err := e.store.AddMembers(e.ctx, u[0], c, []chat.ID{u[2]})
		e.ok(err, "AddMembers")
		e.fill(u[0], c, 2)
		e.page(e.history(u[2], chat.HistoryQuery{ConversationID: c}), []int64{7, 6}, false)
		e.page(e.history(u[2], chat.HistoryQuery{ConversationID: c, AfterSeq: ptr(int64(0))}), []int64{6, 7}, false)
		e.page(e.history(u[2], chat.HistoryQuery{ConversationID: c, BeforeSeq: ptr(int64(6))}), nil, false)
		e.page(e.history(u[1], chat.HistoryQuery{ConversationID: c}), count(7, 1), false)
	},
	"history/Between": func(e *env) {
		a, _, c := e.pair()
		e.fill(a, c, 60)
		for _, r := range []struct{ from, to, last int64 }{{3, 6, 6}, {1, 60, 50}, {59, 99, 60}} {
			got, err := e.store.MessagesBetween(e.ctx, c, r.from, r.to)
			if err != nil || !slices.Equal(seqs(got), count(r.from, r.last)) {
				e.Errorf("between %d and %d: %v, %v", r.from, r.to, seqs(got), err)
			}
		}
		got, err := e.store.MessagesBetween(e.ctx, chat.NewID(), 1, 9)
		if err != nil || len(got) != 0 {
			e.Errorf("of no conversation: %v, %v", got, err)
		}
	},
}

func (e *env) sync(user chat.ID, positions map[chat.ID]chat.SyncPosition) []chat.SyncConversation {
	e.Helper()
	var all []chat.SyncConversation
	q := chat.SyncQuery{Positions: positions}
	for range 1000 {
		page, err := e.store.Sync(e.ctx, user, q)
		e.ok(err, "Sync")
		if len(page.Conversations) > chat.PageLimit {
			e.Fatalf("a page of %d conversations", len(page.Conversations))
		}
		all = append(all, page.Conversations...)
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return all
		}
	}
	e.Fatal("the pages of sync have no end")
	return nil
}

var syncCases = map[string]func(*env){
	"sync/AfterPositions": func(e *env) {
		a, b, c := e.pair()
		quiet := e.direct(b, e.user("quiet"))
		e.fill(a, c, 120)
		got := e.sync(b, map[chat.ID]chat.SyncPosition{c: {Seq: 30}, quiet: {Seq: 0}})
		if len(got) != 1 || got[0].Conversation.ID != c || !slices.Equal(seqs(got[0].Messages), count(31, 80)) || !got[0].HasMore || len(got[0].Changes) != 0 {
			e.Fatalf("sync after 30: %+v", got)
		}
		if v := got[0].Conversation; v.LastSeq != 120 || v.Unread != 120 || v.Title == "" {
			e.Errorf("conversation %+v", v)
		}
		got = e.sync(b, map[chat.ID]chat.SyncPosition{c: {Seq: 70}, quiet: {}})
		if len(got) != 1 || !slices.Equal(seqs(got[0].Messages), count(71, 120)) || got[0].HasMore {
			e.Errorf("sync after 70: %+v", got)
		}
		for _, seq := range []int64{120, 500} {
			if got := e.sync(b, map[chat.ID]chat.SyncPosition{c: {Seq: seq}, quiet: {}}); len(got) != 0 {
				e.Errorf("sync after %d: %+v", seq, got)
			}
		}
		e.positions(b, c, 0, 0) // sync itself moves nothing
	},
	"sync/Unnamed": func(e *env) {
		a, b, c := e.pair()
		e.fill(a, c, 3)
		empty := e.direct(b, e.user("x"))
		got := e.sync(b, nil)
		if len(got) != 2 {
			e.Fatalf("sync without positions: %+v", got)
		}
		for _, s := range got {
			want := count(1, 3)
			if s.Conversation.ID == empty {
				want = nil
			}
			if !slices.Equal(seqs(s.Messages), want) || s.HasMore {
				e.Errorf("%v brings %v", s.Conversation.ID, seqs(s.Messages))
			}
		}
		got = e.sync(b, map[chat.ID]chat.SyncPosition{empty: {}, chat.NewID(): {Seq: 4}})
		if len(got) != 1 || got[0].Conversation.ID != c {
			e.Errorf("only the unnamed one has news: %+v", got)
		}
	},
	"sync/FromJoiningOn": func(e *env) {
		u := e.users(3)
		c := e.group(u[0], u[1])
		e.fill(u[0], c, 5)
		_, err := e.store.AddMembers(e.ctx, u[0], c, []chat.ID{u[2]})
		e.ok(err, "AddMembers")
		got := e.sync(u[2], nil)
		if len(got) != 1 || len(got[0].Messages) != 0 {
			e.Fatalf("a new member's sync: %+v", got)
		}
		e.fill(u[0], c, 2)
		got = e.sync(u[2], map[chat.ID]chat.SyncPosition{c: {Seq: 1}})
		if len(got) != 1 || !slices.Equal(seqs(got[0].Messages), []int64{6, 7}) {
			e.Errorf("sync from before one's joining: %+v", got)
		}
		e.ok(e.store.RemoveMember(e.ctx, u[2], c, u[2]), "leaving")
		if got = e.sync(u[2], map[chat.ID]chat.SyncPosition{c: {Seq: 6}}); len(got) != 0 {
			e.Errorf("after leaving: %+v", got)
		}
	},
	"sync/Pages": func(e *env) {
		me := e.user("me")
		want := map[chat.ID]bool{}
		for i := range 2*chat.PageLimit + 10 {
			c := e.direct(me, e.user(fmt.Sprint("peer", i)))
			want[c] = true
		}
		for _, s := range e.sync(me, nil) {
			if !want[s.Conversation.ID] {
				e.Fatalf("%v comes twice, or is not ours", s.Conversation.ID)
			}
			delete(want, s.Conversation.ID)
		}
		if len(want) != 0 {
			e.Errorf("%d conversations are missing", len(want))
		}
		first, err := e.store.Sync(e.ctx, me, chat.SyncQuery{})
		if err != nil || len(first.Conversations) != chat.PageLimit || first.NextCursor == "" {
			e.Errorf("the first page has %d, cursor %q, %v", len(first.Conversations), first.NextCursor, err)
		}
		_, err = e.store.Sync(e.ctx, me, chat.SyncQuery{Cursor: "x"})
		e.code(chat.CodeInvalidArgument, err, "a bad cursor")
	},
	"sync/FullPageHasNoCursor": func(e *env) {
		me := e.user("me")
		for i := range chat.PageLimit {
			e.direct(me, e.user(fmt.Sprint("peer", i)))
		}
		page, err := e.store.Sync(e.ctx, me, chat.SyncQuery{})
		if err != nil || len(page.Conversations) != chat.PageLimit || page.NextCursor != "" {
			e.Errorf("%d conversations, cursor %q, %v", len(page.Conversations), page.NextCursor, err)
		}
	},
	"sync/Changes": func(e *env) {
		a, b, c := e.pair()
		e.fill(a, c, 5)
		held := e.view(b, c).Version
		e.ok(e.Statements.Change(c, 2, "edited"), "Change")
		e.ok(e.Statements.Change(c, 5, "edited too"), "Change")
		e.fill(a, c, 1)
		if v := e.view(b, c); v.Version != held+3 {
			e.Errorf("version %d after three changes of %d", v.Version, held)
		}
		got := e.sync(b, map[chat.ID]chat.SyncPosition{c: {Seq: 4, Version: held}})
		if len(got) != 1 || !slices.Equal(seqs(got[0].Messages), []int64{5, 6}) || !slices.Equal(seqs(got[0].Changes), []int64{2}) {
			e.Fatalf("sync: %+v", got)
		}
		if m := got[0].Changes[0]; m.Text != "edited" || m.EditedAt == nil || m.Version != held+1 {
			e.Errorf("changed message %+v", m)
		}
		if got := e.sync(b, map[chat.ID]chat.SyncPosition{c: {Seq: 6, Version: held + 1}}); len(got) != 1 ||
			len(got[0].Messages) != 0 || !slices.Equal(seqs(got[0].Changes), []int64{5}) {
			e.Errorf("changes alone: %+v", got)
		}
		for _, p := range []chat.SyncPosition{{Seq: 6}, {Seq: 6, Version: held + 3}} {
			if got := e.sync(b, map[chat.ID]chat.SyncPosition{c: p}); len(got) != 0 {
				e.Errorf("sync from %+v: %+v", p, got)
			}
		}
	},
	"sync/ChangedMembers": func(e *env) {
		u := e.users(3)
		c := e.group(u[0], u[1])
		e.fill(u[0], c, 1)
		held := chat.SyncPosition{Seq: 1, Version: e.view(u[1], c).Version}
		_, err := e.store.AddMembers(e.ctx, u[0], c, []chat.ID{u[2]})
		e.ok(err, "AddMembers")
		got := e.sync(u[1], map[chat.ID]chat.SyncPosition{c: held})
		if len(got) != 1 || got[0].Conversation.MemberCount != 3 || len(got[0].Messages) != 0 || len(got[0].Changes) != 0 {
			e.Errorf("sync: %+v", got)
		}
	},
}

// list walks all pages of the conversation list.
func (e *env) list(user chat.ID, limit int) []chat.Conversation {
	e.Helper()
	var all []chat.Conversation
	page := chat.PageRequest{Limit: limit}
	for range 1000 {
		p, err := e.store.Conversations(e.ctx, user, page)
		e.ok(err, "Conversations")
		all = append(all, p.Conversations...)
		if page.Cursor = p.NextCursor; page.Cursor == "" {
			return all
		}
	}
	e.Fatal("the pages of conversations have no end")
	return nil
}

var listCases = map[string]func(*env){
	"list/NewestActivityFirst": func(e *env) {
		me := e.user("me")
		var want []chat.ID
		for i := range 9 {
			c := e.direct(me, e.user(fmt.Sprint("peer", i)))
			want = append([]chat.ID{c}, want...)
			if i%3 != 0 { // some of the same moment: then the id decides
				e.Clock.Step(time.Second)
			}
		}
		check := func() {
			e.Helper()
			for _, limit := range []int{1, 2, 4, 50} {
				var got []chat.ID
				for _, c := range e.list(me, limit) {
					got = append(got, c.ID)
				}
				if !slices.Equal(got, want) {
					e.Fatalf("in pages of %d: %v, want %v", limit, got, want)
				}
			}
		}
		check()
		e.Clock.Step(time.Second)
		e.send(me, want[5], "moves it to the top")
		want = append([]chat.ID{want[5]}, append(slices.Clone(want[:5]), want[6:]...)...)
		check()
	},
	"list/UnreadTotal": func(e *env) {
		me := e.user("me")
		x, y, z := e.user("x"), e.user("y"), e.user("z")
		c1, c2, muted := e.direct(me, x), e.direct(me, y), e.direct(me, z)
		e.fill(x, c1, 3)
		e.fill(y, c2, 2)
		e.fill(z, muted, 7)
		e.ok(e.store.Mute(e.ctx, me, muted, ptr(e.Clock.Now().Add(time.Hour))), "Mute")
		check := func(want int64) {
			e.Helper()
			total, err := e.store.UnreadTotal(e.ctx, me)
			e.ok(err, "UnreadTotal")
			totals, err := e.store.UnreadTotals(e.ctx, []chat.ID{x, me, {1}})
			e.ok(err, "UnreadTotals")
			if totals[me] != want || totals[x] < 0 || totals[chat.ID{1}] != 0 {
				e.Errorf("totals %v, want %d for %s and none for a stranger", totals, want, me)
			}
			session, err := e.store.Session(e.ctx, me)
			e.ok(err, "Session")
			for _, limit := range []int{1, 50} {
				page, err := e.store.Conversations(e.ctx, me, chat.PageRequest{Limit: limit})
				e.ok(err, "Conversations")
				if total != want || session.UnreadTotal != want || page.UnreadTotal != want {
					e.Errorf("total %d, in the session %d, in the list %d; want %d", total, session.UnreadTotal, page.UnreadTotal, want)
				}
			}
		}
		check(5)
		e.read(me, c1, 3)
		check(2)
		if v := e.view(me, c2); v.Unread != 2 {
			e.Errorf("reading one conversation changed another: %d", v.Unread)
		}
		if v := e.view(me, muted); v.MutedUntil == nil || v.Unread != 7 {
			e.Errorf("the muted one: %+v", v)
		}
		e.Clock.Step(2 * time.Hour)
		check(9)
		e.send(x, c1, "one more")
		check(10)
		e.send(me, c1, "mine")
		check(11) // the gap before it is not read: see positions/SenderHoldsItsOwn
	},
	"list/Entry": func(e *env) {
		u := e.users(3)
		c := e.group(u[0], u[1], u[2])
		e.fill(u[0], c, 4)
		e.read(u[1], c, 3)
		e.deliver(u[2], c, 0, 2)
		got := e.list(u[0], 10)
		if len(got) != 1 || got[0].LastMessage == nil || got[0].LastMessage.Seq != 4 || got[0].OthersDeliveredSeq == nil ||
			*got[0].OthersDeliveredSeq != 2 || *got[0].OthersReadSeq != 0 || got[0].Title != "group" || got[0].FirstSeq != 1 || got[0].MemberCount != 3 {
			e.Errorf("listed %+v", got)
		}
	},
	"list/Nothing": func(e *env) {
		page, err := e.store.Conversations(e.ctx, e.user("me"), chat.PageRequest{})
		if err != nil || len(page.Conversations) != 0 || page.UnreadTotal != 0 || page.NextCursor != "" {
			e.Errorf("%+v, %v", page, err)
		}
		_, err = e.store.Conversations(e.ctx, e.user("me"), chat.PageRequest{Cursor: "x"})
		e.code(chat.CodeInvalidArgument, err, "a bad cursor")
	},
	"list/Session": func(e *env) {
		me, x := e.user("me"), e.user("x")
		d := e.direct(me, x)
		g1, g2 := e.group(x, me), e.group(me, x)
		e.fill(x, d, 3)
		e.fill(me, g1, 2)
		e.deliver(me, d, 0, 1)
		s, err := e.store.Session(e.ctx, me)
		e.ok(err, "Session")
		if len(s.Groups) != 2 || !slices.Contains(s.Groups, g1) || !slices.Contains(s.Groups, g2) || s.UnreadTotal != 3 {
			e.Errorf("session %+v", s)
		}
		if want := (chat.Undelivered{ConversationID: d, LastDeliveredSeq: 1, LastSeq: 3}); len(s.Undelivered) != 1 || s.Undelivered[0] != want {
			e.Errorf("undelivered %+v, want %+v", s.Undelivered, want)
		}
		none, err := e.store.Session(e.ctx, e.user("new"))
		if err != nil || len(none.Groups) != 0 || len(none.Undelivered) != 0 || none.UnreadTotal != 0 {
			e.Errorf("a new user's session: %+v, %v", none, err)
		}
	},
}
