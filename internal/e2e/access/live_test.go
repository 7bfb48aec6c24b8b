package access

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"xabar/chat"
	"xabar/internal/testkit"
	"xabar/internal/testkit/pgtest"
)

// Both doors are one service: what is sent through one is heard at the other.
func TestHTTPAndSocketsMeet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := testkit.Context(t)
	ann, bob := w.person("ann"), w.person("bob")
	page := w.page(bob)
	mark := page.Mark()
	direct := w.open(ann, object{"user_id": bob.id})
	if _, err := page.WaitAfter(ctx, mark, "conversation", nil); err != nil {
		t.Fatal(err)
	}
	w.send(ann, direct, "by HTTP")
	heard, err := page.WaitAfter(ctx, mark, "message", nil)
	if err != nil {
		t.Fatal(err)
	}
	if m := testkit.Decode[chat.Message](heard); m.Text != "by HTTP" || m.Seq != 1 {
		t.Errorf("heard %s", heard.Args[0])
	}
	if got := w.ask(page, "message:send", object{"conversationId": direct, "clientMsgId": "s1", "text": "by socket"}); !got.OK {
		t.Fatalf("%s", got.raw)
	}
	var history struct{ Messages []struct{ Text string } }
	w.want(200, &history, ann.token, "GET", "/conversations/"+direct+"/messages", nil)
	if len(history.Messages) != 2 || history.Messages[0].Text != "by socket" {
		t.Errorf("history %+v", history)
	}
	// The same id through the other door is a repeat, not another message.
	r := w.want(200, nil, bob.token, "POST", "/conversations/"+direct+"/messages", object{"client_msg_id": "s1", "text": "other"})
	if !strings.Contains(string(r.body), "by socket") {
		t.Errorf("the repeat answers %s", r.body)
	}
	for name, change := range map[string]func(){
		"title": func() {
			w.want(200, nil, bob.token, "PUT", "/conversations/"+direct+"/mute", object{"muted_until": "2099-01-01T00:00:00Z"})
		},
		"read": func() { w.want(200, nil, ann.token, "POST", "/conversations/"+direct+"/read", object{"seq": 2}) },
	} {
		mark := page.Mark()
		change()
		event := map[string]string{"title": "conversation", "read": "message:read"}[name]
		if _, err := page.WaitAfter(ctx, mark, event, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// CASES 15: a read beyond the end is the end; a stranger's changes nothing; nobody
// hears the sender read its own message.
func TestReadsBeyondTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob, eve := w.person("ann"), w.person("bob"), w.person("eve")
	direct := w.open(ann, object{"user_id": bob.id})
	annPage, bobPage := w.page(ann), w.page(bob)
	for i := range 7 {
		w.send(ann, direct, fmt.Sprint(i))
	}
	mark := bobPage.Mark()
	w.want(200, nil, ann.token, "POST", "/conversations/"+direct+"/read", object{"seq": 7})
	if r := w.call(eve.token, "POST", "/conversations/"+direct+"/read", object{"seq": 7}); r.status != 404 {
		t.Errorf("a stranger: %d %s", r.status, r.body)
	}
	var read struct {
		LastReadSeq int64 `json:"last_read_seq"`
		Unread      int64 `json:"unread"`
	}
	w.want(200, &read, bob.token, "POST", "/conversations/"+direct+"/read", object{"seq": 999})
	if read.LastReadSeq != 7 || read.Unread != 0 {
		t.Errorf("read %+v", read)
	}
	heard, err := annPage.WaitFor(testkit.Context(t), "message:read", nil)
	if err != nil {
		t.Fatal(err)
	}
	if p := testkit.Decode[struct {
		UserID string
		Seq    int64
	}](heard); p.UserID != bob.id || p.Seq != 7 {
		t.Errorf("heard %s", heard.Args[0])
	}
	w.ask(bobPage, "conversations", object{})
	for _, h := range bobPage.Events("message:read") {
		if h.N >= mark && testkit.Decode[struct{ UserID string }](h).UserID != bob.id {
			t.Errorf("the sender's read of its own is heard: %s", h.Args[0])
		}
	}
}

// CASES 24 and 26, through both doors.
func TestTexts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.person("ann"), w.person("bob")
	direct := w.open(ann, object{"user_id": bob.id})
	page := w.page(ann)
	path := "/conversations/" + direct + "/messages"
	if r := w.call(ann.token, "POST", path, object{"client_msg_id": "X1", "text": "a\x00b"}); r.status != 422 || r.code() != "invalid_text" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if got := w.ask(page, "message:send", object{"conversationId": direct, "clientMsgId": "X1", "text": "a\x00b"}); got.Error.Code != "invalid_text" {
		t.Errorf("%s", got.raw)
	}
	// Nothing was stored, and the id is free for a clean text.
	texts := []string{
		"<img src=x onerror=alert(1)>", "\u202eevil\u202c", `"; DROP TABLE messages; --`, "'; DELETE FROM users; --",
		"%s%n%x", "${jndi:ldap://x}", "a\u2028\u2029b", strings.Repeat("\U0001F600", 2000),
	}
	for i, text := range texts {
		id := fmt.Sprintf("X%d", i+1)
		r := w.want(201, nil, ann.token, "POST", path, object{"client_msg_id": id, "text": text})
		var m struct{ Text string }
		if err := json.Unmarshal(r.body, &m); err != nil || m.Text != text {
			t.Errorf("%q came back as %q, %v", text, m.Text, err)
		}
		if r.header.Get("Content-Type") != "application/json" || r.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("a browser could take it for a page: %v", r.header)
		}
	}
	if got := w.ask(page, "history", object{"conversationId": direct}); strings.Count(string(got.raw), `"seq"`) != len(texts) {
		t.Errorf("%d messages are stored, want %d", strings.Count(string(got.raw), `"seq"`), len(texts))
	}
}

