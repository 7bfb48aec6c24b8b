package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"xabar/chat"
	"xabar/internal/testkit"
)

// metric reads one value of the gateway's /metrics, summed over the lines with all
// of labels. A metric with labels that has not happened yet is 0.
func (w *world) metric(name string, labels ...string) float64 {
	w.t.Helper()
	_, body := w.gateway.Get("/metrics")
	sum, found := 0.0, len(labels) > 0
	for line := range strings.Lines(body) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || (rest[0] != ' ' && rest[0] != '{') {
			continue
		}
		if slices.ContainsFunc(labels, func(label string) bool { return !strings.Contains(line, label) }) {
			continue
		}
		fields := strings.Fields(line)
		value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			w.t.Fatal(err)
		}
		sum, found = sum+value, true
	}
	if !found {
		w.t.Fatalf("there is no metric %s", name)
	}
	return sum
}

// residentKB is the gateway's resident memory.
func (w *world) residentKB() int {
	w.t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", w.gateway.PID()))
	if err != nil {
		w.t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				w.t.Fatal(err)
			}
			return kb
		}
	}
	w.t.Fatal("no VmRSS")
	return 0
}

// CASES 21, 24, 25 and wrong shapes.
func TestTextsAndShapes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B")
	conversation := a.open(b)
	emoji := "\U0001F469"
	for i, test := range []struct {
		text  any
		code  chat.Code
		field string
	}{
		{"", chat.CodeTextEmpty, ""},
		{" \t\n\u00a0\u2003", chat.CodeTextEmpty, ""},
		{strings.Repeat(emoji, 2001), chat.CodeTextTooLong, ""},
		{strings.Repeat("x", 2001), chat.CodeTextTooLong, ""},
		{"a\x00b", chat.CodeInvalidText, ""},
		{17, chat.CodeInvalidArgument, "text"},
		{nil, chat.CodeInvalidArgument, "text"},
		{obj{}, chat.CodeInvalidArgument, "text"},
		{strings.Repeat(emoji, 2000), "", ""},
		{"<img src=x onerror=alert(1)> \u202eabc", "", ""},
	} {
		payload := obj{"conversationId": conversation.ID, "clientMsgId": fmt.Sprint("t", i), "text": test.text}
		if test.code != "" {
			a.refused("message:send", payload, test.code, test.field)
			continue
		}
		if got := a.must("message:send", payload).Message.Text; got != test.text {
			t.Errorf("text %d came back as %.40q", i, got)
		}
	}
	// The id of a refused text can be used again.
	if r := a.must("message:send", message(conversation.ID, "t4", "clean")); r.Duplicate {
		t.Error("a refused text was stored")
	}
	for field, payload := range map[string]obj{
		"clientMsgId":    {"conversationId": conversation.ID, "text": "x"},
		"conversationId": {"clientMsgId": "x", "text": "x"},
		"replyToSeq":     {"conversationId": conversation.ID, "clientMsgId": "x", "text": "x", "replyToSeq": 0},
		"toUserId":       {"toUserId": obj{}, "clientMsgId": "x", "text": "x"},
	} {
		a.refused("message:send", payload, chat.CodeInvalidArgument, field)
	}
	a.refused("message:send", obj{"conversationId": conversation.ID, "clientMsgId": "r", "text": "x", "replyToSeq": 9999}, chat.CodeInvalidArgument, "replyToSeq")
	a.refused("message:send", obj{"conversationId": conversation.ID, "clientMsgId": strings.Repeat("x", 65), "text": "x"}, chat.CodeInvalidArgument, "clientMsgId")
	a.refused("message:send", obj{"conversationId": chat.NewID(), "clientMsgId": "s", "text": "x"}, chat.CodeNotFound, "")
	for _, payload := range []any{17, "text", []any{1}, true} {
		a.refused("message:send", payload, chat.CodeInvalidArgument, "payload")
	}
	a.refused("message:send", nil, chat.CodeInvalidArgument, "text")
	a.refused("nonsense", obj{}, chat.CodeUnknownEvent, "")
	a.refused("message:sent", obj{}, chat.CodeUnknownEvent, "")
	// After all of it the socket is the same one.
	if n := len(a.Events("disconnect")); n != 0 {
		t.Errorf("the socket was closed %d times", n)
	}
	b.hears(conversation.ID, 3)
}

func TestALoneSurrogateIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B")
	conversation := a.open(b)
	// As JSON.stringify of a JavaScript string with a lone surrogate writes it.
	r := a.must("message:send", obj{"conversationId": conversation.ID, "clientMsgId": "s", "text": json.RawMessage(`"a\ud800b"`)})
	if r.Message.Text != "a\uFFFDb" {
		t.Errorf("the text came back as %q", r.Message.Text)
	}
}

// CASES 21: what is over the payload limit ends that one socket.
func TestAMegabyteEndsOneSocket(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B")
	conversation := a.open(b)
	mark := a.Mark()
	if err := a.Send(testkit.Context(t), "message:send", message(conversation.ID, "big", strings.Repeat("x", 1<<20))); err != nil {
		t.Fatal(err)
	}
	if _, err := a.WaitAfter(testkit.Context(t), mark, "disconnect", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := a.WaitAfter(testkit.Context(t), mark, "session", nil); err != nil {
		t.Fatal(err)
	}
	a.send(conversation.ID, "small")
	b.hears(conversation.ID, 1)
	if n := len(b.Events("disconnect")); n != 0 {
		t.Error("another socket was closed")
	}
}

func TestRefusedHandshakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, token := range map[string]string{"none": "", "garbage": "x.y.z", "another key": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJ4IiwiZXhwIjo0MTAyNDQ0ODAwfQ.c2lnbmF0dXJl"} {
		t.Run(name, func(t *testing.T) {
			c := w.js.Client(t, testkit.ClientOptions{URL: w.gateway.URL, Token: token, Transports: []string{"websocket"}})
			err := c.Connect(testkit.Context(t))
			var refused *testkit.Refused
			if !errors.As(err, &refused) || !strings.Contains(string(refused.Data), `"code":"unauthenticated"`) {
				t.Fatalf("connect: %v", err)
			}
			if state, err := c.State(testkit.Context(t)); err != nil || state.Active {
				t.Errorf("a refusal that time does not heal is tried again: %+v, %v", state, err)
			}
		})
	}
}

// CASES 34.
func TestTypingIsThrottledAndVolatile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B")
	conversation := a.open(b)
	b.send(conversation.ID, "x1")
	a.hears(conversation.ID, 1)
	type typed struct {
		ConversationID chat.ID
		UserID         string
		ExpiresInMs    int
	}
	started := time.Now()
	if err := a.SendVolatile(testkit.Context(t), "typing", slices.Repeat([]any{obj{"conversationId": conversation.ID}}, 60)...); err != nil {
		t.Fatal(err)
	}
	h, err := b.WaitFor(testkit.Context(t), "typing", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := testkit.Decode[typed](h); got.ConversationID != conversation.ID || got.UserID != a.user.User.ID || got.ExpiresInMs != 3000 {
		t.Errorf("typing is %+v", got)
	}
	// Messages and receipts among a flood of typing: none is lost.
	if seqs := a.burst(conversation.ID, ids("m", 100)); !slices.Equal(seqs, between(2, 101)) {
		t.Errorf("seqs are %v", seqs)
	}
	b.hears(conversation.ID, 101)
	a.hearsPosition("message:delivered", b, 101)
	if n := len(b.Events("typing")); time.Since(started) < 2*time.Second && n != 1 {
		t.Errorf("60 typing events in a second came as %d", n)
	}
	eventually(t, "typing goes through again after the interval", func() bool {
		if err := a.SendVolatile(testkit.Context(t), "typing", obj{"conversationId": conversation.ID}); err != nil {
			t.Fatal(err)
		}
		return len(b.Events("typing")) >= 2
	})
	if took := time.Since(started); took < 2*time.Second {
		t.Errorf("the second typing came after %v", took)
	}
	// A stranger's typing reaches nobody, and asks for no answer.
	c := w.page("C")
	if err := c.SendVolatile(testkit.Context(t), "typing", obj{"conversationId": conversation.ID}, 17, obj{}); err != nil {
		t.Fatal(err)
	}
	c.settle()
	b.settle()
	for _, h := range b.Events("typing") {
		if testkit.Decode[typed](h).UserID == c.user.User.ID {
			t.Error("a stranger's typing was shown")
		}
	}
	if n := len(a.Events("typing")); n != 0 {
		t.Errorf("A heard %d typing events of its own", n)
	}
}

