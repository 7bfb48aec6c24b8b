package storetest

import (
	"slices"
	"time"

	"xabar/chat"
)

var positionCases = map[string]func(*env){
	"positions/ForwardOnly": func(e *env) {
		a, b, c := e.pair()
		e.fill(a, c, 7)
		res := e.read(b, c, 4)
		if res.OldRead != 0 || res.NewRead != 4 || res.OldDelivered != 0 || res.NewDelivered != 4 || res.LastSeq != 7 ||
			!res.At.Equal(chat.At(e.Clock.Now()).Time) || res.Kind != chat.Direct || res.MemberCount != 2 || len(res.MemberIDs) != 2 ||
			!slices.Contains(res.MemberIDs, a) {
			e.Errorf("read up to 4: %+v", res)
		}
		for _, back := range []chat.PositionResult{e.read(b, c, 3), e.read(b, c, 4), e.deliver(b, c, 0, 2)} {
			if back.OldRead != 4 || back.NewRead != 4 || back.OldDelivered != 4 || back.NewDelivered != 4 || !back.At.IsZero() {
				e.Errorf("nothing to move: %+v", back)
			}
		}
		if res := e.deliver(b, c, 0, 6); res.NewDelivered != 6 || res.NewRead != 4 {
			e.Errorf("delivered up to 6: %+v", res)
		}
		e.positions(b, c, 6, 4)
	},
	"positions/Clamped": func(e *env) {
		a, b, c := e.pair()
		e.fill(a, c, 7)
		if res := e.deliver(b, c, 0, 999); res.NewDelivered != 7 {
			e.Errorf("delivered 999: %+v", res)
		}
		if res := e.read(b, c, 999); res.NewRead != 7 {
			e.Errorf("read 999: %+v", res)
		}
		e.positions(b, c, 7, 7)
	},
	"positions/Unhurried": func(e *env) {
		a, b, c := e.pair()
		e.fill(a, c, 2)
		var answers []<-chan moved
		for after := range int64(2) {
			answers = append(answers, startMove(e.ctx, e.store, chat.PositionMove{
				Kind: chat.Delivered, UserID: b, ConversationID: c, After: after, UpTo: after + 1, Unhurried: true,
			}))
		}
		e.store.HurryPositions(b)
		var last int64
		for _, answer := range answers {
			r := wait(e, answer)
			if r.err != nil {
				e.Fatal(r.err)
			}
			last = r.NewDelivered
		}
		if last != 2 {
			e.Errorf("the last answer says that delivered is %d", last)
		}
		e.positions(b, c, 2, 0)
	},
	"positions/GapWaits": func(e *env) {
		a, b, c := e.pair()
		e.fill(a, c, 8)
		e.deliver(b, c, 0, 4)
		if res := e.deliver(b, c, 7, 8); res.NewDelivered != 4 || res.OldDelivered != 4 || !res.At.IsZero() {
			e.Errorf("a claim beyond the gap: %+v", res)
		}
		if res := e.deliver(b, c, 4, 7); res.NewDelivered != 7 {
			e.Errorf("the gap closed: %+v", res)
		}
		if res := e.deliver(b, c, 7, 8); res.NewDelivered != 8 {
			e.Errorf("the claim again: %+v", res)
		}
		if res := e.deliver(b, c, 2, 6); res.NewDelivered != 8 {
			e.Errorf("an old claim: %+v", res)
		}
	},
	"positions/ReadDelivers": func(e *env) {
		a, b, c := e.pair()
		e.fill(a, c, 5)
		e.read(b, c, 5)
		e.positions(b, c, 5, 5)
		if v := e.view(a, c); *v.OthersDeliveredSeq != 5 || *v.OthersReadSeq != 5 {
			e.Errorf("the sender sees %d delivered, %d read", *v.OthersDeliveredSeq, *v.OthersReadSeq)
		}
	},
	"positions/OwnOnly": func(e *env) {
		u := e.users(3)
		c := e.group(u[0], u[1], u[2])
		e.fill(u[0], c, 3)
		e.read(u[1], c, 3)
		e.positions(u[2], c, 0, 0)
		_, err := e.tryMove(chat.PositionMove{Kind: chat.Read, UserID: e.user("x"), ConversationID: c, UpTo: 3})
		e.code(chat.CodeNotFound, err, "a stranger's read")
		if v := e.view(u[0], c); *v.OthersReadSeq != 0 || *v.OthersDeliveredSeq != 0 {
			e.Errorf("the lowest of the others moved: %+v", v)
		}
	},
	"positions/Together": func(e *env) {
		a, b, c := e.pair()
		e.fill(a, c, 9)
		release := e.Stall(e.T)
		moves := []chat.PositionMove{
			{Kind: chat.Delivered, UpTo: 1}, {Kind: chat.Delivered, After: 1, UpTo: 3}, {Kind: chat.Delivered, After: 5, UpTo: 6},
			{Kind: chat.Read, UpTo: 2}, {Kind: chat.Delivered, After: 3, UpTo: 5}, {Kind: chat.Read, UpTo: 1}, {Kind: chat.Read, UpTo: 99},
		}
		var pending []<-chan moved
		for _, m := range moves {
			m.UserID, m.ConversationID = b, c
			pending = append(pending, startMove(e.ctx, e.store, m))
		}
		release()
		want := [][2]int64{{1, 0}, {3, 0}, {3, 0}, {3, 2}, {5, 2}, {5, 2}, {9, 9}}
		var before [2]int64
		for i, p := range pending {
			got := wait(e, p)
			e.ok(got.err, "move %d", i)
			if got.NewDelivered != want[i][0] || got.NewRead != want[i][1] || got.OldDelivered != before[0] || got.OldRead != before[1] {
				e.Errorf("move %d: %+v, want %v after %v", i, got.PositionResult, want[i], before)
			}
			before = want[i]
		}
		e.positions(b, c, 9, 9)
	},
	"positions/SenderHoldsItsOwn": func(e *env) {
		a, b, c := e.pair()
		res := e.send(a, c, "1").Sender
		if res.OldDelivered != 0 || res.NewDelivered != 1 || res.OldRead != 0 || res.NewRead != 1 || res.LastSeq != 1 ||
			!res.At.Equal(chat.At(e.Clock.Now()).Time) || res.Kind != chat.Direct || res.MemberCount != 2 {
			e.Errorf("the sender's positions: %+v", res)
		}
		e.positions(a, c, 1, 1)
		e.positions(b, c, 0, 0)
		// Message 1 hasn't reached b: its own message moves nothing.
		if res := e.send(b, c, "2").Sender; res.NewDelivered != 0 || res.NewRead != 0 || !res.At.IsZero() || res.LastSeq != 2 {
			e.Errorf("beyond a gap: %+v", res)
		}
		e.positions(b, c, 0, 0)
		// Delivered, not read: answering is reading.
		e.deliver(b, c, 0, 2)
		e.deliver(a, c, 1, 2)
		if res := e.send(a, c, "3").Sender; res.OldRead != 1 || res.NewRead != 3 || res.OldDelivered != 2 || res.NewDelivered != 3 {
			e.Errorf("answering: %+v", res)
		}
		e.positions(a, c, 3, 3)
	},
	"positions/BothSidesReachTheEnd": func(e *env) {
		a, b, c := e.pair()
		for range 20 {
			last := e.fill(a, c, 3)
			e.deliver(b, c, 0, last)
			e.read(b, c, last)
			last = e.fill(b, c, 3)
			e.deliver(a, c, 0, last)
			e.read(a, c, last)
		}
		last := e.view(a, c).LastSeq
		e.read(b, c, last)
		e.positions(a, c, last, last)
		e.positions(b, c, last, last)
	},
}

