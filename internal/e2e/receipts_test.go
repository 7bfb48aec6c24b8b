package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"xabar/chat"
	"xabar/internal/testkit"
)

// CASES 15.
func TestReadPositions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B")
	conversation := a.open(b)
	a.send(conversation.ID, ids("x", 7)...)
	b.hears(conversation.ID, 7)
	read := func(seq int64) reply {
		return b.must("message:read", obj{"conversationId": conversation.ID, "seq": seq})
	}
	if r := read(3); r.LastReadSeq != 3 || r.Unread != 4 {
		t.Errorf("read 3 answered %+v", r)
	}
	if r := read(999); r.LastReadSeq != 7 || r.Unread != 0 {
		t.Errorf("read 999 answered %+v", r)
	}
	if r := read(2); r.LastReadSeq != 7 {
		t.Errorf("reading back answered %+v", r)
	}
	if r := b.must("message:delivered", obj{"conversationId": conversation.ID, "seq": 1}); r.LastDeliveredSeq != 7 {
		t.Errorf("delivering back answered %+v", r)
	}
	for _, bad := range []any{0, -1, "3", 1.5, nil, true} {
		b.refused("message:read", obj{"conversationId": conversation.ID, "seq": bad}, chat.CodeInvalidArgument, "seq")
		b.refused("message:delivered", obj{"conversationId": conversation.ID, "seq": bad}, chat.CodeInvalidArgument, "seq")
	}
	last := int64(0)
	a.hearsPosition("message:read", b, 7)
	for _, h := range a.Events("message:read") {
		seq := testkit.Decode[position](h).Seq
		if seq <= last {
			t.Errorf("A heard %d after %d", seq, last)
		}
		last = seq
	}
}

// CASES 16: a seq that was read before it was delivered is delivered by that, and
// the times are never rewritten.
func TestReadingDelivers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B", acks(testkit.AckByHand))
	conversation := a.open(b)
	a.send(conversation.ID, ids("x", 5)...)
	b.hears(conversation.ID, 5)
	b.must("message:read", obj{"conversationId": conversation.ID, "seq": 5})
	a.hearsPosition("message:delivered", b, 5)
	a.hearsPosition("message:read", b, 5)
	receipt := func() chat.Receipt {
		list := a.must("receipts", obj{"conversationId": conversation.ID, "seq": 5}).Receipts
		if len(list) != 1 {
			t.Fatalf("receipts are %+v", list)
		}
		return list[0]
	}
	first := receipt()
	if first.DeliveredAt == nil || first.ReadAt == nil || first.DeliveredAt.After(first.ReadAt.Time) {
		t.Fatalf("the receipt is %+v", first)
	}
	h, err := b.WaitFor(testkit.Context(t), "message", func(h testkit.Heard) bool { return testkit.Decode[chat.Message](h).Seq == 5 })
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Ack(testkit.Context(t), h); err != nil {
		t.Fatal(err)
	}
	b.settle()
	b.must("message:read", obj{"conversationId": conversation.ID, "seq": 5})
	if again := receipt(); !again.DeliveredAt.Equal(first.DeliveredAt.Time) || !again.ReadAt.Equal(first.ReadAt.Time) {
		t.Errorf("the receipt was rewritten: %+v, then %+v", first, again)
	}
}

// CASES 14, shorter: both write and read everything.
func TestBothSidesReachTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B")
	conversation := a.open(b)
	const each = 60
	var wait sync.WaitGroup
	for _, p := range []*page{a, b} {
		wait.Go(func() {
			for i := range each {
				seq := p.send(conversation.ID, fmt.Sprintf("%s%d", p.user.User.Name, i))[0].Seq
				p.must("message:read", obj{"conversationId": conversation.ID, "seq": seq})
			}
		})
	}
	wait.Wait()
	for _, p := range []*page{a, b} {
		p.must("message:read", obj{"conversationId": conversation.ID, "seq": 2 * each})
	}
	for _, p := range []*page{a, b} {
		eventually(t, "both positions are at the end", func() bool {
			view := p.view(conversation.ID)
			return view.LastDeliveredSeq == 2*each && view.LastReadSeq == 2*each &&
				view.OthersDeliveredSeq != nil && *view.OthersDeliveredSeq == 2*each && *view.OthersReadSeq == 2*each
		})
	}
}