// CASES 19: a client that stops reading is closed as slow, and then syncs all.
func TestASlowReaderIsClosedAndComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.page("A"), w.page("B")
	conversation := a.open(b)
	if err := b.Pause(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	before := w.residentKB()
	text := strings.Repeat("salom ", 330)
	sent := 0
	slow := func() bool { return w.metric(`xabar_connections_closed_total`, `reason="slow consumer"`) > 0 }
	for !slow() {
		payloads := make([]any, 200)
		for i := range payloads {
			sent++
			payloads[i] = message(conversation.ID, fmt.Sprint("x", sent), text)
		}
		answers, err := a.EmitAll(testkit.Context(t), "message:send", payloads...)
		if err != nil {
			t.Fatal(err)
		}
		for i, answer := range answers {
			r, err := parseReply(answer.Value)
			if err == nil && !r.OK && r.Error.Retryable {
				r = a.ask("message:send", payloads[i]) // a busy machine: once more, as a client does
			}
			if err != nil || !r.OK {
				t.Fatalf("%s, %v", answer.Value, err)
			}
		}
		if sent > 20000 {
			t.Fatal("20,000 messages of 2 kB did not make it a slow consumer")
		}
	}
	if grown := w.residentKB() - before; grown > 128<<10 {
		t.Errorf("the gateway grew by %d kB", grown)
	}
	mark := b.Mark()
	if err := b.Resume(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.WaitAfter(testkit.Context(t), mark, "session", nil); err != nil {
		t.Fatal(err)
	}
	next := int64(0)
	page := decodeSync(t, b.must("sync", obj{"positions": obj{}}))[0]
	for {
		for _, m := range page.Messages {
			if next++; m.Seq != next {
				t.Fatalf("sync brought %d where %d was due", m.Seq, next)
			}
		}
		if !page.HasMore {
			break
		}
		more := b.must("history", obj{"conversationId": conversation.ID, "afterSeq": next})
		page = chat.SyncConversation{Messages: more.Messages, HasMore: more.HasMore}
	}
	if next != int64(sent) {
		t.Errorf("sync ends at %d of %d", next, sent)
	}
}

// CASES 20, shorter: what comes and goes leaves nothing.
func TestConnectsAndDisconnectsLeaveNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	user := w.gateway.Login("B")
	round := func(n int) {
		clients := make([]*testkit.Client, n)
		for i := range clients {
			clients[i] = w.js.Connected(t, testkit.ClientOptions{URL: w.gateway.URL, Token: user.Token, Transports: []string{"websocket"}})
		}
		for _, c := range clients {
			if err := c.Close(testkit.Context(t)); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "no socket is left", func() bool { return w.metric("xabar_connections") == 0 })
	}
	round(20)
	goroutines := w.metric("go_goroutines")
	for range 20 {
		round(100)
	}
	// The queue of notifications starts its maintenance by and by; 2,000 sockets would
	// leave more.
	eventually(t, "goroutines are back at base", func() bool { return w.metric("go_goroutines") <= goroutines+50 })
	if n := w.metric("xabar_rooms"); n != 0 {
		t.Errorf("%v rooms are left", n)
	}
	if n := w.metric("xabar_users"); n != 0 {
		t.Errorf("%v users have sockets", n)
	}
}
