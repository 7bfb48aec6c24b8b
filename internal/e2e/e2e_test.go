// Package e2e holds the tests of the whole: the real binary as a process, official
// Socket.IO clients in Node, a real database. What they promise is the contract of
// docs/protocol.md.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"xabar/chat"
	"xabar/internal/testkit"
	"xabar/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { testkit.Main(m, pgtest.StopShared) }

// world is a gateway and the Node process of the clients that use it.
type world struct {
	t        *testing.T
	gateway  *testkit.Gateway
	js       *testkit.JS
	database string // the URL, where it is PostgreSQL
}

func newWorld(t *testing.T, args ...string) *world {
	t.Helper()
	return &world{t: t, gateway: testkit.StartGateway(t, testkit.GatewayOptions{Args: args}), js: testkit.NewJS(t)}
}

// page is one connected official client of a user.
type page struct {
	*testkit.Client
	t    testing.TB
	user testkit.DemoUser
}

// page connects a user. Without options: over a WebSocket, keeping its own positions
// (sync), acknowledging every message.
func (w *world) page(name string, change ...func(*testkit.ClientOptions)) *page {
	w.t.Helper()
	user := w.gateway.Login(name)
	opts := testkit.ClientOptions{
		URL: w.gateway.URL, Token: user.Token, Auth: map[string]any{"sync": true}, Transports: []string{"websocket"},
	}
	for _, f := range change {
		f(&opts)
	}
	p := &page{w.js.Connected(w.t, opts), w.t, user}
	if _, err := p.WaitFor(testkit.Context(w.t), "session", nil); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// polling starts with long-polling and upgrades, the official client's default.
func polling(o *testkit.ClientOptions) { o.Transports = nil }

// simple is a page of a few lines: it does not sync, it acknowledges what comes.
func simple(o *testkit.ClientOptions) { o.Auth = nil }

// acks sets how `message` is acknowledged.
func acks(rule testkit.AckRule) func(*testkit.ClientOptions) {
	return func(o *testkit.ClientOptions) { o.Acks = map[string]testkit.AckRule{"message": rule} }
}

// reply is any answer of the gateway.
type reply struct {
	OK               bool              `json:"ok"`
	Error            *replyError       `json:"error"`
	Message          chat.Message      `json:"message"`
	Duplicate        bool              `json:"duplicate"`
	Conversation     chat.Conversation `json:"conversation"`
	Created          bool              `json:"created"`
	LastDeliveredSeq int64             `json:"lastDeliveredSeq"`
	LastReadSeq      int64             `json:"lastReadSeq"`
	Unread           int64             `json:"unread"`
	UnreadTotal      int64             `json:"unreadTotal"`
	LastSeq          int64             `json:"lastSeq"`
	HasMore          bool              `json:"hasMore"`
	Messages         []chat.Message    `json:"messages"`
	Receipts         []chat.Receipt    `json:"receipts"`
	Contacts         []chat.Contact    `json:"contacts"`
	Presence         []presence        `json:"presence"`
	Members          []chat.Member     `json:"members"`
	NextCursor       *string           `json:"nextCursor"`
	Conversations    []json.RawMessage `json:"conversations"`
}

// presence is an entry of an answer: who cannot be seen is named as in the question.
type presence struct {
	UserID     string     `json:"userId"`
	Online     bool       `json:"online"`
	LastSeenAt *chat.Time `json:"lastSeenAt"`
}

type replyError struct {
	Code      chat.Code `json:"code"`
	Field     string    `json:"field"`
	Message   string    `json:"message"`
	Retryable bool      `json:"retryable"`
}

func parseReply(raw json.RawMessage) (reply, error) {
	var r reply
	err := json.Unmarshal(raw, &r)
	return r, err
}

// ask emits and returns the answer, whatever it says.
func (p *page) ask(event string, payload any) reply {
	p.t.Helper()
	raw, err := p.Emit(testkit.Context(p.t), event, payload)
	if err != nil {
		p.t.Fatalf("%s: %v", event, err)
	}
	r, err := parseReply(raw)
	if err != nil {
		p.t.Fatalf("%s answered %s: %v", event, raw, err)
	}
	return r
}

// must is ask for what has to succeed.
func (p *page) must(event string, payload any) reply {
	p.t.Helper()
	r := p.ask(event, payload)
	if !r.OK {
		p.t.Fatalf("%s %v: %+v", event, payload, r.Error)
	}
	return r
}

// refused is ask for what has to fail.
func (p *page) refused(event string, payload any, code chat.Code, field string) {
	p.t.Helper()
	r := p.ask(event, payload)
	if r.OK || r.Error == nil || r.Error.Code != code || r.Error.Field != field {
		p.t.Errorf("%s %.100v: ok %v, %+v; want %s %q", event, payload, r.OK, r.Error, code, field)
	}
}

type obj = map[string]any

// open is the direct conversation with another page's user.
func (p *page) open(other *page) chat.Conversation {
	p.t.Helper()
	return p.must("conversation:open", obj{"userId": other.user.User.ID}).Conversation
}

func message(conversation chat.ID, id, text string) obj {
	return obj{"conversationId": conversation, "clientMsgId": id, "text": text}
}

// send sends texts named by their clientMsgIds, waiting for each answer.
func (p *page) send(conversation chat.ID, ids ...string) []chat.Message {
	p.t.Helper()
	sent := make([]chat.Message, len(ids))
	for i, id := range ids {
		sent[i] = p.must("message:send", message(conversation, id, "text of "+id)).Message
	}
	return sent
}

// ids are n clientMsgIds.
func ids(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s%d", prefix, i+1)
	}
	return list
}

