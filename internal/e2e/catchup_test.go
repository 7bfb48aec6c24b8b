package e2e

import (
	"slices"
	"testing"
	"time"

	"xabar/chat"
	"xabar/internal/testkit"
)

// A page that only says on("message", (m, ack) => ack()) misses nothing.
func TestASimplePageIsCaughtUpOverThreeOutages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B", simple)
	conversation := a.open(b)
	sent := int64(0)
	for outage := range 3 {
		a.burst(conversation.ID, ids("live"+string(rune('a'+outage)), 10))
		sent += 10
		b.hears(conversation.ID, sent)
		if err := b.Disconnect(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.burst(conversation.ID, ids("missed"+string(rune('a'+outage)), 120))
		sent += 120
		if err := b.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.hears(conversation.ID, sent)
	}
	a.hearsPosition("message:delivered", b, sent)
	if seqs := b.heardSeqs(conversation.ID); !slices.Equal(seqs, upTo(sent)) {
		t.Errorf("B heard %d messages of %d: %v", len(seqs), sent, seqs)
	}
	if view := b.view(conversation.ID); view.LastDeliveredSeq != sent || view.Unread != sent {
		t.Errorf("B's view is %+v", view)
	}
}

// Live messages follow behind the catch-up, in order, while it runs.
func TestLiveMessagesFollowBehindACatchUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B", simple)
	conversation := a.open(b)
	if err := b.Disconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.burst(conversation.ID, ids("missed", 200))
	if err := b.StartConnecting(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.burst(conversation.ID, ids("live", 100))
	b.hears(conversation.ID, 300)
	a.hearsPosition("message:delivered", b, 300)
	if seqs := b.heardSeqs(conversation.ID); !slices.Equal(seqs, upTo(300)) {
		t.Errorf("B heard %v", seqs)
	}
}

func TestWithoutAcknowledgementsACatchUpStopsAfterItsFirstWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--ack-timeout", "200ms")
	a, b := w.page("A"), w.page("B", simple, acks(testkit.AckNever))
	conversation := a.open(b)
	if err := b.Disconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.burst(conversation.ID, ids("missed", 120))
	if err := b.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.hears(conversation.ID, 50)
	// Live messages go on when the catch-up has given up.
	n := 0
	eventually(t, "a live message comes", func() bool {
		n++
		a.send(conversation.ID, ids("live", n)[n-1])
		b.settle()
		seqs := b.heardSeqs(conversation.ID)
		return seqs[len(seqs)-1] > 120
	})
	if seqs := b.heardSeqs(conversation.ID)[:50]; !slices.Equal(seqs, upTo(50)) {
		t.Errorf("the first window is %v", seqs)
	}
	if seqs := b.heardSeqs(conversation.ID)[50:]; seqs[0] <= 120 || !slices.IsSorted(seqs) {
		t.Errorf("behind it came %v", seqs)
	}
	if view := b.view(conversation.ID); view.LastDeliveredSeq != 0 {
		t.Errorf("delivered is %d without any acknowledgement", view.LastDeliveredSeq)
	}
}

// A client on a slow network acknowledges after the gateway has let live messages go
// on: its catch-up goes on all the same, and nothing is missing in the end.
func TestALateAcknowledgementGoesOnWithTheCatchUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--ack-timeout", "200ms")
	a, b := w.page("A"), w.page("B", simple, acks(testkit.AckAfter(1500*time.Millisecond)))
	conversation := a.open(b)
	if err := b.Disconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.burst(conversation.ID, ids("missed", 120))
	if err := b.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.hears(conversation.ID, 50)
	eventually(t, "a live message comes", func() bool {
		a.send(conversation.ID, ids("live", len(b.heardSeqs(conversation.ID)))...)
		b.settle()
		seqs := b.heardSeqs(conversation.ID)
		return seqs[len(seqs)-1] > 120
	})
	last := a.must("history", obj{"conversationId": conversation.ID, "limit": 1}).LastSeq
	a.hearsPosition("message:delivered", b, last)
	seqs := b.heardSeqs(conversation.ID)
	slices.Sort(seqs)
	if !slices.Equal(seqs, upTo(last)) {
		t.Errorf("B heard %v", seqs)
	}
}