// CASES 28 and 30, and the `unread` event.
func TestUnreadIsPerConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b, c := w.page("A"), w.page("B"), w.page("C")
	c1, c2 := a.open(b), c.open(b)
	a.send(c1.ID, ids("x", 3)...)
	c.send(c2.ID, ids("y", 2)...)
	unread := func(total int64) {
		t.Helper()
		_, err := b.WaitFor(testkit.Context(t), "unread", func(h testkit.Heard) bool {
			return testkit.Decode[struct{ Total int64 }](h).Total == total
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	unread(5)
	b.must("message:read", obj{"conversationId": c1.ID, "seq": 3})
	unread(2)
	if one, two := b.view(c1.ID), b.view(c2.ID); one.Unread != 0 || two.Unread != 2 {
		t.Errorf("unread is %d and %d", one.Unread, two.Unread)
	}
	for range 3 {
		again := w.page("B")
		h, err := again.WaitFor(testkit.Context(t), "session", nil)
		if err != nil {
			t.Fatal(err)
		}
		if total := testkit.Decode[struct{ UnreadTotal int64 }](h).UnreadTotal; total != 2 {
			t.Errorf("after a reload unread is %d", total)
		}
	}
}

// CASES 11, shorter: acknowledgements that never come leave nothing behind.
func TestAcknowledgementsThatNeverCome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--ack-timeout", "300ms")
	a := w.page("A")
	var members []string
	var silent []*page
	for i := range 40 {
		p := w.page(fmt.Sprintf("silent %d", i), acks(testkit.AckNever))
		silent = append(silent, p)
		members = append(members, p.user.User.ID)
	}
	group := a.must("conversation:open", obj{"title": "Jim", "memberIds": members}).Conversation
	for range 5 {
		for _, id := range ids(fmt.Sprint(time.Now().UnixNano()), 10) {
			a.send(group.ID, id)
		}
	}
	silent[39].hears(group.ID, 50)
	eventually(t, "no acknowledgement is awaited", func() bool { return w.metric("xabar_pending_acks") == 0 })
	for _, p := range silent[:3] {
		if view := p.view(group.ID); view.LastDeliveredSeq != 0 {
			t.Errorf("delivered is %d", view.LastDeliveredSeq)
		}
	}
}

// CASES 33.
func TestABlipIsNoChangeOfPresence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B")
	got := a.must("presence", obj{"userIds": []string{b.user.User.ID, "nobody"}}).Presence
	if len(got) != 2 || !got[0].Online || got[1].Online || got[1].UserID != "nobody" || got[1].LastSeenAt != nil {
		t.Errorf("presence is %+v", got)
	}
	if err := b.Kill(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	mark := b.Mark()
	if _, err := b.WaitAfter(testkit.Context(t), mark, "connect", nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Disconnect(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	h, err := a.WaitFor(testkit.Context(t), "presence", nil)
	if err != nil {
		t.Fatal(err)
	}
	if state := testkit.Decode[chat.PresenceState](h); state.Online || state.LastSeenAt == nil {
		t.Errorf("the first thing that A hears of B is %+v", state)
	}
	if err := b.Connect(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.WaitFor(testkit.Context(t), "presence", func(h testkit.Heard) bool {
		return testkit.Decode[chat.PresenceState](h).Online
	}); err != nil {
		t.Fatal(err)
	}
	contacts := a.must("contacts", obj{}).Contacts
	if len(contacts) != 1 || contacts[0].User.Name != "B" || !contacts[0].Online {
		t.Errorf("contacts are %+v", contacts)
	}
}