// burst sends without waiting for answers and returns the seqs in the order of the
// emits.
func (p *page) burst(conversation chat.ID, ids []string) []int64 {
	p.t.Helper()
	payloads := make([]any, len(ids))
	for i, id := range ids {
		payloads[i] = message(conversation, id, "text of "+id)
	}
	answers, err := p.EmitAll(testkit.Context(p.t), "message:send", payloads...)
	if err != nil {
		p.t.Fatal(err)
	}
	seqs := make([]int64, len(answers))
	for i, answer := range answers {
		if answer.Err != nil {
			p.t.Fatalf("send %s: %v", ids[i], answer.Err)
		}
		r, err := parseReply(answer.Value)
		if err != nil || !r.OK {
			p.t.Fatalf("send %s: %s, %v", ids[i], answer.Value, err)
		}
		seqs[i] = r.Message.Seq
	}
	return seqs
}

// hears waits for a message with this seq.
func (p *page) hears(conversation chat.ID, seq int64) chat.Message {
	p.t.Helper()
	h, err := p.WaitFor(testkit.Context(p.t), "message", func(h testkit.Heard) bool {
		m := testkit.Decode[chat.Message](h)
		return m.ConversationID == conversation && m.Seq == seq
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return testkit.Decode[chat.Message](h)
}

type position struct {
	ConversationID chat.ID `json:"conversationId"`
	UserID         chat.ID `json:"userId"`
	Seq            int64   `json:"seq"`
}

// hearsPosition waits for message:delivered or message:read of a user at seq or
// beyond.
func (p *page) hearsPosition(event string, of *page, seq int64) {
	p.t.Helper()
	_, err := p.WaitFor(testkit.Context(p.t), event, func(h testkit.Heard) bool {
		moved := testkit.Decode[position](h)
		return moved.UserID.String() == of.user.User.ID && moved.Seq >= seq
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// heardSeqs are the seqs of a conversation's messages in the order in which they
// came.
func (p *page) heardSeqs(conversation chat.ID) []int64 {
	var seqs []int64
	for _, h := range p.Events("message") {
		if m := testkit.Decode[chat.Message](h); m.ConversationID == conversation {
			seqs = append(seqs, m.Seq)
		}
	}
	return seqs
}

func upTo(n int64) []int64 {
	seqs := make([]int64, n)
	for i := range seqs {
		seqs[i] = int64(i) + 1
	}
	return seqs
}

// view is the conversation as the page's user sees it now.
func (p *page) view(conversation chat.ID) chat.Conversation {
	p.t.Helper()
	for _, raw := range p.must("conversations", obj{}).Conversations {
		var c chat.Conversation
		if err := json.Unmarshal(raw, &c); err != nil {
			p.t.Fatal(err)
		}
		if c.ID == conversation {
			return c
		}
	}
	p.t.Fatalf("the conversation %s is not in the list", conversation)
	return chat.Conversation{}
}

// eventually waits until a condition holds, asking again and again.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ctx := testkit.Context(t)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it did not become true: %s", what)
		}
	}
}

// settle lets everything that is under way on the page's socket arrive: an answer
// comes behind what the gateway has sent before.
func (p *page) settle() {
	p.t.Helper()
	p.must("conversations", obj{"limit": 1})
}

func short(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// http calls the gateway's HTTP API and wants this status.
func (w *world) http(t testing.TB, method, path, token string, body any, status int) json.RawMessage {
	t.Helper()
	var payload io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		payload = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(testkit.Context(t), method, w.gateway.URL+path, payload)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status {
		t.Fatalf("%s %s: %s %s %v, want %d", method, path, response.Status, answer, err, status)
	}
	return answer
}
