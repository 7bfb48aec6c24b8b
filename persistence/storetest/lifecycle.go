package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"xabar/chat"
)

func (e *env) claim(store chat.Store, limit int) []chat.OutboxEvent {
	e.Helper()
	events, err := store.ClaimOutbox(e.ctx, limit)
	e.ok(err, "ClaimOutbox")
	return events
}

func keys(events []chat.OutboxEvent) []int64 {
	all := make([]int64, len(events))
	for i, ev := range events {
		all[i] = ev.Message.Seq
	}
	return all
}

// eventually waits until the condition holds.
func (e *env) eventually(what string, holds func() bool) {
	e.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			e.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(5 * time.Millisecond) // polls; the condition decides
	}
}

// firstAnswered waits until one of them has its answer, and gives its index.
func firstAnswered[T any](e *env, pending []<-chan T) (first int) {
	e.Helper()
	e.eventually("one of many has an answer", func() bool {
		first = slices.IndexFunc(pending, func(p <-chan T) bool { return len(p) > 0 })
		return first >= 0
	})
	return first
}

var outboxCases = map[string]func(*env){
	"outbox/LeaseAndTakeOver": func(e *env) {
		second := e.open(Tuning{})
		a, b, c := e.pair()
		res := e.send(a, c, "1")
		if got := e.claim(second, 10); len(got) != 0 {
			e.Fatalf("claimed %v while its sender's lease lasts", keys(got))
		}
		e.Clock.Step(chat.OutboxLease + time.Millisecond)
		got := e.claim(second, 10)
		if len(got) != 1 || got[0].Message != res.Message || got[0].Kind != chat.Direct || got[0].MemberCount != 2 ||
			len(got[0].MemberIDs) != 2 || !slices.Contains(got[0].MemberIDs, b) {
			e.Fatalf("claimed %+v", got)
		}
		if again := e.claim(e.store, 10); len(again) != 0 {
			e.Errorf("claimed twice: %v", keys(again))
		}
		e.Clock.Step(chat.OutboxLease + time.Millisecond)
		if again := e.claim(e.store, 10); len(again) != 1 {
			e.Errorf("the claimer died too: %v", keys(again))
		}
	},
	"outbox/Close": func(e *env) {
		a, _, c := e.pair()
		for n := range 5 {
			e.send(a, c, fmt.Sprint(n))
		}
		for _, seq := range []int64{1, 2, 4} {
			e.store.CloseOutbox(chat.OutboxKey{ConversationID: c, Seq: seq})
		}
		e.store.CloseOutbox(chat.OutboxKey{ConversationID: c, Seq: 99}) // nothing to remove
		e.eventually("closed events are not claimed", func() bool {
			e.Clock.Step(chat.OutboxLease + time.Millisecond)
			return slices.Equal(keys(e.claim(e.store, 10)), []int64{3, 5})
		})
	},
	"outbox/Backlog": func(e *env) {
		backlog := func() chat.Backlog {
			b, err := e.store.OutboxBacklog(e.ctx)
			e.ok(err, "OutboxBacklog")
			return b
		}
		if b := backlog(); b.Length != 0 || !b.Oldest.IsZero() {
			e.Fatalf("of nothing: %+v", b)
		}
		a, _, c := e.pair()
		first := e.send(a, c, "1").Message.CreatedAt
		e.Clock.Step(time.Second)
		second := e.send(a, c, "2").Message.CreatedAt
		if b := backlog(); b.Length != 2 || !b.Oldest.Equal(first.Time) {
			e.Errorf("of two: %+v, the first was stored at %v", b, first)
		}
		e.store.CloseOutbox(chat.OutboxKey{ConversationID: c, Seq: 1})
		e.eventually("the second is the oldest", func() bool {
			b := backlog()
			return b.Length == 1 && b.Oldest.Equal(second.Time)
		})
	},
	"outbox/CloseSurvivesClose": func(e *env) {
		a, _, c := e.pair()
		store := e.Harness.Open(e.T, Tuning{})
		s := wait(e, start(e.ctx, store, chat.SendMessage{SenderID: a, ConversationID: c, ClientMsgID: "1", Text: "x"}))
		e.ok(s.err, "Send")
		store.CloseOutbox(chat.OutboxKey{ConversationID: c, Seq: s.Message.Seq})
		e.ok(store.Close(), "Close")
		e.Clock.Step(chat.OutboxLease + time.Millisecond)
		if got := e.claim(e.store, 10); len(got) != 0 {
			e.Errorf("a removal was lost in Close: %v", keys(got))
		}
	},
	"outbox/OldestFirstInPieces": func(e *env) {
		u := e.users(2)
		g := e.group(u[0], u[1])
		for n := range 7 {
			e.send(u[0], g, fmt.Sprint(n))
			e.Clock.Step(time.Millisecond)
		}
		e.Clock.Step(chat.OutboxLease)
		var got []int64
		for range 4 {
			events := e.claim(e.store, 2)
			for _, ev := range events {
				if ev.Kind != chat.Group || ev.MemberIDs != nil || ev.MemberCount != 2 {
					e.Errorf("a group's event: %+v", ev)
				}
			}
			got = append(got, keys(events)...)
		}
		if !slices.Equal(got, count(1, 7)) {
			e.Errorf("claimed %v", got)
		}
	},
	"outbox/ClaimsDoNotOverlap": func(e *env) {
		second := e.open(Tuning{})
		a, _, c := e.pair()
		e.fill(a, c, 40)
		e.Clock.Step(chat.OutboxLease + time.Millisecond)
		var mu sync.Mutex // guards claimed
		claimed := map[int64]int{}
		var all sync.WaitGroup
		for i := range 8 {
			store := e.store
			if i%2 == 1 {
				store = second
			}
			all.Go(func() {
				for range 10 {
					events, err := store.ClaimOutbox(e.ctx, 3)
					if err != nil {
						e.Errorf("ClaimOutbox: %v", err)
					}
					mu.Lock()
					for _, ev := range events {
						claimed[ev.Message.Seq]++
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		for seq, n := range claimed {
			if n != 1 {
				e.Errorf("seq %d was claimed %d times", seq, n)
			}
		}
		if len(claimed) != 40 {
			e.Errorf("%d of 40 were claimed", len(claimed))
		}
	},
	"outbox/RepeatsHaveNoEvent": func(e *env) {
		a, _, c := e.pair()
		e.send(a, c, "1")
		e.send(a, c, "1")
		e.Clock.Step(chat.OutboxLease + time.Millisecond)
		if got := e.claim(e.store, 10); len(got) != 1 {
			e.Errorf("claimed %v", keys(got))
		}
	},
	"outbox/ClockStepsBack": func(e *env) {
		a, _, c := e.pair()
		e.send(a, c, "1")
		e.Clock.Step(-time.Hour)
		e.eventually("an event whose lease ends in an hour is claimed", func() bool {
			e.Clock.Step(time.Second)
			return len(e.claim(e.store, 10)) == 1
		})
		if got := e.Clock.Now().Sub(NewClock().Now()); got > 0 {
			e.Errorf("it was claimed %v late", got)
		}
	},
}

var lifecycleCases = map[string]func(*env){
	"lifecycle/Ping": func(e *env) {
		e.ok(e.store.Ping(e.ctx), "Ping")
		store := e.Harness.Open(e.T, Tuning{})
		e.ok(store.Close(), "Close")
		e.ok(store.Close(), "Close again")
		e.code(chat.CodeUnavailable, store.Ping(e.ctx), "Ping after Close")
	},
	"lifecycle/CloseDrains": func(e *env) {
		a, b, c := e.pair()
		store := e.Harness.Open(e.T, Tuning{})
		release := e.Stall(e.T)
		var pending []<-chan sent
		for n := range 50 {
			pending = append(pending, start(e.ctx, store, chat.SendMessage{SenderID: a, ConversationID: c, ClientMsgID: fmt.Sprint(n), Text: "x"}))
		}
		move := startMove(e.ctx, store, chat.PositionMove{Kind: chat.Delivered, UserID: b, ConversationID: c, UpTo: 1})
		closed := make(chan error, 1)
		go func() { closed <- store.Close() }()
		release()
		e.ok(wait(e, closed), "Close")
		for _, p := range pending {
			select {
			case s := <-p:
				e.ok(s.err, "a send that was queued before Close")
			default:
				e.Fatal("Close returned before the queue was empty")
			}
		}
		e.ok(wait(e, move).err, "a move that was queued before Close")
		if n, err := e.Statements.CountMessages(c); err != nil || n != 50 {
			e.Errorf("%d rows, %v; want 50", n, err)
		}
	},
	"lifecycle/AfterClose": func(e *env) {
		a, b, c := e.pair()
		store := e.Harness.Open(e.T, Tuning{})
		e.ok(store.Close(), "Close")
		s := wait(e, start(e.ctx, store, chat.SendMessage{SenderID: a, ConversationID: c, ClientMsgID: "1", Text: "x"}))
		e.code(chat.CodeUnavailable, s.err, "Send")
		m := wait(e, startMove(e.ctx, store, chat.PositionMove{Kind: chat.Read, UserID: b, ConversationID: c, UpTo: 1}))
		e.code(chat.CodeUnavailable, m.err, "MovePosition")
		store.CloseOutbox(chat.OutboxKey{ConversationID: c, Seq: 1}) // goes nowhere, and hangs nowhere
		_, err := store.ClaimOutbox(e.ctx, 1)
		e.code(chat.CodeUnavailable, err, "ClaimOutbox")
		_, err = store.Conversation(e.ctx, a, c)
		e.code(chat.CodeUnavailable, err, "Conversation")
		_, err = store.EnsureUser(e.ctx, "new", "new")
		e.code(chat.CodeUnavailable, err, "EnsureUser")
		_, err = store.Sync(e.ctx, a, chat.SyncQuery{})
		e.code(chat.CodeUnavailable, err, "Sync")
	},
	"lifecycle/Overloaded": func(e *env) {
		a, b, c := e.pair()
		store := e.open(Tuning{QueueBound: 8})
		release := e.Stall(e.T)
		var pending []<-chan sent
		for n := range 100 {
			pending = append(pending, start(e.ctx, store, chat.SendMessage{SenderID: a, ConversationID: c, ClientMsgID: fmt.Sprint(n), Text: "x"}))
		}
		// The refusals come while the database stands still. Which ones are refused
		// depends on when the queue was taken; the first to be answered is.
		refused := firstAnswered(e, pending)
		if s := wait(e, pending[refused]); chat.CodeOf(s.err) != chat.CodeOverloaded {
			e.Errorf("the first answer: %v, want overloaded", s.err)
		}
		var moves []<-chan moved
		for range 100 {
			moves = append(moves, startMove(e.ctx, store, chat.PositionMove{Kind: chat.Read, UserID: b, ConversationID: c, UpTo: 1}))
		}
		e.code(chat.CodeOverloaded, wait(e, moves[firstAnswered(e, moves)]).err, "the first answer to a move")
		release()
		stored := 0
		for n, p := range pending {
			if n == refused {
				continue
			}
			s := wait(e, p)
			switch chat.CodeOf(s.err) {
			case "":
				stored++
			case chat.CodeOverloaded:
			default:
				e.Errorf("send %d: %v", n, s.err)
			}
		}
		if n, err := e.Statements.CountMessages(c); err != nil || n != stored || stored == 0 {
			e.Errorf("%d rows, %v; %d were answered as stored", n, err, stored)
		}
		again := wait(e, start(e.ctx, store, chat.SendMessage{SenderID: a, ConversationID: c, ClientMsgID: fmt.Sprint(refused), Text: "x"}))
		e.ok(again.err, "the refused one again")
		if again.Duplicate {
			e.Errorf("the refused one had been stored")
		}
	},
	"lifecycle/Deadline": func(e *env) {
		a, _, c := e.pair()
		release := e.Stall(e.T)
		ctx, cancel := context.WithTimeout(e.ctx, 50*time.Millisecond)
		defer cancel()
		var pending []<-chan sent
		for n := range 3 {
			pending = append(pending, start(ctx, e.store, chat.SendMessage{SenderID: a, ConversationID: c, ClientMsgID: fmt.Sprint(n), Text: "x"}))
		}
		for n, p := range pending {
			e.code(chat.CodeTimeout, wait(e, p).err, "send %d while the database stands still", n)
		}
		release()
		for n := range 3 { // only the repeat finds out what became of it
			res, err := e.trySend(a, c, fmt.Sprint(n), "x")
			e.ok(err, "the repeat of %d", n)
			if res.Message.ClientMsgID != fmt.Sprint(n) {
				e.Errorf("the repeat answers %+v", res.Message)
			}
		}
		if n, err := e.Statements.CountMessages(c); err != nil || n != 3 {
			e.Errorf("%d rows, %v; want 3", n, err)
		}
	},
	"lifecycle/EndedContext": func(e *env) {
		a, b, c := e.pair()
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()
		e.code(chat.CodeTimeout, wait(e, start(ctx, e.store, chat.SendMessage{SenderID: a, ConversationID: c, ClientMsgID: "1", Text: "x"})).err, "Send")
		e.code(chat.CodeTimeout, wait(e, startMove(ctx, e.store, chat.PositionMove{Kind: chat.Read, UserID: b, ConversationID: c, UpTo: 1})).err, "MovePosition")
		_, err := e.store.Conversation(ctx, a, c)
		e.code(chat.CodeTimeout, err, "Conversation")
		_, err = e.store.History(ctx, a, chat.HistoryQuery{ConversationID: c})
		e.code(chat.CodeTimeout, err, "History")
		_, err = e.store.Sync(ctx, a, chat.SyncQuery{})
		e.code(chat.CodeTimeout, err, "Sync")
		_, err = e.store.EnsureUser(ctx, "new", "new")
		e.code(chat.CodeTimeout, err, "EnsureUser")
		_, err = e.store.ClaimOutbox(ctx, 1)
		e.code(chat.CodeTimeout, err, "ClaimOutbox")
		e.code(chat.CodeTimeout, e.store.Ping(ctx), "Ping")
		if v := e.view(a, c); v.LastSeq != 0 {
			e.Errorf("a send that could not start was stored")
		}
	},
	"lifecycle/Reopened": func(e *env) {
		a, b, c := e.pair()
		first := e.send(a, c, "1")
		e.read(b, c, 1)
		want := e.view(b, c)
		e.ok(e.store.Close(), "Close")
		e.store = e.open(Tuning{})
		if got := e.view(b, c); *got.LastMessage != first.Message || got.LastReadSeq != want.LastReadSeq || got.Version != want.Version {
			e.Errorf("after a restart %+v, want %+v", got, want)
		}
		if again := e.send(a, c, "1"); !again.Duplicate {
			e.Errorf("a repeat after a restart is stored again")
		}
	},
}
