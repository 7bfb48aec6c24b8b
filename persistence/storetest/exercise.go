package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"xabar/chat"
)

// Exercise runs the whole contract against the backend.
func Exercise(t *testing.T, factory Factory) {
	for _, group := range []map[string]func(*env){
		userCases, contactCases, directCases, groupCases, sendCases, orderCases, positionCases,
		receiptCases, historyCases, syncCases, listCases, outboxCases, lifecycleCases, modelCases,
		settingCases, blockCases, groupChangeCases, adminCases, maintenanceCases, targetCases, dueCases, notifyViewCases, lookupCases, epochCases,
	} {
		for name, run := range group {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(newEnv(t, factory))
			})
		}
	}
}

// patience bounds every wait of a case.
const patience = 20 * time.Second

// env is one case's database, its first Store and shorthands that fail the test.
type env struct {
	*testing.T
	*Harness
	ctx   context.Context
	store chat.Store
}

var names atomic.Int64

func newEnv(t *testing.T, factory Factory) *env {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	e := &env{T: t, Harness: factory(t), ctx: ctx}
	e.store = e.open(Tuning{})
	return e
}

// open opens another Store on the case's database.
func (e *env) open(tuning Tuning) chat.Store {
	e.Helper()
	store := e.Harness.Open(e.T, tuning)
	e.Cleanup(func() {
		if err := store.Close(); err != nil {
			e.Errorf("Close: %v", err)
		}
	})
	return store
}

func (e *env) ok(err error, what string, args ...any) {
	e.Helper()
	if err != nil {
		e.Fatalf("%s: %v", fmt.Sprintf(what, args...), err)
	}
}

// code fails unless err is a chat.Error of that code.
func (e *env) code(want chat.Code, err error, what string, args ...any) {
	e.Helper()
	var got *chat.Error
	if !errors.As(err, &got) || got.Code != want {
		e.Fatalf("%s: got %v, want %s", fmt.Sprintf(what, args...), err, want)
	}
}

// user makes a user of that name, with an external id of its own.
func (e *env) user(name string) chat.ID {
	e.Helper()
	u, err := e.store.EnsureUser(e.ctx, chat.UserRef(fmt.Sprintf("%s-%d", name, names.Add(1))), name)
	e.ok(err, "EnsureUser(%s)", name)
	return u.ID
}

func (e *env) users(n int) []chat.ID {
	e.Helper()
	ids := make([]chat.ID, n)
	for i := range ids {
		ids[i] = e.user(fmt.Sprintf("user%04d", i))
	}
	return ids
}

func (e *env) direct(a, b chat.ID) chat.ID {
	e.Helper()
	c, _, err := e.store.OpenDirect(e.ctx, a, b)
	e.ok(err, "OpenDirect")
	return c.ID
}

// pair is two users and their direct conversation.
func (e *env) pair() (a, b, conversation chat.ID) {
	e.Helper()
	a, b = e.user("a"), e.user("b")
	return a, b, e.direct(a, b)
}

func (e *env) group(owner chat.ID, members ...chat.ID) chat.ID {
	e.Helper()
	c, err := e.store.CreateGroup(e.ctx, owner, "group", members)
	e.ok(err, "CreateGroup")
	return c.ID
}

// sent is what done was called with.
type sent struct {
	chat.SendResult
	err error
}

// start sends without waiting.
func start(ctx context.Context, store chat.Store, cmd chat.SendMessage) <-chan sent {
	answered := make(chan sent, 2) // 2: a second call of done is not lost
	store.Send(ctx, cmd, func(res chat.SendResult, err error) { answered <- sent{res, err} })
	return answered
}

// wait takes an answer within patience.
func wait[T any](e *env, answered <-chan T) T {
	e.Helper()
	select {
	case answer := <-answered:
		return answer
	case <-time.After(patience):
		e.Fatalf("no answer within %v", patience)
		panic("not reached")
	}
}

func (e *env) trySend(sender, conversation chat.ID, clientMsgID, text string) (chat.SendResult, error) {
	e.Helper()
	s := wait(e, start(e.ctx, e.store, chat.SendMessage{
		SenderID: sender, ConversationID: conversation, ClientMsgID: clientMsgID, Text: text,
	}))
	return s.SendResult, s.err
}

func (e *env) send(sender, conversation chat.ID, clientMsgID string) chat.SendResult {
	e.Helper()
	res, err := e.trySend(sender, conversation, clientMsgID, "text of "+clientMsgID)
	e.ok(err, "Send %s", clientMsgID)
	return res
}

// fill sends n messages without waiting in between and gives the last seq.
func (e *env) fill(sender, conversation chat.ID, n int) int64 {
	e.Helper()
	prefix := chat.NewID().String()
	pending := make([]<-chan sent, n)
	for i := range pending {
		pending[i] = start(e.ctx, e.store, chat.SendMessage{
			SenderID: sender, ConversationID: conversation, ClientMsgID: fmt.Sprintf("%s-%d", prefix, i), Text: "x",
		})
	}
	var last int64
	for _, p := range pending {
		s := wait(e, p)
		e.ok(s.err, "Send")
		last = s.Message.Seq
	}
	return last
}

// moved is what done was called with.
type moved struct {
	chat.PositionResult
	err error
}

func startMove(ctx context.Context, store chat.Store, m chat.PositionMove) <-chan moved {
	answered := make(chan moved, 2)
	store.MovePosition(ctx, m, func(res chat.PositionResult, err error) { answered <- moved{res, err} })
	return answered
}

func (e *env) tryMove(m chat.PositionMove) (chat.PositionResult, error) {
	e.Helper()
	r := wait(e, startMove(e.ctx, e.store, m))
	return r.PositionResult, r.err
}

func (e *env) read(user, conversation chat.ID, upTo int64) chat.PositionResult {
	e.Helper()
	res, err := e.tryMove(chat.PositionMove{Kind: chat.Read, UserID: user, ConversationID: conversation, UpTo: upTo})
	e.ok(err, "read up to %d", upTo)
	return res
}

func (e *env) deliver(user, conversation chat.ID, after, upTo int64) chat.PositionResult {
	e.Helper()
	res, err := e.tryMove(chat.PositionMove{
		Kind: chat.Delivered, UserID: user, ConversationID: conversation, After: after, UpTo: upTo,
	})
	e.ok(err, "deliver (%d, %d]", after, upTo)
	return res
}

// view is the conversation as user sees it.
func (e *env) view(user, conversation chat.ID) chat.Conversation {
	e.Helper()
	c, err := e.store.Conversation(e.ctx, user, conversation)
	e.ok(err, "Conversation")
	return c
}

// positions checks delivered and read of a member.
func (e *env) positions(user, conversation chat.ID, delivered, read int64) {
	e.Helper()
	c := e.view(user, conversation)
	if c.LastDeliveredSeq != delivered || c.LastReadSeq != read || c.Unread != c.LastSeq-read {
		e.Fatalf("delivered %d, read %d, unread %d of %d; want %d and %d",
			c.LastDeliveredSeq, c.LastReadSeq, c.Unread, c.LastSeq, delivered, read)
	}
}

func seqs(messages []chat.Message) []int64 {
	all := make([]int64, len(messages))
	for i, m := range messages {
		all[i] = m.Seq
	}
	return all
}

// count is from, from+step, … to, both included.
func count(from, to int64) []int64 {
	var all []int64
	step := int64(1)
	if to < from {
		step = -1
	}
	for n := from; n != to+step; n += step {
		all = append(all, n)
	}
	return all
}

func ptr[T any](v T) *T { return &v }
