// Package access holds the tests of who may do what on both doors, HTTP and
// Socket.IO: the real binary as a process, official clients, tokens of every kind.
package access

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"xabar/chat"
	"xabar/gateway/auth"
	"xabar/internal/testkit"
	"xabar/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { testkit.Main(m, pgtest.StopShared) }

const (
	serverKey = "the-server-key-of-this-test"
	jwtSecret = "a secret of at least thirty-two bytes"
)

// world is a gateway that takes tokens of our own, and the clients that use it.
type world struct {
	t      *testing.T
	g      *testkit.Gateway
	js     *testkit.JS
	client *http.Client
}

func newWorld(t *testing.T, args ...string) *world {
	t.Helper()
	w := &world{t: t, client: &http.Client{Transport: &http.Transport{}}}
	w.g = testkit.StartGateway(t, testkit.GatewayOptions{NoDemo: true,
		Args: append([]string{"--jwt-secret", jwtSecret, "--server-key", serverKey}, args...)})
	t.Cleanup(w.client.CloseIdleConnections)
	return w
}

// pages starts the Node process of the official clients, once.
func (w *world) pages() *testkit.JS {
	w.t.Helper()
	if w.js == nil {
		w.js = testkit.NewJS(w.t)
	}
	return w.js
}

// person is a user and one of its tokens.
type person struct{ id, token string }

// mint signs a token as the team's own server would.
func mint(t testing.TB, sub string, ttl time.Duration) string {
	t.Helper()
	token, _, err := auth.NewMinter([]byte(jwtSecret), nil).Mint(chat.UserRef(sub), "", ttl)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// pastClock says that it is an hour ago.
type pastClock struct{}

func (pastClock) Now() time.Time { return time.Now().Add(-time.Hour) }

// mintExpired signs one that ended half an hour ago.
func mintExpired(t testing.TB, sub string) string {
	t.Helper()
	token, _, err := auth.NewMinter([]byte(jwtSecret), pastClock{}).Mint(chat.UserRef(sub), "", 30*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// person makes a user by its first token.
func (w *world) person(sub string) person {
	w.t.Helper()
	p := person{token: mint(w.t, sub, time.Hour)}
	var me struct {
		User struct{ ID string }
	}
	w.want(200, &me, p.token, "GET", "/me", nil)
	p.id = me.User.ID
	return p
}

// reply is what came back over HTTP.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r reply) code() string {
	var e struct{ Error struct{ Code string } }
	if json.Unmarshal(r.body, &e) != nil {
		return ""
	}
	return e.Error.Code
}

// call sends a request; body is encoded unless it is bytes or nil.
func (w *world) call(token, method, path string, body any, header ...string) reply {
	w.t.Helper()
	var content []byte
	switch b := body.(type) {
	case nil:
	case []byte:
		content = b
	default:
		var err error
		if content, err = json.Marshal(b); err != nil {
			w.t.Fatal(err)
		}
	}
	request, err := http.NewRequestWithContext(testkit.Context(w.t), method, w.g.URL+path, bytes.NewReader(content))
	if err != nil {
		w.t.Fatal(err)
	}
	if content != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := w.client.Do(request)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return reply{response.StatusCode, response.Header, answer}
}

// want calls and fails unless the status is this one; into takes the answer.
func (w *world) want(status int, into any, token, method, path string, body any) reply {
	w.t.Helper()
	r := w.call(token, method, path, body)
	if r.status != status {
		w.t.Fatalf("%s %s: %d %s, want %d", method, path, r.status, r.body, status)
	}
	if into != nil {
		if err := json.Unmarshal(r.body, into); err != nil {
			w.t.Fatalf("%s: %v", r.body, err)
		}
	}
	return r
}

type object = map[string]any

// open makes a conversation and returns its id.
func (w *world) open(by person, body object) string {
	w.t.Helper()
	r := w.call(by.token, "POST", "/conversations", body)
	var c struct{ ID string }
	if err := json.Unmarshal(r.body, &c); err != nil || r.status >= 300 {
		w.t.Fatalf("open: %d %s %v", r.status, r.body, err)
	}
	return c.ID
}

func (w *world) group(owner person, members ...person) string {
	w.t.Helper()
	ids := make([]string, len(members))
	for i, m := range members {
		ids[i] = m.id
	}
	return w.open(owner, object{"title": "group", "member_ids": ids})
}

func (w *world) send(by person, conversation, text string) {
	w.t.Helper()
	w.want(201, nil, by.token, "POST", "/conversations/"+conversation+"/messages",
		object{"client_msg_id": chat.NewID().String(), "text": text})
}

// page connects an official client that keeps its own positions.
func (w *world) page(p person, change ...func(*testkit.ClientOptions)) *testkit.Client {
	w.t.Helper()
	opts := testkit.ClientOptions{
		URL: w.g.URL, Token: p.token, Auth: object{"sync": true}, Transports: []string{"websocket"},
	}
	for _, f := range change {
		f(&opts)
	}
	c := w.pages().Connected(w.t, opts)
	if _, err := c.WaitFor(testkit.Context(w.t), "session", nil); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// answer is what an event answered.
type answer struct {
	raw   json.RawMessage
	OK    bool `json:"ok"`
	Error struct {
		Code, Field  string
		RetryAfterMs int64
	} `json:"error"`
}

func (w *world) ask(c *testkit.Client, event string, payload any) answer {
	w.t.Helper()
	raw, err := c.Emit(testkit.Context(w.t), event, payload)
	if err != nil {
		w.t.Fatalf("%s: %v", event, err)
	}
	a := answer{raw: raw}
	if err := json.Unmarshal(raw, &a); err != nil {
		w.t.Fatalf("%s: %s: %v", event, raw, err)
	}
	return a
}

func decode(t testing.TB, raw json.RawMessage, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
}

// without is a text with ids of this call taken out, so that two can be compared.
func without(text []byte, ids ...string) string {
	s := string(text)
	for _, id := range ids {
		s = strings.ReplaceAll(s, id, "…")
	}
	return s
}
