package e2e

import (
	"encoding/json"
	"slices"
	"testing"

	"xabar/chat"
)

func seqsOf(messages []chat.Message) []int64 {
	seqs := make([]int64, len(messages))
	for i := range messages {
		seqs[i] = messages[i].Seq
	}
	return seqs
}

func decodeSync(t testing.TB, r reply) []chat.SyncConversation {
	t.Helper()
	list := make([]chat.SyncConversation, len(r.Conversations))
	for i, raw := range r.Conversations {
		if err := json.Unmarshal(raw, &list[i]); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

func between(from, to int64) []int64 { return upTo(to)[from-1:] }

func falling(from, to int64) []int64 {
	seqs := between(to, from)
	slices.Reverse(seqs)
	return seqs
}

// CASES 8.
func TestHistoryPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b, c := w.page("A"), w.page("B"), w.page("C")
	conversation := a.open(b)
	a.burst(conversation.ID, ids("x", 122))

	first := b.must("history", obj{"conversationId": conversation.ID, "limit": 500})
	if got := seqsOf(first.Messages); !slices.Equal(got, falling(122, 73)) || !first.HasMore || first.LastSeq != 122 {
		t.Errorf("first page %v", got)
	}
	// A message between two pages moves nothing.
	a.send(conversation.ID, "y1")
	second := b.must("history", obj{"conversationId": conversation.ID, "limit": 500, "beforeSeq": 73})
	if got := seqsOf(second.Messages); !slices.Equal(got, falling(72, 23)) || !second.HasMore {
		t.Errorf("second page %v", got)
	}
	third := b.must("history", obj{"conversationId": conversation.ID, "limit": 500, "beforeSeq": 23})
	if got := seqsOf(third.Messages); !slices.Equal(got, falling(22, 1)) || third.HasMore {
		t.Errorf("third page %v, hasMore %v", got, third.HasMore)
	}
	up := b.must("history", obj{"conversationId": conversation.ID, "afterSeq": 0, "limit": 3})
	if got := seqsOf(up.Messages); !slices.Equal(got, upTo(3)) || !up.HasMore {
		t.Errorf("oldest first: %v", got)
	}
	for limit, want := range map[int]int{0: 1, -5: 1, 1: 1, 50: 50, 51: 50} {
		if got := len(b.must("history", obj{"conversationId": conversation.ID, "limit": limit}).Messages); got != want {
			t.Errorf("limit %d gave %d", limit, got)
		}
	}
	if got := len(b.must("history", obj{"conversationId": conversation.ID}).Messages); got != 50 {
		t.Errorf("without a limit %d came", got)
	}
	c.refused("history", obj{"conversationId": conversation.ID}, chat.CodeNotFound, "")
	c.refused("history", obj{"conversationId": chat.NewID()}, chat.CodeNotFound, "")
	b.refused("history", obj{"conversationId": conversation.ID, "beforeSeq": 5, "afterSeq": 2}, chat.CodeInvalidArgument, "afterSeq")
	b.refused("history", obj{"conversationId": conversation.ID, "beforeSeq": "x"}, chat.CodeInvalidArgument, "beforeSeq")
	b.refused("history", obj{"conversationId": "x"}, chat.CodeInvalidArgument, "conversationId")
	b.refused("history", obj{}, chat.CodeInvalidArgument, "conversationId")
}

func TestHistoryOf120IsThreePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B")
	conversation := a.open(b)
	a.burst(conversation.ID, ids("x", 120))
	var all []int64
	var sizes []int
	payload := obj{"conversationId": conversation.ID, "limit": 500}
	for {
		got := b.must("history", payload)
		all = append(all, seqsOf(got.Messages)...)
		sizes = append(sizes, len(got.Messages))
		if !got.HasMore {
			break
		}
		payload["beforeSeq"] = all[len(all)-1]
	}
	if !slices.Equal(sizes, []int{50, 50, 20}) || !slices.Equal(all, falling(120, 1)) {
		t.Errorf("pages of %v: %v", sizes, all)
	}
}

// CASES 1 and 6: messages missed, and one that comes live before the sync.
func TestSyncBringsWhatWasMissedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B")
	conversation := a.open(b)
	if err := b.Disconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.burst(conversation.ID, ids("x", 120))
	mark := b.Mark()
	if err := b.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.WaitAfter(t.Context(), mark, "session", nil); err != nil {
		t.Fatal(err)
	}
	a.send(conversation.ID, "live")
	b.hears(conversation.ID, 121)

	held := map[int64]int{121: 1}
	page := decodeSync(t, b.must("sync", obj{"positions": obj{}}))[0]
	for {
		for _, m := range page.Messages {
			held[m.Seq]++
		}
		if !page.HasMore {
			break
		}
		last := page.Messages[len(page.Messages)-1].Seq
		more := b.must("history", obj{"conversationId": conversation.ID, "afterSeq": last})
		page = chat.SyncConversation{Messages: more.Messages, HasMore: more.HasMore}
	}
	for seq := int64(1); seq <= 121; seq++ {
		if held[seq] < 1 {
			t.Errorf("seq %d is missing", seq)
		}
	}
	if len(held) != 121 || slices.Contains(b.heardSeqs(conversation.ID), 120) {
		t.Errorf("%d seqs are held; live came %v", len(held), b.heardSeqs(conversation.ID))
	}
	// What the answer brought is delivered once the client says so.
	if seq := b.view(conversation.ID).LastDeliveredSeq; seq != 0 {
		t.Errorf("delivered is %d before it is confirmed", seq)
	}
	b.must("message:delivered", obj{"conversationId": conversation.ID, "seq": 121})
	a.hearsPosition("message:delivered", b, 121)
	// A second sync has no news.
	if again := b.must("sync", obj{"positions": obj{conversation.ID.String(): 121}}); len(again.Conversations) != 0 {
		t.Errorf("sync without news answered %s", again.Conversations)
	}
	b.refused("sync", obj{"positions": obj{conversation.ID.String(): "x"}}, chat.CodeInvalidArgument, "positions")
	b.refused("sync", obj{"positions": obj{conversation.ID.String(): -1}}, chat.CodeInvalidArgument, "positions")
	b.refused("sync", obj{"positions": obj{"x": 1}}, chat.CodeInvalidArgument, "positions")
	b.refused("sync", obj{"positions": obj{}, "cursor": "nonsense"}, chat.CodeInvalidArgument, "cursor")
}

func TestPositionsNamedInSyncCountAsDelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B")
	conversation := a.open(b)
	if err := b.Disconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.send(conversation.ID, ids("x", 5)...)
	if err := b.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.must("sync", obj{"positions": obj{conversation.ID.String(): obj{"seq": 3, "version": 3}}})
	a.hearsPosition("message:delivered", b, 3)
	eventually(t, "delivered is 3", func() bool { return b.view(conversation.ID).LastDeliveredSeq == 3 })
}
