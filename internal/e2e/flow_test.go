package e2e

import (
	"database/sql"
	"path/filepath"
	"slices"
	"testing"

	_ "modernc.org/sqlite" // the test looks into the gateway's database

	"xabar/chat"
	"xabar/internal/testkit"
)

// stored says whether a message is in the gateway's database at this moment.
func (w *world) stored(clientMsgID string) bool {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.gateway.DataDir, "xabar.db")+"?mode=ro")
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRowContext(testkit.Context(w.t), `SELECT count(*) FROM messages WHERE client_msg_id = ?`, clientMsgID).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n == 1
}

func TestTheWholeLifeOfAMessage(t *testing.T) {
	t.Parallel()
	for name, transport := range map[string]func(*testkit.ClientOptions){
		"websocket":            func(*testkit.ClientOptions) {},
		"polling then upgrade": polling,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a, b, c := w.page("A", transport), w.page("B", transport, acks(testkit.AckByHand)), w.page("C", transport)
			conversation := a.open(b)

			sent := a.must("message:send", message(conversation.ID, "x1", "salom"))
			if !w.stored("x1") {
				t.Error("the answer came before the message was stored")
			}
			if sent.Duplicate || sent.Message.Seq != 1 || sent.Message.Text != "salom" || sent.Message.ClientMsgID != "x1" {
				t.Errorf("the answer is %+v", sent)
			}

			got := b.hears(conversation.ID, 1)
			if got != sent.Message {
				t.Errorf("B heard %+v, the answer said %+v", got, sent.Message)
			}
			if seq := b.view(conversation.ID).LastDeliveredSeq; seq != 0 {
				t.Errorf("delivered is %d before B has acknowledged", seq)
			}
			h, err := b.WaitFor(testkit.Context(t), "message", nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Ack(testkit.Context(t), h); err != nil {
				t.Fatal(err)
			}
			a.hearsPosition("message:delivered", b, 1)

			if read := b.must("message:read", obj{"conversationId": conversation.ID, "seq": 1}); read.LastReadSeq != 1 || read.Unread != 0 {
				t.Errorf("read answered %+v", read)
			}
			a.hearsPosition("message:read", b, 1)

			// The sender reads its own message, a stranger reads it: nothing moves,
			// nobody hears it.
			mark := b.Mark()
			a.must("message:read", obj{"conversationId": conversation.ID, "seq": 1})
			c.refused("message:read", obj{"conversationId": conversation.ID, "seq": 1}, chat.CodeNotFound, "")
			c.refused("message:delivered", obj{"conversationId": conversation.ID, "seq": 1}, chat.CodeNotFound, "")
			a.settle()
			b.settle()
			for _, p := range []*page{a, b} {
				for _, h := range p.Events("message:read") {
					if testkit.Decode[position](h).UserID.String() != b.user.User.ID {
						t.Errorf("somebody heard a read that is none: %s", h.Args)
					}
				}
			}
			if _, err := b.WaitAfter(short(t, 1), mark, "message:read", nil); err == nil {
				t.Error("B heard a read of A's own message")
			}
		})
	}
}

func TestEventsHaveTheirOrderOnOneSocket(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B")
	if first := b.Events("")[0:]; first[0].Event != "$open" && first[0].Event != "connect" {
		t.Errorf("the first thing heard is %s", first[0].Event)
	}
	var fromServer []string
	for _, h := range b.Events("") {
		if h.Event[0] != '$' && h.Event != "connect" {
			fromServer = append(fromServer, h.Event)
		}
	}
	if len(fromServer) == 0 || fromServer[0] != "session" {
		t.Errorf("the server's events begin with %v, want session", fromServer)
	}
	conversation := a.open(b)
	a.send(conversation.ID, "x1")
	b.hears(conversation.ID, 1)
}

func TestTheSenderIsNotToldItsOwnMessageButItsOtherDevicesAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	phone, b := w.page("A"), w.page("B")
	laptop := w.page("A")
	conversation := phone.open(b)
	phone.send(conversation.ID, "x1", "x2")
	laptop.hears(conversation.ID, 2)
	phone.settle()
	if seqs := phone.heardSeqs(conversation.ID); len(seqs) != 0 {
		t.Errorf("the sending socket heard its own %v", seqs)
	}
	// CASES 27: what A sends is no unread for A, on any device.
	if view := laptop.view(conversation.ID); view.Unread != 0 || view.LastReadSeq != 2 || view.LastDeliveredSeq != 2 {
		t.Errorf("A's own view is %+v", view)
	}
	if total := laptop.must("conversations", obj{}).UnreadTotal; total != 0 {
		t.Errorf("A's unread is %d", total)
	}
}