// DESIGN guarantee 6, CASES 16: an acknowledgement beyond a gap claims nothing of
// the gap.
func TestAnAcknowledgementBeyondAGapWaitsForIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B", acks(testkit.AckByHand))
	conversation := a.open(b)
	a.send(conversation.ID, ids("x", 8)...)
	heard := map[int64]testkit.Heard{}
	for seq := int64(1); seq <= 8; seq++ {
		h, err := b.WaitFor(testkit.Context(t), "message", func(h testkit.Heard) bool {
			return testkit.Decode[chat.Message](h).Seq == seq
		})
		if err != nil {
			t.Fatal(err)
		}
		heard[seq] = h
	}
	ack := func(seqs ...int64) {
		for _, seq := range seqs {
			if err := b.Ack(testkit.Context(t), heard[seq]); err != nil {
				t.Fatal(err)
			}
		}
	}
	ack(1, 2, 3, 4)
	a.hearsPosition("message:delivered", b, 4)
	ack(8)
	b.settle()
	if seq := b.view(conversation.ID).LastDeliveredSeq; seq != 4 {
		t.Errorf("delivered is %d while 5 to 7 are missing", seq)
	}
	ack(6, 5)
	a.hearsPosition("message:delivered", b, 6)
	if seq := b.view(conversation.ID).LastDeliveredSeq; seq != 6 {
		t.Errorf("delivered is %d while 7 is missing", seq)
	}
	ack(7)
	a.hearsPosition("message:delivered", b, 8)
	last := int64(0)
	for _, h := range a.Events("message:delivered") {
		seq := testkit.Decode[position](h).Seq
		if seq <= last {
			t.Errorf("delivered was announced at %d after %d", seq, last)
		}
		last = seq
	}
}

func TestAGapIsClosedByTheExplicitEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B", acks(testkit.AckByHand))
	conversation := a.open(b)
	a.send(conversation.ID, ids("x", 4)...)
	b.hears(conversation.ID, 4)
	for _, h := range b.Events("message") {
		if testkit.Decode[chat.Message](h).Seq == 4 {
			if err := b.Ack(testkit.Context(t), h); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.must("message:delivered", obj{"conversationId": conversation.ID, "seq": 2})
	if seq := b.view(conversation.ID).LastDeliveredSeq; seq != 2 {
		t.Errorf("delivered is %d", seq)
	}
	b.must("message:delivered", obj{"conversationId": conversation.ID, "seq": 3})
	a.hearsPosition("message:delivered", b, 4)
}

// CASES 16: B lacks 5 to 7 and sends 8: what it lacks is not read by that.
func TestAnsweringBeyondAGapReadsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B", acks(testkit.AckByHand))
	conversation := a.open(b)
	a.send(conversation.ID, ids("x", 7)...)
	b.hears(conversation.ID, 7)
	b.must("message:delivered", obj{"conversationId": conversation.ID, "seq": 4})
	if seq := b.send(conversation.ID, "y")[0].Seq; seq != 8 {
		t.Fatalf("B's seq is %d", seq)
	}
	if view := b.view(conversation.ID); view.LastDeliveredSeq != 4 || view.LastReadSeq != 0 {
		t.Errorf("B's positions are %d and %d", view.LastDeliveredSeq, view.LastReadSeq)
	}
	// The gap closed, its own message counts as held.
	b.must("message:delivered", obj{"conversationId": conversation.ID, "seq": 7})
	a.hearsPosition("message:delivered", b, 8)
	if n := len(a.Events("message:read")); n != 0 {
		t.Errorf("A heard %d reads", n)
	}
	// With everything delivered an answer is a read, and A hears of it.
	a.send(conversation.ID, "x8")
	b.hears(conversation.ID, 9)
	b.must("message:delivered", obj{"conversationId": conversation.ID, "seq": 9})
	b.send(conversation.ID, "y2")
	a.hearsPosition("message:read", b, 10)
}

// CASES 12 on one node: an acknowledgement after the timeout still counts.
func TestALateAcknowledgementCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--ack-timeout", "100ms")
	a, b := w.page("A"), w.page("B", acks(testkit.AckAfter(700*time.Millisecond)))
	conversation := a.open(b)
	a.send(conversation.ID, "x1")
	a.hearsPosition("message:delivered", b, 1)
}

// CASES 2 as far as one node can show it: who comes back gets what is its own.
func TestOfflineThenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B")
	conversation := a.open(b)
	if err := b.Disconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.send(conversation.ID, "x1")
	if got := a.must("receipts", obj{"conversationId": conversation.ID, "seq": 1}).Receipts; len(got) != 1 || got[0].Delivered || got[0].DeliveredAt != nil {
		t.Errorf("receipts of an undelivered message: %+v", got)
	}
	if err := b.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	page := decodeSync(t, b.must("sync", obj{"positions": obj{conversation.ID.String(): 0}}))[0]
	if !slices.Equal(seqsOf(page.Messages), []int64{1}) {
		t.Errorf("sync brought %v", seqsOf(page.Messages))
	}
	b.must("message:delivered", obj{"conversationId": conversation.ID, "seq": 1})
	a.hearsPosition("message:delivered", b, 1)
	if got := a.must("receipts", obj{"conversationId": conversation.ID, "seq": 1}).Receipts; len(got) != 1 || got[0].DeliveredAt == nil || got[0].ReadAt != nil {
		t.Errorf("receipts of a delivered message: %+v", got)
	}
}
