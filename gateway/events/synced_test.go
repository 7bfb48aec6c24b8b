package events

import (
	"testing"

	"xabar/chat"
)

func TestWhatASyncHasShownIsHeld(t *testing.T) {
	named, brought, reset, other := chat.NewID(), chat.NewID(), chat.NewID(), chat.NewID()
	page := &chat.SyncPage{Conversations: []chat.SyncConversation{
		{Conversation: chat.Conversation{ID: brought}, Messages: []chat.Message{{Seq: 4}, {Seq: 5}}},
		{Conversation: chat.Conversation{ID: reset}, Reset: true, Messages: []chat.Message{{Seq: 1}}},
	}}
	positions := map[chat.ID]chat.SyncPosition{named: {Seq: 9}, brought: {Seq: 3}, reset: {Seq: 70}}
	c := &client{sync: true}
	c.noteSynced(positions, page)
	t.Cleanup(func() { c.unsync.Stop() })
	for _, q := range []struct {
		conversation chat.ID
		seq          int64
		holds        bool
	}{
		{named, 9, true}, {named, 10, false}, {brought, 5, true}, {brought, 6, false},
		{reset, 1, true}, {reset, 2, false}, {other, 1, false},
	} {
		if got := c.holds(q.conversation, q.seq); got != q.holds {
			t.Errorf("seq %d of %v: %v", q.seq, q.conversation, got)
		}
	}
	page.Reset = true // of another history, as all that it named
	c.forgetSynced()
	c.noteSynced(positions, page)
	if c.holds(named, 9) || !c.holds(brought, 5) {
		t.Error("after a reset a named position is held, or what was brought is not")
	}
	c.forgetSynced()
	if c.holds(brought, 5) {
		t.Error("it is not forgotten")
	}
	if c := (&client{}); c.holds(named, 1) {
		t.Error("a client that does not sync holds something")
	}
}