func TestADirectConversationHasTheOthersNameFromTheFirstMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("Aziza"), w.page("Bobur")
	opened := a.must("conversation:open", obj{"userId": b.user.User.ID})
	if !opened.Created || opened.Conversation.Title != "Bobur" || opened.Conversation.Kind != chat.Direct ||
		opened.Conversation.FirstSeq != 1 || opened.Conversation.MemberCount != 2 {
		t.Errorf("A sees %+v", opened)
	}
	again := b.must("conversation:open", obj{"userId": a.user.User.ID})
	if again.Created || again.Conversation.ID != opened.Conversation.ID || again.Conversation.Title != "Aziza" {
		t.Errorf("B sees %+v", again)
	}
	// CASES 29: B's list shows it without a reload.
	h, err := b.WaitFor(testkit.Context(t), "conversation", nil)
	if err != nil {
		t.Fatal(err)
	}
	if seen := testkit.Decode[chat.Conversation](h); seen.ID != opened.Conversation.ID || seen.Title != "Aziza" {
		t.Errorf("B hears of %+v", seen)
	}
	// CASES 31.
	a.refused("conversation:open", obj{"userId": a.user.User.ID}, chat.CodeInvalidArgument, "userId")
	a.refused("message:send", obj{"toUserId": a.user.User.ID, "clientMsgId": "x", "text": "x"}, chat.CodeInvalidArgument, "toUserId")
	a.refused("conversation:open", obj{"userId": chat.NewID()}, chat.CodeNotFound, "")
	a.refused("conversation:open", obj{"userId": "nobody of this name"}, chat.CodeNotFound, "")
}

func TestSendToAUserOpensTheConversationOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B")
	var payloads []any
	for _, id := range ids("x", 20) {
		payloads = append(payloads, obj{"toUserId": b.user.User.ID, "clientMsgId": id, "text": id})
	}
	answers, err := a.EmitAll(testkit.Context(t), "message:send", payloads...)
	if err != nil {
		t.Fatal(err)
	}
	var conversation chat.ID
	for i, answer := range answers {
		r, err := parseReply(answer.Value)
		if err != nil || !r.OK || r.Message.Seq != int64(i)+1 {
			t.Fatalf("send %d: %s, %v", i, answer.Value, err)
		}
		if i > 0 && r.Message.ConversationID != conversation {
			t.Fatal("two conversations were opened")
		}
		conversation = r.Message.ConversationID
	}
	b.hears(conversation, 20)
	if seqs := b.heardSeqs(conversation); !slices.Equal(seqs, upTo(20)) {
		t.Errorf("B heard %v", seqs)
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b, c, d := w.page("A"), w.page("B"), w.page("C"), w.page("D")
	group := a.must("conversation:open", obj{"title": "Oila", "memberIds": []string{b.user.User.ID, c.user.User.ID}}).Conversation
	if group.Kind != chat.Group || group.Title != "Oila" || group.MemberCount != 3 {
		t.Errorf("the group is %+v", group)
	}
	for _, p := range []*page{b, c} {
		if _, err := p.WaitFor(testkit.Context(t), "conversation", nil); err != nil {
			t.Fatal(err)
		}
	}
	a.send(group.ID, "x1", "x2")
	b.send(group.ID, "y1")
	for _, p := range []*page{a, b, c} {
		p.hears(group.ID, map[*page]int64{a: 3, b: 2, c: 3}[p])
	}
	c.must("message:read", obj{"conversationId": group.ID, "seq": 3})
	a.hearsPosition("message:read", c, 3)
	b.hearsPosition("message:read", c, 3)
	if members := a.must("members", obj{"conversationId": group.ID}).Members; len(members) != 3 {
		t.Errorf("members are %+v", members)
	}
	receipts := a.must("receipts", obj{"conversationId": group.ID, "seq": 1}).Receipts
	if len(receipts) != 2 {
		t.Errorf("receipts are %+v", receipts)
	}
	for _, r := range receipts {
		if r.UserID.String() == c.user.User.ID && (r.ReadAt == nil || r.DeliveredAt == nil || r.DeliveredAt.After(r.ReadAt.Time)) {
			t.Errorf("C's receipt is %+v", r)
		}
	}
	for event, payload := range map[string]obj{
		"message:send": message(group.ID, "z1", "z"), "history": {"conversationId": group.ID},
		"members": {"conversationId": group.ID}, "receipts": {"conversationId": group.ID, "seq": 1},
		"message:read": {"conversationId": group.ID, "seq": 1},
	} {
		d.refused(event, payload, chat.CodeNotFound, "")
	}
	d.settle()
	if n := len(d.Events("message")); n != 0 {
		t.Errorf("a stranger heard %d messages", n)
	}
	a.refused("conversation:open", obj{"title": "", "memberIds": []string{b.user.User.ID}}, chat.CodeInvalidArgument, "title")
	a.refused("conversation:open", obj{"title": "x", "memberIds": []string{}}, chat.CodeInvalidArgument, "memberIds")
	a.refused("conversation:open", obj{"title": "x", "memberIds": []any{true}}, chat.CodeInvalidArgument, "memberIds")
}
