package access

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"xabar/chat"
	"xabar/internal/testkit"
)

// limited checks an HTTP answer of a bucket that is empty.
func limited(t *testing.T, what string, r reply) {
	t.Helper()
	after, err := strconv.Atoi(r.header.Get("Retry-After"))
	if r.status != http.StatusTooManyRequests || r.code() != "rate_limited" || err != nil || after < 1 {
		t.Errorf("%s: %d %s, Retry-After %q", what, r.status, r.body, r.header.Get("Retry-After"))
	}
}

// A user's sends are one bucket, whatever the door and the number of sockets.
func TestLimitOfSends(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--limit-sends", "1/m:5")
	ann, bob := w.person("ann"), w.person("bob")
	direct := w.open(ann, object{"user_id": bob.id})
	one, two := w.page(ann), w.page(ann)
	send := func(page *testkit.Client) answer {
		return w.ask(page, "message:send", object{"conversationId": direct, "clientMsgId": chat.NewID().String(), "text": "x"})
	}
	w.send(ann, direct, "1")
	for _, page := range []*testkit.Client{one, two, one, two} {
		if got := send(page); !got.OK {
			t.Fatalf("within the burst: %s", got.raw)
		}
	}
	got := send(one)
	if got.Error.Code != "rate_limited" || got.Error.RetryAfterMs < 1000 || got.Error.RetryAfterMs > 60_000 {
		t.Errorf("%s", got.raw)
	}
	limited(t, "by HTTP", w.call(ann.token, "POST", "/conversations/"+direct+"/messages", object{"client_msg_id": "x", "text": "x"}))
	w.send(bob, direct, "another user's bucket is full")
	if got := w.ask(one, "history", object{"conversationId": direct}); !got.OK {
		t.Errorf("reading is no sending: %s", got.raw)
	}
}

func TestLimitOfEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--limit-events", "10/s:20")
	ann := w.person("ann")
	one, two := w.page(ann), w.page(ann)
	payloads := make([]any, 40)
	for i := range payloads {
		payloads[i] = object{}
	}
	answers, err := one.EmitAll(testkit.Context(t), "conversations", payloads...)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[bool]int{}
	for _, a := range answers {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		parsed := answer{}
		decode(t, a.Value, &parsed)
		counts[parsed.OK]++
		if !parsed.OK && (parsed.Error.Code != "rate_limited" || parsed.Error.RetryAfterMs < 1) {
			t.Errorf("%s", a.Value)
		}
	}
	if counts[true] < 20 || counts[false] < 10 {
		t.Errorf("%d of 40 events passed", counts[true])
	}
	if got := w.ask(two, "conversations", object{}); !got.OK {
		t.Errorf("another socket pays: %s", got.raw)
	}
	// Unknown events count, and the wait that is told is enough.
	for {
		got := w.ask(one, "no such event", object{})
		if got.Error.Code == "unknown_event" {
			break
		}
		wait := time.NewTimer(time.Duration(got.Error.RetryAfterMs) * time.Millisecond)
		<-wait.C
	}
}

// Conversations that are made count, those that are opened again do not.
func TestLimitOfConversations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--limit-conversations", "2/h:3")
	ann := w.person("ann")
	others := make([]person, 5)
	for i := range others {
		others[i] = w.person(fmt.Sprint("other", i))
	}
	page := w.page(ann)
	w.open(ann, object{"user_id": others[0].id})
	for range 5 {
		w.open(ann, object{"user_id": others[0].id})
	}
	if got := w.ask(page, "conversation:open", object{"userId": others[1].id}); !got.OK {
		t.Fatalf("%s", got.raw)
	}
	w.group(ann, others[0])
	limited(t, "a fourth", w.call(ann.token, "POST", "/conversations", object{"user_id": others[2].id}))
	if got := w.ask(page, "message:send", object{"toUserId": others[3].id, "clientMsgId": "1", "text": "x"}); got.Error.Code != "rate_limited" {
		t.Errorf("by a send: %s", got.raw)
	}
	w.open(ann, object{"user_id": others[1].id}) // is there already
	w.open(others[2], object{"user_id": ann.id})
}

// A user has so many sockets on a node; one that goes makes room for one that waits.
func TestLimitOfConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--limit-connections", "2")
	ann, bob := w.person("ann"), w.person("bob")
	first := w.page(ann)
	w.page(ann)
	third := w.pages().Client(t, testkit.ClientOptions{URL: w.g.URL, Token: ann.token, Transports: []string{"websocket"}})
	ctx := testkit.Context(t)
	if err := third.StartConnecting(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := third.WaitFor(ctx, "$reconnect_attempt", nil); err != nil {
		t.Fatalf("it is turned away for good: %v", err)
	}
	if len(third.Events("session")) > 0 {
		t.Error("a third socket got a session")
	}
	w.page(bob)
	if err := first.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := third.WaitFor(ctx, "session", nil); err != nil {
		t.Errorf("there was room: %v", err)
	}
}

// Strangers pay by address, and only they: who has a token is let in.
func TestLimitOfStrangers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--limit-handshakes", "1/m:3")
	ann := mint(t, "ann", time.Hour)
	for range 3 {
		if r := w.call("a.b.c", "GET", "/me", nil); r.status != 401 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	limited(t, "a fourth guess", w.call("a.b.c", "GET", "/me", nil))
	limited(t, "a guess of the server key", w.call("guess", "GET", "/admin/users/ann", nil))
	if r := w.call(ann, "GET", "/me", nil); r.status != 200 {
		t.Errorf("a good token from the same address: %d %s", r.status, r.body)
	}
	if r := w.call(serverKey, "GET", "/admin/users/ann", nil); r.status != 200 {
		t.Errorf("the server key from the same address: %d %s", r.status, r.body)
	}
}
