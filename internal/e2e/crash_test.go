package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xabar/chat"
	"xabar/internal/testkit"
	"xabar/internal/testkit/pgtest"
)

// talk is one sender, whose official client retries until it is answered, and one
// recipient, in a conversation of their own.
type talk struct {
	sender, recipient *page
	simple            *page // a third member whose page does not sync; may be nil
	conversation      chat.ID
	laptop            *page            // a second device of the recipient; may be nil
	acknowledged      []chat.Message   // in the order of the sends
	pace              <-chan time.Time // each send waits for a tick, if there are any
}

// retrying makes the official client repeat what is not answered within half a
// second, for good, one send after the other.
func retrying(o *testkit.ClientOptions) {
	o.Options = map[string]any{"ackTimeout": 500, "retries": 1000}
}

// keepTalking sends until stop is closed, and notes what was acknowledged.
func (k *talk) keepTalking(t testing.TB, ctx context.Context, stop <-chan struct{}, sent *atomic.Int64) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		if k.pace != nil {
			<-k.pace
		}
		id := fmt.Sprintf("%s-%d", k.sender.user.User.Name, i)
		for {
			raw, err := k.sender.EmitNative(ctx, "message:send", message(k.conversation, id, "text of "+id))
			if err != nil {
				t.Errorf("send %s: %v", id, err)
				return
			}
			r, err := parseReply(raw)
			if err != nil || (!r.OK && !r.Error.Retryable) {
				t.Errorf("send %s answered %s: %v", id, raw, err)
				return
			}
			if r.OK {
				k.acknowledged = append(k.acknowledged, r.Message)
				sent.Add(1)
				break
			}
		}
	}
}

// check compares what was acknowledged with what is stored and what a sync gives.
func (k *talk) check(t testing.TB) {
	t.Helper()
	var stored []chat.Message
	page := chat.SyncConversation{HasMore: true}
	for after := int64(0); page.HasMore; {
		more := k.recipient.must("history", obj{"conversationId": k.conversation, "afterSeq": after})
		page.HasMore = more.HasMore
		stored = append(stored, more.Messages...)
		after = stored[len(stored)-1].Seq
	}
	if !slices.IsSortedFunc(stored, func(a, b chat.Message) int { return int(a.Seq - b.Seq) }) {
		t.Error("the history does not rise")
	}
	byID := map[string]chat.Message{}
	for _, m := range stored {
		if _, twice := byID[m.ClientMsgID]; twice {
			t.Errorf("%s is stored twice", m.ClientMsgID)
		}
		byID[m.ClientMsgID] = m
	}
	last := int64(0)
	for _, m := range k.acknowledged {
		if byID[m.ClientMsgID] != m {
			t.Errorf("%s was acknowledged as %+v and is stored as %+v", m.ClientMsgID, m, byID[m.ClientMsgID])
		}
		if m.Seq <= last {
			t.Errorf("%s has seq %d after %d", m.ClientMsgID, m.Seq, last)
		}
		last = m.Seq
	}
	synced := decodeSync(t, k.recipient.must("sync", obj{"positions": obj{}}))
	synced = slices.DeleteFunc(synced, func(c chat.SyncConversation) bool { return c.Conversation.ID != k.conversation })
	if len(synced) != 1 || !slices.EqualFunc(synced[0].Messages, stored[:min(50, len(stored))], func(a, b chat.Message) bool { return a == b }) {
		t.Error("sync and history give different messages")
	}
}

func (w *world) talks(n int) []*talk {
	w.t.Helper()
	list := make([]*talk, n)
	for i := range list {
		k := &talk{sender: w.page(fmt.Sprint("s", i), retrying), recipient: w.page(fmt.Sprint("r", i))}
		k.conversation = k.sender.open(k.recipient).ID
		list[i] = k
	}
	return list
}

// crash lets talks go on while something is broken again and again at random
// moments, and then checks that nothing was lost, doubled or reordered.
func (w *world) crash(rounds int, breakIt func()) {
	w.t.Helper()
	talks := w.talks(8)
	ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Minute)
	defer cancel()
	stop := make(chan struct{})
	var sent atomic.Int64
	var talking sync.WaitGroup
	for _, k := range talks {
		talking.Go(func() { k.keepTalking(w.t, ctx, stop, &sent) })
	}
	for range rounds {
		// Not before something was stored since the last time, else rounds prove nothing.
		before := sent.Load()
		eventually(w.t, "sends are acknowledged again", func() bool { return sent.Load() > before+50 })
		<-time.After(time.Duration(rand.Int64N(int64(200 * time.Millisecond))))
		breakIt()
	}
	close(stop)
	talking.Wait()
	if w.t.Failed() {
		return
	}
	// The last break may still be going on: talks that saw the stop first have not waited for its end.
	eventually(w.t, "everybody is answered after the last break", func() bool {
		return !slices.ContainsFunc(talks, func(k *talk) bool { return !k.recipient.ask("conversations", obj{}).OK })
	})
	for _, k := range talks {
		k.check(w.t)
	}
	w.t.Logf("%d messages acknowledged over %d rounds", sent.Load(), rounds)
}

func TestKillingTheGatewayLosesNothing(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]func(t *testing.T) []string{
		"sqlite":   func(*testing.T) []string { return nil },
		"postgres": func(t *testing.T) []string { return []string{"--database-url", pgtest.Database(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, args(t)...)
			w.crash(20, func() {
				w.gateway.Kill()
				w.gateway.Restart()
			})
		})
	}
}

