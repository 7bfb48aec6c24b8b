package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"xabar/chat"
)

var lookupCases = map[string]func(*env){
	"lookup/NumbersAreUniqueAndRiseWithSeq": func(e *env) {
		other := e.open(Tuning{})
		users := e.users(4)
		conversations := []chat.ID{e.direct(users[0], users[1]), e.direct(users[2], users[3]), e.group(users[0], users[1:]...)}
		var all sync.WaitGroup
		for i, user := range users {
			for j, store := range []chat.Store{e.store, other} {
				all.Go(func() {
					for n := range 30 {
						c := conversations[2]
						if n%3 > 0 {
							c = conversations[i/2]
						}
						s := wait(e, start(e.ctx, store, chat.SendMessage{
							SenderID: user, ConversationID: c, ClientMsgID: fmt.Sprint(j, "-", n), Text: "x",
						}))
						if s.err != nil || s.Message.Number < 1 {
							e.Errorf("number %d, %v", s.Message.Number, s.err)
						}
					}
				})
			}
		}
		all.Wait()
		seen := map[int64]bool{}
		for _, c := range conversations {
			last := int64(0)
			for from := int64(1); ; from += chat.PageLimit {
				messages, err := e.store.MessagesBetween(e.ctx, c, from, from+chat.PageLimit-1)
				e.ok(err, "MessagesBetween")
				if len(messages) == 0 {
					break
				}
				for _, m := range messages {
					if m.Number <= last || seen[m.Number] {
						e.Fatalf("seq %d has number %d, the one before had %d", m.Seq, m.Number, last)
					}
					last, seen[m.Number] = m.Number, true
				}
			}
		}
		if len(seen) != 4*2*30 {
			e.Errorf("%d messages have a number", len(seen))
		}
	},
	"lookup/EveryWayKnowsTheNumber": func(e *env) {
		a, b, c := e.pair()
		first := e.send(a, c, "x1").Message
		if again := e.send(a, c, "x1"); !again.Duplicate || again.Message.Number != first.Number {
			e.Errorf("the repeat has number %d, want %d", again.Message.Number, first.Number)
		}
		number := func(what string, got []chat.Message, err error) {
			e.ok(err, "%s", what)
			if len(got) != 1 || got[0].Number != first.Number {
				e.Errorf("%s: %+v, want number %d", what, got, first.Number)
			}
		}
		history, err := e.store.History(e.ctx, b, chat.HistoryQuery{ConversationID: c})
		number("History", history.Messages, err)
		between, err := e.store.MessagesBetween(e.ctx, c, 1, 1)
		number("MessagesBetween", between, err)
		sync, err := e.store.Sync(e.ctx, b, chat.SyncQuery{})
		number("Sync", sync.Conversations[0].Messages, err)
		number("Conversation", []chat.Message{*e.view(b, c).LastMessage}, nil)
		e.Clock.Step(2 * chat.OutboxLease)
		events, err := e.store.ClaimOutbox(e.ctx, 10)
		e.ok(err, "ClaimOutbox")
		number("ClaimOutbox", []chat.Message{events[0].Message}, nil)
		found, err := e.store.MessageByNumber(e.ctx, b, first.Number)
		number("MessageByNumber", []chat.Message{found}, err)
		if found.ConversationID != c || found.Seq != 1 || found.SenderID != a || found.Text != first.Text {
			e.Errorf("MessageByNumber: %+v", found)
		}
	},
	"lookup/NumbersOfOthersDoNotExist": func(e *env) {
		a, b, c := e.pair()
		stranger := e.user("stranger")
		m := e.send(a, c, "x1").Message
		group := e.group(a, b)
		before := e.send(a, group, "x2").Message
		added, err := e.store.AddMembers(e.ctx, a, group, []chat.ID{stranger})
		e.ok(err, "AddMembers")
		after := e.send(a, group, "x3").Message
		if len(added) != 1 {
			e.Fatalf("added %v", added)
		}
		for what, number := range map[string]int64{"a stranger's": m.Number, "from before the joining": before.Number, "nobody's": 1 << 50, "0": 0} {
			_, err := e.store.MessageByNumber(e.ctx, stranger, number)
			e.code(chat.CodeNotFound, err, "%s number", what)
		}
		_, err = e.store.MessageByNumber(e.ctx, stranger, after.Number)
		e.ok(err, "a number of its own conversation")
	},
	"lookup/FindDirectMakesNone": func(e *env) {
		a, b := e.user("a"), e.user("b")
		_, err := e.store.FindDirect(e.ctx, a, b)
		e.code(chat.CodeNotFound, err, "before there is one")
		e.group(a, b)
		_, err = e.store.FindDirect(e.ctx, a, b)
		e.code(chat.CodeNotFound, err, "a group of two")
		_, err = e.store.FindDirect(e.ctx, a, a)
		e.code(chat.CodeNotFound, err, "with oneself")
		c := e.direct(a, b)
		for _, pair := range [][2]chat.ID{{a, b}, {b, a}} {
			if got, err := e.store.FindDirect(e.ctx, pair[0], pair[1]); err != nil || got != c {
				e.Errorf("FindDirect: %v, %v, want %v", got, err, c)
			}
		}
		_, err = e.store.FindDirect(e.ctx, a, e.user("c"))
		e.code(chat.CodeNotFound, err, "with somebody else")
	},
	"lookup/DirectReceiptsAreTheRecipients": func(e *env) {
		a, b, c := e.pair()
		e.fill(a, c, 4)
		e.Clock.Step(time.Minute)
		delivered := chat.At(e.Clock.Now())
		e.deliver(b, c, 0, 3)
		e.Clock.Step(time.Minute)
		read := chat.At(e.Clock.Now())
		e.read(b, c, 2)
		e.deliver(b, c, 0, 4)
		e.Clock.Step(time.Minute)
		answered := e.send(b, c, "answer").Message // reads 3 and 4

		for _, caller := range []chat.ID{a, b} {
			got, err := e.store.DirectReceipts(e.ctx, caller, c, 2, 5)
			e.ok(err, "DirectReceipts")
			var seqs []int64
			for _, r := range got {
				seqs = append(seqs, r.Seq)
			}
			if !slices.Equal(seqs, count(2, 5)) {
				e.Fatalf("receipts of %v", seqs)
			}
			e.at("2 delivered", got[0].DeliveredAt, delivered)
			e.at("2 read", got[0].ReadAt, read)
			e.at("3 delivered", got[1].DeliveredAt, delivered)
			e.at("3 read", got[1].ReadAt, answered.CreatedAt)
			e.at("4 delivered", got[2].DeliveredAt, read)
			if got[3].DeliveredAt != nil || got[3].ReadAt != nil {
				e.Errorf("the answer: %+v", got[3])
			}
		}
		for what, ask := range map[string][2]chat.ID{
			"a stranger": {e.user("stranger"), c}, "a group": {a, e.group(a, b)}, "no conversation": {a, chat.NewID()},
		} {
			if got, err := e.store.DirectReceipts(e.ctx, ask[0], ask[1], 1, 9); err != nil || len(got) != 0 {
				e.Errorf("%s: %+v, %v", what, got, err)
			}
		}
	},
}
