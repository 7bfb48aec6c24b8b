package storetest

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"xabar/chat"
)

// modelSteps bounds one run of a model: every step is a commit.
const modelSteps = 25

var modelCases = map[string]func(*env){
	// Random sends, repeats, receipts and departures against a model of the rules.
	"model/Conversation": func(e *env) {
		second := e.open(Tuning{})
		stores := []chat.Store{e.store, second}
		rapid.Check(e.T, func(t *rapid.T) {
			u := e.users(3)
			m := &model{
				e: e, users: u, conversation: e.group(u[0], u[1:]...),
				stored: map[string]chat.Message{}, delivered: map[chat.ID]int64{}, read: map[chat.ID]int64{},
			}
			steps := rapid.IntRange(1, modelSteps).Draw(t, "steps")
			for range steps {
				e.store = rapid.SampledFrom(stores).Draw(t, "store")
				if rapid.Bool().Draw(t, "send") {
					m.send(t)
				} else {
					m.move(t)
				}
			}
			m.check(t)
		})
	},
}

// model is what a conversation must look like.
type model struct {
	e               *env
	users           []chat.ID
	conversation    chat.ID
	last            int64
	stored          map[string]chat.Message // by sender and clientMsgId
	delivered, read map[chat.ID]int64
}

func (m *model) send(t *rapid.T) {
	sender := rapid.SampledFrom(m.users).Draw(t, "sender")
	id := fmt.Sprint(rapid.IntRange(1, 6).Draw(t, "clientMsgId")) // few: repeats are likely
	res, err := m.e.trySend(sender, m.conversation, id, rapid.StringMatching(`[a-z]{1,5}`).Draw(t, "text"))
	if err != nil {
		t.Fatalf("Send: %v", err)
	}
	key := sender.String() + id
	if first, repeat := m.stored[key]; repeat {
		if !res.Duplicate || res.Message != first {
			t.Fatalf("a repeat answers %+v, want %+v", res, first)
		}
		return
	}
	seq := res.Message.Seq
	if res.Duplicate || seq <= m.last {
		t.Fatalf("seq %d (duplicate %v) after %d", seq, res.Duplicate, m.last)
	}
	if m.delivered[sender] >= seq-1 {
		m.delivered[sender], m.read[sender] = seq, seq
	}
	m.stored[key], m.last = res.Message, seq
	if res.Sender.NewDelivered != m.delivered[sender] || res.Sender.NewRead != m.read[sender] {
		t.Fatalf("the sender's positions %+v, want %d and %d", res.Sender, m.delivered[sender], m.read[sender])
	}
}

func (m *model) move(t *rapid.T) {
	user := rapid.SampledFrom(m.users).Draw(t, "user")
	move := chat.PositionMove{
		Kind:           rapid.SampledFrom([]chat.PositionKind{chat.Delivered, chat.Read}).Draw(t, "kind"),
		UserID:         user,
		ConversationID: m.conversation,
		UpTo:           rapid.Int64Range(1, m.last+3).Draw(t, "upTo"),
	}
	move.After = rapid.Int64Range(0, move.UpTo).Draw(t, "after")
	oldDelivered, oldRead := m.delivered[user], m.read[user]
	upTo := min(move.UpTo, m.last)
	if move.Kind == chat.Read {
		m.read[user] = max(oldRead, upTo)
		m.delivered[user] = max(oldDelivered, m.read[user])
	} else if move.After <= oldDelivered {
		m.delivered[user] = max(oldDelivered, upTo)
	}
	res, err := m.e.tryMove(move)
	if err != nil {
		t.Fatalf("%+v: %v", move, err)
	}
	if res.OldDelivered != oldDelivered || res.OldRead != oldRead || res.NewDelivered != m.delivered[user] || res.NewRead != m.read[user] {
		t.Fatalf("%+v from %d/%d: %+v, want %d/%d", move, oldDelivered, oldRead, res, m.delivered[user], m.read[user])
	}
}

// check compares what is stored with the model.
func (m *model) check(t *rapid.T) {
	page := m.e.history(m.users[0], chat.HistoryQuery{ConversationID: m.conversation, AfterSeq: ptr(int64(0))})
	if len(page.Messages) != len(m.stored) || page.LastSeq != m.last {
		t.Fatalf("%d messages up to %d, want %d up to %d", len(page.Messages), page.LastSeq, len(m.stored), m.last)
	}
	if !slices.IsSortedFunc(page.Messages, func(a, b chat.Message) int { return a.CreatedAt.Compare(b.CreatedAt.Time) }) {
		t.Fatalf("createdAt falls while seq rises: %+v", page.Messages)
	}
	for _, got := range page.Messages {
		if want := m.stored[got.SenderID.String()+got.ClientMsgID]; got != want {
			t.Fatalf("stored %+v, want %+v", got, want)
		}
	}
	for _, user := range m.users {
		m.e.positions(user, m.conversation, m.delivered[user], m.read[user])
	}
}
