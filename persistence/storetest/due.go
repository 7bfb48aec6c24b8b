package storetest

import (
	"fmt"
	"sync"
	"time"

	"xabar/chat"
)

const (
	dueWait = 20 * time.Second
	lease   = 30 * time.Second
)

// scheduled schedules users where they lack messages.
func (e *env) scheduled(want int, users ...chat.ID) {
	e.Helper()
	n, err := e.store.ScheduleUndelivered(e.ctx, users, e.Clock.Now().Add(dueWait))
	e.ok(err, "ScheduleUndelivered")
	if n != want {
		e.Fatalf("%d waits began, want %d", n, want)
	}
}

func (e *env) claimDue(store chat.Store, limit int) []chat.ClaimedDue {
	e.Helper()
	claimed, err := store.ClaimDue(e.ctx, limit, lease)
	e.ok(err, "ClaimDue")
	return claimed
}

// due waits for the end of the wait and claims what there is.
func (e *env) due(want int) []chat.ClaimedDue {
	e.Helper()
	e.Clock.Step(dueWait)
	claimed := e.claimDue(e.store, 100)
	if len(claimed) != want {
		e.Fatalf("claimed %d waits, want %d: %+v", len(claimed), want, claimed)
	}
	return claimed
}

func (e *env) nothingDue() {
	e.Helper()
	at, any, err := e.store.NextDue(e.ctx)
	e.ok(err, "NextDue")
	if any {
		e.Fatalf("something is due at %v", at)
	}
}

func (e *env) finish(done ...chat.DueDone) {
	e.Helper()
	e.ok(e.store.FinishDue(e.ctx, done), "FinishDue")
}

func (e *env) notifyView(user, conversation chat.ID) chat.NotifyView {
	e.Helper()
	views, err := e.store.NotifyViews(e.ctx, []chat.DueKey{{UserID: user, ConversationID: conversation}})
	e.ok(err, "NotifyViews")
	if len(views) != 1 || views[0].UserID != user || views[0].ConversationID != conversation {
		e.Fatalf("views %+v", views)
	}
	return views[0]
}