// receipts gives the receipts of one message by user.
func (e *env) receipts(user, conversation chat.ID, seq int64) map[chat.ID]chat.Receipt {
	e.Helper()
	all := map[chat.ID]chat.Receipt{}
	page := chat.PageRequest{Limit: 10}
	for range 1000 {
		p, err := e.store.Receipts(e.ctx, user, conversation, seq, page)
		e.ok(err, "Receipts")
		for _, r := range p.Items {
			if _, twice := all[r.UserID]; twice {
				e.Fatalf("%v is listed twice", r.UserID)
			}
			all[r.UserID] = r
		}
		if page.Cursor = p.NextCursor; page.Cursor == "" {
			return all
		}
	}
	e.Fatal("the pages of receipts have no end")
	return nil
}

func (e *env) at(what string, got *chat.Time, want chat.Time) {
	e.Helper()
	if got == nil || !got.Equal(want.Time) {
		e.Errorf("%s at %v, want %v", what, got, want)
	}
}

var receiptCases = map[string]func(*env){
	"receipts/FirstTimesStay": func(e *env) {
		a, b, c := e.pair()
		e.fill(a, c, 6)
		r := e.receipts(a, c, 2)
		if len(r) != 1 || r[b].Delivered || r[b].Read || r[b].DeliveredAt != nil || r[b].ReadAt != nil {
			e.Fatalf("before anything: %+v", r)
		}
		e.Clock.Step(time.Minute)
		delivered := chat.At(e.Clock.Now())
		e.deliver(b, c, 0, 3)
		e.Clock.Step(time.Minute)
		read := chat.At(e.Clock.Now())
		e.read(b, c, 2)
		e.Clock.Step(time.Minute)
		later := chat.At(e.Clock.Now())
		e.read(b, c, 5)
		e.deliver(b, c, 0, 6)

		two := e.receipts(a, c, 2)[b]
		e.at("2 delivered", two.DeliveredAt, delivered)
		e.at("2 read", two.ReadAt, read)
		three := e.receipts(a, c, 3)[b]
		e.at("3 delivered", three.DeliveredAt, delivered)
		e.at("3 read", three.ReadAt, later)
		five := e.receipts(a, c, 5)[b]
		e.at("5 delivered (by being read)", five.DeliveredAt, later)
		e.at("5 read", five.ReadAt, later)
		six := e.receipts(a, c, 6)[b]
		if !six.Delivered || six.Read || six.ReadAt != nil {
			e.Errorf("6: %+v", six)
		}
	},
	"receipts/DeliveredNotAfterRead": func(e *env) {
		a, b, c := e.pair()
		e.fill(a, c, 2)
		e.deliver(b, c, 0, 2)
		e.Clock.Step(-5 * time.Minute)
		e.read(b, c, 2)
		r := e.receipts(a, c, 2)[b]
		if r.DeliveredAt == nil || r.ReadAt == nil || r.DeliveredAt.After(r.ReadAt.Time) {
			e.Errorf("delivered at %v, read at %v", r.DeliveredAt, r.ReadAt)
		}
		e.Clock.Step(time.Hour)
		e.read(b, c, 2)
		if again := e.receipts(a, c, 2)[b]; !again.DeliveredAt.Equal(r.DeliveredAt.Time) || !again.ReadAt.Equal(r.ReadAt.Time) {
			e.Errorf("rewritten: %+v, was %+v", again, r)
		}
	},
	"receipts/AnsweringIsReading": func(e *env) {
		a, b, c := e.pair()
		e.fill(a, c, 1)
		e.deliver(b, c, 0, 1)
		e.Clock.Step(time.Minute)
		at := chat.At(e.Clock.Now())
		e.send(b, c, "answer")
		e.at("1 read", e.receipts(a, c, 1)[b].ReadAt, at)
	},
	"receipts/OthersWhoCanSeeIt": func(e *env) {
		u := e.users(4)
		c := e.group(u[0], u[1], u[2])
		e.fill(u[0], c, 2)
		e.read(u[1], c, 1)
		_, err := e.store.AddMembers(e.ctx, u[0], c, []chat.ID{u[3]})
		e.ok(err, "AddMembers")
		r := e.receipts(u[0], c, 1)
		if len(r) != 2 || !r[u[1]].Read || r[u[2]].Delivered {
			e.Errorf("receipts %+v", r)
		}
		if _, self := e.receipts(u[1], c, 1)[u[1]]; self {
			e.Errorf("the caller is none of the others")
		}
		_, err = e.store.Receipts(e.ctx, u[3], c, 1, chat.PageRequest{})
		e.code(chat.CodeNotFound, err, "of a message from before one's joining")
		_, err = e.store.Receipts(e.ctx, u[0], c, 99, chat.PageRequest{})
		e.code(chat.CodeNotFound, err, "of a message that is not there")
		_, err = e.store.Receipts(e.ctx, u[0], c, 1, chat.PageRequest{Cursor: "x"})
		e.code(chat.CodeInvalidArgument, err, "with a bad cursor")
	},
	"receipts/LargeGroupsOnlyWhether": func(e *env) {
		u := e.users(chat.ReceiptMembers + 1)
		c := e.group(u[0], u[1:]...)
		e.fill(u[0], c, 2)
		for _, user := range u[1:11] {
			e.read(user, c, 1)
		}
		r := e.receipts(u[0], c, 1)
		if len(r) != chat.ReceiptMembers {
			e.Fatalf("%d receipts, want %d", len(r), chat.ReceiptMembers)
		}
		for i, user := range u[1:] {
			got := r[user]
			if want := i < 10; got.Read != want || got.Delivered != want || got.ReadAt != nil || got.DeliveredAt != nil {
				e.Errorf("member %d: %+v", i, got)
			}
		}
		if n, err := e.Statements.CountReceipts(c); err != nil || n != 0 {
			e.Errorf("%d rows of times are kept, %v", n, err)
		}
	},
	"receipts/SmallestGroupWithTimes": func(e *env) {
		u := e.users(chat.ReceiptMembers)
		c := e.group(u[0], u[1:]...)
		e.fill(u[0], c, 1)
		e.read(u[1], c, 1)
		e.at("read", e.receipts(u[0], c, 1)[u[1]].ReadAt, chat.At(e.Clock.Now()))
	},
	"receipts/OneRowForMovesTogether": func(e *env) {
		a, b, c := e.pair()
		e.fill(a, c, 20)
		before, err := e.Statements.CountReceipts(c)
		e.ok(err, "CountReceipts")
		release := e.Stall(e.T)
		var pending []<-chan moved
		for n := range int64(20) {
			pending = append(pending, startMove(e.ctx, e.store, chat.PositionMove{
				Kind: chat.Delivered, UserID: b, ConversationID: c, After: n, UpTo: n + 1,
			}))
		}
		release()
		for _, p := range pending {
			e.ok(wait(e, p).err, "move")
		}
		e.positions(b, c, 20, 0)
		// The first one may have gone alone; the others waited and share a flush.
		if after, err := e.Statements.CountReceipts(c); err != nil || after-before > 2 {
			e.Errorf("%d rows for 20 moves, %v; want at most 2", after-before, err)
		}
	},
}
