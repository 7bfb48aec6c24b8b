package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"xabar/chat"
	"xabar/internal/testkit"
)

func TestTheSameClientMsgIDIsOneMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, other, b := w.page("A"), w.page("A"), w.page("B")
	conversation := a.open(b)

	first := a.must("message:send", message(conversation.ID, "x1", "first"))
	again := other.must("message:send", message(conversation.ID, "x1", "another text"))
	if first.Duplicate || !again.Duplicate || again.Message != first.Message {
		t.Errorf("first %+v, again %+v", first, again)
	}

	// CASES 5: X1, X2, X1 again.
	second := a.must("message:send", message(conversation.ID, "x2", "second"))
	again = a.must("message:send", message(conversation.ID, "x1", "first"))
	if second.Message.Seq != 2 || again.Message.Seq != 1 || !again.Duplicate {
		t.Errorf("second %+v, again %+v", second, again)
	}

	// 20 at once from two sockets.
	var wait sync.WaitGroup
	answers := make([][]testkit.Answer, 2)
	for i, p := range []*page{a, other} {
		wait.Go(func() {
			payloads := slices.Repeat([]any{message(conversation.ID, "x3", "third")}, 10)
			var err error
			if answers[i], err = p.EmitAll(testkit.Context(t), "message:send", payloads...); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	fresh := 0
	for _, answer := range slices.Concat(answers...) {
		r, err := parseReply(answer.Value)
		if err != nil || !r.OK || r.Message.Text != "third" || r.Message.ClientMsgID != "x3" {
			t.Fatalf("%s, %v", answer.Value, err)
		}
		if !r.Duplicate {
			fresh++
		}
	}
	if fresh != 1 {
		t.Errorf("%d of 20 sends were new", fresh)
	}
	history := a.must("history", obj{"conversationId": conversation.ID})
	if len(history.Messages) != 3 {
		t.Errorf("there are %d messages", len(history.Messages))
	}

	// The same id in another conversation.
	c := w.page("C")
	a.refused("message:send", message(a.open(c).ID, "x1", "first"), chat.CodeConflict, "")
	// Another user's id is another id.
	if r := b.must("message:send", message(conversation.ID, "x1", "B's")); r.Duplicate {
		t.Error("B's first message is taken for A's")
	}
}

func TestParallelSendsAreNumberedWithoutHoles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B")
	senders := []*page{a, b, w.page("A"), w.page("B"), w.page("A")}
	conversation := a.open(b)
	var wait sync.WaitGroup
	var mu sync.Mutex
	var seqs []int64
	for i, p := range senders {
		wait.Go(func() {
			got := p.burst(conversation.ID, ids(fmt.Sprintf("s%d-", i), 10))
			mu.Lock()
			seqs = append(seqs, got...)
			mu.Unlock()
		})
	}
	wait.Wait()
	slices.Sort(seqs)
	if !slices.Equal(seqs, upTo(50)) {
		t.Errorf("seqs are %v", seqs)
	}
}

// CASES 9.
func TestSeqsFollowTheEmitsOfASocket(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B")
	conversation := a.open(b)
	if seqs := a.burst(conversation.ID, ids("x", 200)); !slices.Equal(seqs, upTo(200)) {
		t.Errorf("seqs are %v", seqs)
	}
	b.hears(conversation.ID, 200)
	if seqs := b.heardSeqs(conversation.ID); !slices.Equal(seqs, upTo(200)) {
		t.Errorf("B heard %v", seqs)
	}
	a.hearsPosition("message:delivered", b, 200)
}

// CASES 3 and 13: the server pauses while a client with its own timeout and retries
// sends.
func TestAPausedServerStoresARetriedSendOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	native := func(o *testkit.ClientOptions) {
		o.Options = map[string]any{"ackTimeout": 1000, "retries": 8}
	}
	a, b := w.page("A", native), w.page("B")
	conversation := a.open(b)
	w.gateway.Signal(syscall.SIGSTOP)
	var raw json.RawMessage
	var err error
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		raw, err = a.EmitNative(testkit.Context(t), "message:send", message(conversation.ID, "x1", "salom"))
	}()
	<-time.After(5 * time.Second) // the pause is the case, not a wait for something
	w.gateway.Signal(syscall.SIGCONT)
	<-answered
	if err != nil {
		t.Fatal(err)
	}
	r, err := parseReply(raw)
	if err != nil || !r.OK || r.Message.Seq != 1 {
		t.Fatalf("%s, %v", raw, err)
	}
	b.hears(conversation.ID, 1)
	next := a.must("message:send", message(conversation.ID, "x2", "xayr"))
	b.hears(conversation.ID, 2)
	if next.Message.Seq != 2 || !slices.Equal(b.heardSeqs(conversation.ID), []int64{1, 2}) {
		t.Errorf("the next seq is %d, B heard %v", next.Message.Seq, b.heardSeqs(conversation.ID))
	}
}

func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B", acks(testkit.AckNever))
	conversation := a.open(b)
	a.send(conversation.ID, ids("x", 30)...)
	w.gateway.Kill()
	w.gateway.Restart()
	mark := b.Mark()
	if _, err := b.WaitAfter(testkit.Context(t), mark, "session", nil); err != nil {
		t.Fatal(err)
	}
	// B syncs from what it holds: nothing was confirmed, so everything comes, once.
	synced := b.must("sync", obj{"positions": obj{conversation.ID.String(): 0}})
	if len(synced.Conversations) != 1 {
		t.Fatalf("sync answered %d conversations", len(synced.Conversations))
	}
	page := decodeSync(t, synced)[0]
	if got := seqsOf(page.Messages); !slices.Equal(got, upTo(30)) || page.HasMore {
		t.Errorf("sync brought %v", got)
	}
	b.must("message:delivered", obj{"conversationId": conversation.ID, "seq": 30})
	if _, err := a.WaitFor(testkit.Context(t), "connect", func(h testkit.Heard) bool { return h.N > 5 }); err != nil {
		t.Fatal(err)
	}
	if again := a.must("message:send", message(conversation.ID, "x7", "text of x7")); !again.Duplicate || again.Message.Seq != 7 {
		t.Errorf("the repeat after the kill answered %+v", again)
	}
}