func TestAnImmediateRestartOfPostgreSQLLosesNothing(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Durable: true})
	database, err := server.Database(testkit.Context(t), "crash")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "--database-url", database)
	w.crash(20, func() {
		if err := server.Restart(true); err != nil {
			t.Fatal(err)
		}
	})
}

// secret is what nodes of one deployment share.
const secret = "a secret of at least thirty-two bytes"

// nodes are gateways on one PostgreSQL database, with the same users.
func nodes(t *testing.T, n int, args ...string) []*world {
	t.Helper()
	database := pgtest.Database(t)
	js := testkit.NewJS(t)
	list := make([]*world, n)
	for i := range list {
		args := append([]string{"--database-url", database, "--jwt-secret", secret}, args...)
		list[i] = &world{t, testkit.StartGateway(t, testkit.GatewayOptions{Args: args}), js, database}
	}
	return list
}

// CASES 4: stored on N1, which is killed before its answer arrives; repeated on N2.
func TestARepeatOnAnotherNodeHasTheSameSeq(t *testing.T) {
	t.Parallel()
	n := nodes(t, 2)
	a, b := n[0].page("A"), n[1].page("B")
	onTwo := n[1].page("A")
	conversation := a.open(b)
	a.send(conversation.ID, "x0")
	// The answer is on its way when the node dies: the client never sees it.
	if err := a.Pause(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	if err := a.Send(testkit.Context(t), "message:send", message(conversation.ID, "x1", "text of x1")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "x1 is stored", func() bool {
		return onTwo.must("history", obj{"conversationId": conversation.ID}).LastSeq == 2
	})
	n[0].gateway.Kill()
	again := onTwo.must("message:send", message(conversation.ID, "x1", "text of x1"))
	if !again.Duplicate || again.Message.Seq != 2 {
		t.Errorf("the repeat answered %+v", again)
	}
	if got := seqsOf(onTwo.must("history", obj{"conversationId": conversation.ID}).Messages); !slices.Equal(got, []int64{2, 1}) {
		t.Errorf("stored are %v", got)
	}
}

// CASES 5 and the race of two nodes for one clientMsgId.
func TestTwoNodesStoreOneMessage(t *testing.T) {
	t.Parallel()
	n := nodes(t, 2)
	a, b := n[0].page("A"), n[1].page("B")
	sockets := []*page{a, n[1].page("A")}
	conversation := a.open(b)
	for i := range 30 {
		id := fmt.Sprint("x", i)
		var racing sync.WaitGroup
		answers := make([]reply, 2)
		for j, p := range sockets {
			racing.Go(func() {
				raw, err := p.Emit(testkit.Context(t), "message:send", message(conversation.ID, id, "text"))
				if err != nil {
					t.Error(err)
					return
				}
				if answers[j], err = parseReply(raw); err != nil {
					t.Error(err)
				}
			})
		}
		racing.Wait()
		if !answers[0].OK || answers[0].Message != answers[1].Message || answers[0].Duplicate == answers[1].Duplicate {
			t.Fatalf("%s: %+v and %+v", id, answers[0], answers[1])
		}
	}
	history := b.must("history", obj{"conversationId": conversation.ID})
	if len(history.Messages) != 30 {
		t.Errorf("%d messages are stored", len(history.Messages))
	}
}

// CASES 7: one send's transaction is held open while another node sends to the same
// conversation and a reader polls: the reader never skips a seq.
func TestAReaderNeverSkipsASeq(t *testing.T) {
	t.Parallel()
	n := nodes(t, 2)
	a, b := n[0].page("A"), n[1].page("B")
	conversation := a.open(b)
	a.send(conversation.ID, "x1")
	release := n[0].holdConversation(conversation.ID)
	sends := []any{message(conversation.ID, "x2", "held")}
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if _, err := a.EmitAll(testkit.Context(t), "message:send", sends...); err != nil {
			t.Error(err)
		}
	})
	waiting.Go(func() { b.send(conversation.ID, "y1", "y2") })
	waiting.Go(func() {
		<-time.After(500 * time.Millisecond) // the case's own time
		release()
	})
	var seen []int64
	eventually(t, "all four are read", func() bool {
		after := int64(len(seen))
		for _, m := range b.must("history", obj{"conversationId": conversation.ID, "afterSeq": after}).Messages {
			seen = append(seen, m.Seq)
		}
		return len(seen) == 4
	})
	waiting.Wait()
	if !slices.Equal(seen, upTo(4)) {
		t.Errorf("the reader saw %v", seen)
	}
}

// CASES 8 with its readers on another node.
func TestPagesOnAnotherNode(t *testing.T) {
	t.Parallel()
	n := nodes(t, 2)
	a, b, c := n[0].page("A"), n[1].page("B"), n[1].page("C")
	conversation := a.open(b)
	a.burst(conversation.ID, ids("x", 122))
	payload := obj{"conversationId": conversation.ID, "limit": 500}
	for _, want := range [][]int64{falling(122, 73), falling(72, 23), falling(22, 1)} {
		got := seqsOf(b.must("history", payload).Messages)
		if !slices.Equal(got, want) {
			t.Errorf("the page is %v, want %v", got, want)
		}
		payload["beforeSeq"] = got[len(got)-1]
	}
	c.refused("history", obj{"conversationId": conversation.ID}, chat.CodeNotFound, "")
}