// CASES 37: told before the end, closed at the end, and back by itself with a new
// token.
func TestATokenThatEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("ann")
	page := w.page(ann, func(o *testkit.ClientOptions) {
		o.Token = ""
		o.AuthSequence = []map[string]any{
			{"token": mint(t, "ann", 5*time.Second), "sync": true}, {"token": mint(t, "ann", time.Hour), "sync": true},
		}
	})
	start := time.Now()
	ctx := testkit.Context(t)
	told, err := page.WaitFor(ctx, "session:closing", nil)
	if err != nil {
		t.Fatal(err)
	}
	closing := testkit.Decode[struct {
		Code    string
		Retry   bool
		AfterMs int64
	}](told)
	if closing.Code != "token_expired" || !closing.Retry || closing.AfterMs <= 0 || closing.AfterMs > 5000 {
		t.Errorf("told %s", told.Args[0])
	}
	if _, err := page.WaitAfter(ctx, told.N, "disconnect", nil); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 3*time.Second || took > 6500*time.Millisecond {
		t.Errorf("closed after %v", took)
	}
	if _, err := page.WaitAfter(ctx, told.N, "session", nil); err != nil {
		t.Fatalf("it does not come back: %v", err)
	}
}

func TestATokenThatIsRefreshed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	page := w.page(person{token: mint(t, "ann", 4*time.Second)})
	ctx := testkit.Context(t)
	if _, err := page.WaitFor(ctx, "session:closing", nil); err != nil {
		t.Fatal(err)
	}
	if got := w.ask(page, "auth:refresh", object{"token": mint(t, "ann", time.Hour)}); !got.OK {
		t.Fatalf("%s", got.raw)
	}
	// Past the old token's end the socket still answers.
	end := time.NewTimer(5 * time.Second)
	defer end.Stop()
	<-end.C
	if got := w.ask(page, "conversations", object{}); !got.OK || len(page.Events("disconnect")) > 0 {
		t.Errorf("%s, %d disconnects", got.raw, len(page.Events("disconnect")))
	}
}

