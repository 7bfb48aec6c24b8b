package storetest

import (
	"slices"
	"time"

	"xabar/chat"
)

var maintenanceCases = map[string]func(*env){
	"maintenance/Prune": func(e *env) {
		m, ok := e.store.(chat.Maintenance)
		if !ok {
			e.Fatal("the store can't be pruned")
		}
		a, b, c := e.pair()
		group, empty, young := e.group(a, b), e.direct(a, e.user("x")), e.direct(a, e.user("y"))
		e.fill(a, c, 7)
		e.fill(b, group, 5)
		e.deliver(b, c, 0, 4)
		e.read(b, c, 7)
		e.Clock.Step(time.Hour)
		before := e.Clock.Now() // what is of this moment stays
		e.fill(a, c, 2)
		e.fill(a, young, 2)
		e.deliver(b, c, 0, 9)

		n, next, err := m.Prune(e.ctx, before, "", 3)
		if err != nil || n != 3 || next == "" {
			e.Fatalf("one step: %d, %q, %v; want 3 and more to do", n, next, err)
		}
		var steps []int
		total, err := chat.PruneAll(e.ctx, m, before, func(deleted int) { steps = append(steps, deleted) })
		if err != nil || total != 9 || len(steps) == 0 {
			e.Fatalf("the rest: %d in %v, %v; want 9", total, steps, err)
		}
		if again, err := chat.PruneAll(e.ctx, m, before, nil); err != nil || again != 0 {
			e.Errorf("again: %d, %v", again, err)
		}
		page := e.history(b, chat.HistoryQuery{ConversationID: c})
		if !slices.Equal(seqs(page.Messages), []int64{9, 8}) || page.LastSeq != 9 {
			e.Errorf("left of the conversation: %v of %d", seqs(page.Messages), page.LastSeq)
		}
		if v := e.view(b, c); v.FirstSeq != 8 || v.Unread != 2 || v.LastReadSeq != 7 || v.LastDeliveredSeq != 9 {
			e.Errorf("positions and numbers stay: %+v", v)
		}
		if v := e.view(a, group); v.FirstSeq != 1 || v.LastMessage != nil || v.LastSeq != 5 || v.Unread != 5 {
			e.Errorf("the group without messages: %+v", v)
		}
		if v := e.view(a, young); v.LastSeq != 2 || v.FirstSeq != 1 {
			e.Errorf("what is younger: %+v", v)
		}
		if v := e.view(a, empty); v.LastSeq != 0 {
			e.Errorf("the empty one: %+v", v)
		}
		if seq := e.send(a, group, "goes on").Message.Seq; seq != 6 {
			e.Errorf("the next message is number %d, want 6", seq)
		}
		if r := e.receipts(a, c, 9)[b]; r.DeliveredAt == nil || r.Read {
			e.Errorf("receipts of what stays: %+v", r)
		}
		// a's two of 9 and 8 in c, two in young, one in the group: the pruned ones' events are gone.
		e.Clock.Step(chat.OutboxLease + time.Millisecond)
		if got := e.claim(e.store, 50); len(got) != 5 {
			e.Errorf("the outbox has %v", keys(got))
		}
		_, _, err = m.Prune(e.ctx, before, "x", 10)
		e.code(chat.CodeInvalidArgument, err, "a bad cursor")
	},
}