var dueCases = map[string]func(*env){
	"due/TheFirstStands": func(e *env) {
		a, b, c := e.pair()
		e.send(a, c, "1")
		e.scheduled(1, a, b) // a holds its own message
		first := e.Clock.Now()
		e.Clock.Step(5 * time.Second)
		e.send(a, c, "2")
		e.scheduled(0, b)
		at, any, err := e.store.NextDue(e.ctx)
		e.ok(err, "NextDue")
		if !any || !at.Equal(first.Add(dueWait)) {
			e.Errorf("due at %v, want %v", at, first.Add(dueWait))
		}
		if early := e.claimDue(e.store, 10); len(early) != 0 {
			e.Errorf("claimed %+v before its time", early)
		}
		e.Clock.Step(dueWait - 5*time.Second)
		got := e.claimDue(e.store, 10)
		if len(got) != 1 || got[0].UserID != b || got[0].ConversationID != c || got[0].Reason != chat.NotDelivered || got[0].Seq != 1 || got[0].Looks != 0 || got[0].Held {
			e.Errorf("claimed %+v", got)
		}
	},
	"due/LeaseAndTakeOver": func(e *env) {
		second := e.open(Tuning{})
		a, b, c := e.pair()
		e.send(a, c, "1")
		e.scheduled(1, b)
		first := e.due(1)
		if got := e.claimDue(second, 10); len(got) != 0 {
			e.Errorf("claimed twice: %+v", got)
		}
		at, _, err := e.store.NextDue(e.ctx)
		e.ok(err, "NextDue")
		if !at.Equal(e.Clock.Now().Add(lease)) {
			e.Errorf("next at %v, want the end of the lease", at)
		}
		e.Clock.Step(lease)
		got := e.claimDue(second, 10)
		if len(got) != 1 || got[0].ID != first[0].ID {
			e.Fatalf("after the lease %+v, want %+v", got, first)
		}
		e.finish(chat.DueDone{ClaimedDue: got[0], UpTo: 1})
		e.nothingDue()
	},
	"due/ClaimsDoNotOverlap": func(e *env) {
		second := e.open(Tuning{})
		u := e.users(31)
		g := e.group(u[0], u[1:]...)
		e.send(u[0], g, "1")
		e.scheduled(30, u...)
		e.Clock.Step(dueWait)
		var mu sync.Mutex // guards claimed
		claimed := map[chat.ID]int{}
		var all sync.WaitGroup
		for i := range 6 {
			store := e.store
			if i%2 == 1 {
				store = second
			}
			all.Go(func() {
				for range 20 {
					got, err := store.ClaimDue(e.ctx, 4, lease)
					if err != nil {
						e.Errorf("ClaimDue: %v", err)
					}
					mu.Lock()
					for _, d := range got {
						claimed[d.UserID]++
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		for user, n := range claimed {
			if n != 1 {
				e.Errorf("%v was claimed %d times", user, n)
			}
		}
		for got := e.claimDue(e.store, 100); len(got) > 0; got = e.claimDue(e.store, 100) {
			for _, d := range got {
				claimed[d.UserID]++
			}
		}
		if len(claimed) != 30 {
			e.Errorf("%d of 30 were claimed", len(claimed))
		}
	},
	"due/AllOfAUser": func(e *env) {
		a, b := e.user("a"), e.user("b")
		peers := e.users(5)
		for n, peer := range peers {
			e.send(peer, e.direct(peer, b), fmt.Sprint(n))
		}
		e.send(b, e.direct(a, b), "x")
		e.scheduled(6, a, b)
		e.Clock.Step(dueWait)
		got := e.claimDue(e.store, 1)
		n := len(got)
		if n != 1 && n != 5 {
			e.Fatalf("claimed %d", n)
		}
		for _, d := range got {
			if d.UserID != got[0].UserID {
				e.Errorf("a claim of one has two users")
			}
		}
		if rest := e.claimDue(e.store, 1); len(rest) != 6-n {
			e.Errorf("then %d", len(rest))
		}
	},
	"due/PutOff": func(e *env) {
		a, b, c := e.pair()
		e.send(a, c, "1")
		e.scheduled(1, b)
		got := e.due(1)
		morning := e.Clock.Now().Add(9 * time.Hour)
		got[0].Seq = 7
		e.finish(chat.DueDone{ClaimedDue: got[0], Again: morning, Held: true, Next: e.Clock.Now().Add(dueWait)})
		e.scheduled(0, b)
		if at, _, err := e.store.NextDue(e.ctx); err != nil || !at.Equal(morning) {
			e.Errorf("next at %v, %v", at, err)
		}
		e.Clock.Step(9 * time.Hour)
		again := e.claimDue(e.store, 10)
		if len(again) != 1 || !again[0].Held || again[0].Looks != 1 || again[0].Seq != 7 || again[0].ID != got[0].ID {
			e.Errorf("claimed %+v", again)
		}
	},
	"due/DecidedOnce": func(e *env) {
		a, b, c := e.pair()
		e.send(a, c, "1")
		e.scheduled(1, b)
		e.finish(chat.DueDone{ClaimedDue: e.due(1)[0], UpTo: 1, Next: e.Clock.Now().Add(dueWait)})
		e.nothingDue()
		if v := e.notifyView(b, c); v.Notified != 1 {
			e.Errorf("notified up to %d", v.Notified)
		}
		e.scheduled(0, b) // it stays undelivered, and is decided
		n, err := e.store.ScheduleBehind(e.ctx, []chat.OutboxKey{{ConversationID: c, Seq: 1}}, e.Clock.Now())
		e.ok(err, "ScheduleBehind")
		if n != 0 {
			e.Error("what is decided is scheduled again")
		}
		e.send(a, c, "2")
		e.scheduled(1, b)
	},
	"due/AMessageOnTheWayStartsANewWait": func(e *env) {
		a, b, c := e.pair()
		e.send(a, c, "1")
		e.scheduled(1, b)
		got := e.due(1)
		e.send(a, c, "2") // while the notification is on its way
		e.scheduled(0, b) // which stands
		next := e.Clock.Now().Add(dueWait)
		e.finish(chat.DueDone{ClaimedDue: got[0], UpTo: 1, Next: next})
		again := e.due(1)
		if again[0].ID == got[0].ID || again[0].Seq != 2 || again[0].Looks != 0 {
			e.Errorf("the new wait is %+v", again[0])
		}
		e.finish(chat.DueDone{ClaimedDue: got[0], UpTo: 9}) // of the wait before: nothing
		if v := e.notifyView(b, c); v.Notified != 1 {
			e.Errorf("a wait that was over has decided up to %d", v.Notified)
		}
	},
	"due/NoNewWaitForWhatArrived": func(e *env) {
		a, b, c := e.pair()
		e.send(a, c, "1")
		e.scheduled(1, b)
		got := e.due(1)
		e.send(a, c, "2")
		e.deliver(b, c, 0, 2)
		e.finish(chat.DueDone{ClaimedDue: got[0], UpTo: 1, Next: e.Clock.Now().Add(dueWait)})
		e.nothingDue()
	},
	"due/Reasons": func(e *env) {
		a, b, c := e.pair()
		res := e.send(a, c, "1")
		at := e.Clock.Now().Add(dueWait)
		e.store.CloseOutbox(chat.OutboxKey{ConversationID: c, Seq: res.Message.Seq},
			chat.Due{UserID: b, ConversationID: c, Reason: chat.NotDelivered, Seq: 1, At: at},
			chat.Due{UserID: b, ConversationID: c, Reason: chat.StillUnread, Seq: 1, At: at})
		e.eventually("both are stored", func() bool { _, any, _ := e.store.NextDue(e.ctx); return any })
		got := e.due(2)
		e.finish(chat.DueDone{ClaimedDue: got[0], UpTo: 1}, chat.DueDone{ClaimedDue: got[1], UpTo: 1})
		e.nothingDue()
	},
	"due/Behind": func(e *env) {
		u := e.users(4)
		g := e.group(u[0], u[1:]...)
		e.send(u[0], g, "1")
		e.send(u[0], g, "2")
		e.deliver(u[1], g, 0, 2)
		e.deliver(u[2], g, 0, 1)
		behind := func(seq int64) int {
			n, err := e.store.ScheduleBehind(e.ctx, []chat.OutboxKey{{ConversationID: g, Seq: seq}}, e.Clock.Now().Add(dueWait))
			e.ok(err, "ScheduleBehind")
			return n
		}
		if n := behind(1); n != 1 {
			e.Errorf("%d lack the first message, want 1", n)
		}
		if n := behind(2); n != 1 {
			e.Errorf("%d more lack the second, want 1", n)
		}
		claimed := e.due(2)
		for _, d := range claimed {
			if d.UserID != u[2] && d.UserID != u[3] {
				e.Errorf("%v was scheduled", d)
			}
		}
	},
	"due/LeftByACrash": func(e *env) {
		u := e.users(9)
		g := e.group(u[0], u[1:]...)
		e.send(u[0], g, "1")
		old := e.direct(u[0], u[1])
		e.send(u[0], old, "2")
		e.deliver(u[2], g, 0, 1)
		e.Clock.Step(time.Hour)
		e.send(u[0], g, "3")
		since, at := e.Clock.Now().Add(-time.Minute), e.Clock.Now().Add(dueWait)
		total, cursor := 0, ""
		for range 20 {
			n, next, err := e.store.ScheduleLeft(e.ctx, cursor, since, at, 3)
			e.ok(err, "ScheduleLeft")
			total += n
			if cursor = next; next == "" {
				break
			}
		}
		if cursor != "" || total != 8 {
			e.Errorf("%d waits began, cursor %q; want 8", total, cursor)
		}
		for _, d := range e.due(8) {
			if d.ConversationID != g || d.UserID == u[0] {
				e.Errorf("scheduled %+v", d)
			}
		}
		_, _, err := e.store.ScheduleLeft(e.ctx, "nonsense", since, at, 3)
		e.code(chat.CodeInvalidArgument, err, "a cursor")
	},
	"due/ClosedWithTheAbsent": func(e *env) {
		u := e.users(501)
		g := e.group(u[0], u[1:]...)
		e.send(u[0], g, "1")
		e.send(u[0], g, "2")
		at := e.Clock.Now().Add(dueWait)
		var due []chat.Due
		for _, user := range u[1:] {
			due = append(due, chat.Due{UserID: user, ConversationID: g, Reason: chat.NotDelivered, Seq: 1, At: at})
		}
		e.store.CloseOutbox(chat.OutboxKey{ConversationID: g, Seq: 1}, due...)
		// The same again, as of an event that was taken over.
		e.store.CloseOutbox(chat.OutboxKey{ConversationID: g, Seq: 2}, due...)
		e.eventually("both events are closed", func() bool {
			_, any, err := e.store.NextDue(e.ctx)
			return err == nil && any
		})
		e.Clock.Step(dueWait)
		var claimed []chat.ClaimedDue
		e.eventually("all waits are claimed", func() bool {
			claimed = append(claimed, e.claimDue(e.store, 100)...)
			return len(claimed) >= 500
		})
		users := map[chat.ID]bool{}
		for _, d := range claimed {
			users[d.UserID] = true
		}
		if len(claimed) != 500 || len(users) != 500 {
			e.Errorf("%d waits of %d users", len(claimed), len(users))
		}
		e.Clock.Step(chat.OutboxLease)
		if left := e.claim(e.store, 10); len(left) != 0 {
			e.Errorf("events %v are left", keys(left))
		}
		var done []chat.DueDone
		for _, d := range claimed {
			done = append(done, chat.DueDone{ClaimedDue: d, UpTo: 2, Next: at})
		}
		start := time.Now()
		e.finish(done...)
		if took := time.Since(start); took > 5*time.Second {
			e.Errorf("500 waits ended in %v", took)
		}
		e.nothingDue()
	},
}

var notifyViewCases = map[string]func(*env){
	"view/Direct": func(e *env) {
		a, b, c := e.pair()
		e.send(a, c, "1")
		e.send(a, c, "2")
		e.read(b, c, 1)
		e.send(a, c, "3")
		e.deliver(b, c, 1, 2)
		e.target(b, "web-push", "one")
		v := e.notifyView(b, c)
		if !v.Member || v.User.ID != b || v.User.Name != "b" || v.Kind != chat.Direct || v.Title != "a" || v.SenderName != "a" ||
			v.Text != "text of 3" || v.LastSeq != 3 || v.Delivered != 2 || v.Read != 1 || v.Notified != 0 ||
			v.Undelivered != 1 || v.Unread != 2 || v.Blocked || v.MutedUntil != nil || !v.Settings.Notify || !v.LastAt.Equal(e.Clock.Now()) {
			e.Errorf("view %+v", v)
		}
		if len(v.Channels) != 1 || v.Channels[0].Channel != "web-push" || len(v.Channels[0].Target) != 0 {
			e.Errorf("channels %+v", v.Channels)
		}
		until := e.Clock.Now().Add(time.Hour)
		e.ok(e.store.Mute(e.ctx, b, c, &until), "Mute")
		e.ok(e.store.Block(e.ctx, a, b), "Block")
		if v = e.notifyView(b, c); !v.Blocked || v.MutedUntil == nil || !v.MutedUntil.Equal(until) {
			e.Errorf("blocked and muted: %+v", v)
		}
		if other := e.notifyView(a, c); !other.Blocked || other.MutedUntil != nil || other.Undelivered != 0 || other.Unread != 0 {
			e.Errorf("the other side: %+v", other)
		}
	},
	"view/Group": func(e *env) {
		u := e.users(3)
		g := e.group(u[0], u[1])
		e.send(u[0], g, "before")
		_, err := e.store.AddMembers(e.ctx, u[0], g, []chat.ID{u[2]})
		e.ok(err, "AddMembers")
		if v := e.notifyView(u[2], g); v.Undelivered != 0 || v.Text != "" || v.SenderName != "" {
			e.Errorf("a newcomer sees %+v", v)
		}
		e.send(u[0], g, "1")
		e.send(u[1], g, "2")
		v := e.notifyView(u[2], g)
		if v.Kind != chat.Group || v.Title != "group" || v.SenderName != "user0001" || v.Undelivered != 2 || v.Text != "text of 2" {
			e.Errorf("view %+v", v)
		}
		// Its own last message is nothing to tell it of.
		if v = e.notifyView(u[1], g); v.SenderName != "user0000" || v.Text != "text of 1" {
			e.Errorf("view %+v", v)
		}
		e.ok(e.store.RemoveMember(e.ctx, u[0], g, u[2]), "RemoveMember")
		if v = e.notifyView(u[2], g); v.Member {
			e.Errorf("of who left: %+v", v)
		}
	},
	"view/ManyInOrder": func(e *env) {
		b := e.user("b")
		var dueKeys []chat.DueKey
		for n, peer := range e.users(5) {
			c := e.direct(peer, b)
			e.send(peer, c, fmt.Sprint(n))
			dueKeys = append(dueKeys, chat.DueKey{UserID: b, ConversationID: c}, chat.DueKey{UserID: peer, ConversationID: chat.NewID()})
		}
		views, err := e.store.NotifyViews(e.ctx, dueKeys)
		e.ok(err, "NotifyViews")
		for i, v := range views {
			if v.DueKey != dueKeys[i] || v.Member != (i%2 == 0) || v.Member && v.Text != fmt.Sprintf("text of %d", i/2) {
				e.Errorf("view %d: %+v", i, v)
			}
		}
		if none, err := e.store.NotifyViews(e.ctx, nil); err != nil || len(none) != 0 {
			e.Errorf("no keys: %v, %v", none, err)
		}
	},
	"view/ErasedMessages": func(e *env) {
		a, b, c := e.pair()
		e.send(a, c, "1")
		n, err := e.store.EraseMessages(e.ctx, a, 10)
		e.ok(err, "EraseMessages")
		if v := e.notifyView(b, c); n != 1 || v.Undelivered != 0 || v.Text != "" || v.LastSeq != 1 {
			e.Errorf("%d erased, view %+v", n, v)
		}
	},
	"view/CountIsBounded": func(e *env) {
		a, b, c := e.pair()
		e.fill(a, c, chat.MaxCounted+5)
		if v := e.notifyView(b, c); v.Undelivered != chat.MaxCounted || v.Unread != chat.MaxCounted {
			e.Errorf("counted %d and %d", v.Undelivered, v.Unread)
		}
		if e.notifyView(a, c).Undelivered != 0 {
			e.Error("the sender lacks its own messages")
		}
	},
}