// CASES 38 on one node and on two that share a database and nothing else.
func TestDisconnectAndRevoke(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	one, two := newWorld(t, "--database-url", database), newWorld(t, "--database-url", database)
	ann := one.person("ann")
	for _, operation := range []string{"disconnect", "revoke"} {
		here, there := one.page(ann), two.page(ann)
		start := time.Now()
		one.want(204, nil, serverKey, "POST", "/admin/users/ann/"+operation, nil)
		for _, page := range []*testkit.Client{here, there} {
			told, err := page.WaitFor(testkit.Context(t), "session:closing", nil)
			if err != nil {
				t.Fatal(err)
			}
			if c := testkit.Decode[struct {
				Code  string
				Retry bool
			}](told); c.Code != "revoked" || c.Retry {
				t.Errorf("told %s", told.Args[0])
			}
			gone, err := page.WaitAfter(testkit.Context(t), told.N, "disconnect", nil)
			if err != nil {
				t.Fatal(err)
			}
			if reason := testkit.Decode[string](gone); reason != "io server disconnect" {
				t.Errorf("the client would come back by itself: %s", reason)
			}
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%s took %v", operation, took)
		}
	}
	for _, w := range []*world{one, two} {
		if r := w.call(ann.token, "GET", "/me", nil); r.status != 401 {
			t.Errorf("a revoked token: %d %s", r.status, r.body)
		}
	}
}

func TestSessionsOfAUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("ann")
	w.page(ann)
	w.page(ann, func(o *testkit.ClientOptions) { o.Transports = []string{"polling"} })
	var list struct {
		Sessions []struct {
			SocketID    string    `json:"socket_id"`
			Transport   string    `json:"transport"`
			Address     string    `json:"address"`
			ConnectedAt time.Time `json:"connected_at"`
			ExpiresAt   time.Time `json:"expires_at"`
		}
	}
	w.want(200, &list, serverKey, "GET", "/admin/users/ann/sessions", nil)
	transports := map[string]bool{}
	for _, s := range list.Sessions {
		transports[s.Transport] = true
		if s.SocketID == "" || s.Address != "127.0.0.1" || time.Since(s.ConnectedAt) > time.Minute || time.Until(s.ExpiresAt) < 50*time.Minute {
			t.Errorf("session %+v", s)
		}
	}
	if len(list.Sessions) != 2 || !transports["websocket"] || !transports["polling"] {
		t.Errorf("sessions %+v", list.Sessions)
	}
}

// CASES 39 and the first half of 2: who is removed hears nothing more, online or not.
func TestRemovedFromAGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := testkit.Context(t)
	ann, bob, cyd, dan := w.person("ann"), w.person("bob"), w.person("cyd"), w.person("dan")
	group := w.group(ann, bob, cyd, dan)
	annPage, bobPage, cydPage := w.page(ann), w.page(bob), w.page(cyd)
	w.send(ann, group, "for all")
	if _, err := bobPage.WaitFor(ctx, "message", nil); err != nil {
		t.Fatal(err)
	}
	w.want(204, nil, ann.token, "DELETE", "/conversations/"+group+"/members/"+bob.id, nil)
	w.want(204, nil, ann.token, "DELETE", "/conversations/"+group+"/members/"+dan.id, nil) // offline
	mark := bobPage.Mark()
	if err := annPage.Send(ctx, "typing", object{"conversationId": group}); err != nil {
		t.Fatal(err)
	}
	w.send(ann, group, "not for bob")
	if _, err := cydPage.WaitFor(ctx, "message", func(h testkit.Heard) bool { return strings.Contains(string(h.Args[0]), "not for bob") }); err != nil {
		t.Fatal(err)
	}
	w.ask(bobPage, "conversations", object{})
	for _, h := range bobPage.Events("")[mark:] {
		if h.Event == "message" || h.Event == "typing" {
			t.Errorf("bob hears %s %s", h.Event, h.Args[0])
		}
	}
	danPage := w.page(dan)
	gone := `"gone":["` + group + `"]`
	if got := w.ask(danPage, "sync", object{"positions": object{group: 0}}); !got.OK || strings.Contains(strings.Replace(string(got.raw), gone, "", 1), group) {
		t.Errorf("dan gets %s", got.raw)
	}
	if heard := danPage.Events("message"); len(heard) > 0 {
		t.Errorf("dan hears %s", heard[0].Args[0])
	}
}

// A block ends presence at once, for both, and typing.
func TestABlockIsFeltAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := testkit.Context(t)
	ann, bob := w.person("ann"), w.person("bob")
	direct := w.open(ann, object{"user_id": bob.id})
	annPage, bobPage := w.page(ann), w.page(bob)
	for page, other := range map[*testkit.Client]person{annPage: bob, bobPage: ann} {
		if got := w.ask(page, "presence", object{"userIds": []string{other.id}}); !strings.Contains(string(got.raw), `"online":true`) {
			t.Fatalf("%s", got.raw)
		}
	}
	if err := bobPage.Send(ctx, "typing", object{"conversationId": direct}); err != nil {
		t.Fatal(err)
	}
	if _, err := annPage.WaitFor(ctx, "typing", nil); err != nil {
		t.Fatal(err)
	}
	marks := map[*testkit.Client]int{annPage: annPage.Mark(), bobPage: bobPage.Mark()}
	w.want(204, nil, ann.token, "POST", "/users/"+bob.id+"/block", nil)
	for page, mark := range marks {
		offline, err := page.WaitAfter(ctx, mark, "presence", nil)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(offline.Args[0]), `"online":false`) || !strings.Contains(string(offline.Args[0]), `"lastSeenAt":null`) {
			t.Errorf("heard %s", offline.Args[0])
		}
	}
	if got := w.ask(bobPage, "message:send", object{"toUserId": ann.id, "clientMsgId": "1", "text": "x"}); got.Error.Code != "forbidden" {
		t.Errorf("%s", got.raw)
	}
	// Another conversation's typing interval has passed for nobody: a fresh socket.
	fresh := w.page(bob)
	if err := fresh.Send(ctx, "typing", object{"conversationId": direct}); err != nil {
		t.Fatal(err)
	}
	w.ask(fresh, "conversations", object{})
	w.ask(annPage, "conversations", object{})
	for _, h := range annPage.Events("typing") {
		if h.N >= marks[annPage] {
			t.Error("ann hears a blocked user's typing")
		}
	}
	w.want(204, nil, ann.token, "DELETE", "/users/"+bob.id+"/block", nil)
	if got := w.ask(bobPage, "message:send", object{"toUserId": ann.id, "clientMsgId": "2", "text": "x"}); !got.OK {
		t.Errorf("after the end of the block: %s", got.raw)
	}
}

// CASES 40: the same answer at every door.
func TestOrigins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--allowed-origins", "https://app.example.org")
	ann := w.person("ann")
	get := func(path, origin string, header ...string) reply {
		t.Helper()
		return w.call(ann.token, "GET", path, nil, append(header, "Origin", origin)...)
	}
	const polling = "/socket.io/?EIO=4&transport=polling"
	for _, path := range []string{polling, "/me"} {
		if r := get(path, "https://evil.example"); r.status != http.StatusForbidden || r.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s from elsewhere: %d %v", path, r.status, r.header)
		}
		r := get(path, "https://app.example.org")
		if r.status != http.StatusOK || r.header.Get("Access-Control-Allow-Origin") != "https://app.example.org" || r.header.Get("Vary") != "Origin" {
			t.Errorf("%s from the app: %d %v", path, r.status, r.header)
		}
		if r := get(path, w.g.URL); r.status != http.StatusOK {
			t.Errorf("%s from itself: %d", path, r.status)
		}
	}
	if status := upgrade(t, w, "https://evil.example"); status < 400 || status > 499 {
		t.Errorf("a WebSocket from elsewhere: %d", status)
	}
	if status := upgrade(t, w, "https://app.example.org"); status != http.StatusSwitchingProtocols {
		t.Errorf("a WebSocket from the app: %d", status)
	}
	preflight := w.call("", "OPTIONS", "/me", nil, "Origin", "https://app.example.org",
		"Access-Control-Request-Method", "PATCH", "Access-Control-Request-Headers", "authorization,content-type")
	if preflight.status != 204 || !strings.Contains(preflight.header.Get("Access-Control-Allow-Methods"), "PATCH") ||
		!strings.Contains(preflight.header.Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("preflight: %d %v", preflight.status, preflight.header)
	}
}

// upgrade asks for a WebSocket and returns the status.
func upgrade(t *testing.T, w *world, origin string) int {
	t.Helper()
	host := strings.TrimPrefix(w.g.URL, "http://")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nConnection: Upgrade\r\n"+
		"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", host, origin)
	var status int
	if _, err := fmt.Fscanf(conn, "HTTP/1.1 %d", &status); err != nil {
		t.Fatal(err)
	}
	return status
}
