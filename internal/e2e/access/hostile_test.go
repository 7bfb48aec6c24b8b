package access

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"xabar/chat"
	"xabar/internal/testkit"
)

var injections = []string{
	"' OR '1'='1", `"; DROP TABLE messages; --`, "1); DELETE FROM users; --", "\\'; SELECT pg_sleep(10); --",
	"%27%20OR%201=1", "$1", "?1", "\x00", "\xff\xfe",
}

// SQL never sees what a client writes but as a value: each place answers as for any
// other text, and everything is still there.
func TestSQLInjection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--limit-events", "off", "--limit-conversations", "off")
	ann, bob := w.person("ann"), w.person("bob")
	direct := w.open(ann, object{"user_id": bob.id})
	page := w.page(ann)
	fine := func(what string, r reply) {
		t.Helper()
		if r.status >= 500 || r.status == 200 && strings.Contains(what, "cursor") {
			t.Errorf("%s: %d %s", what, r.status, r.body)
		}
	}
	for i, text := range injections {
		escaped := url.QueryEscape(text)
		for _, list := range []string{"/conversations", "/contacts", "/conversations/" + direct + "/members"} {
			fine("cursor of "+list, w.call(ann.token, "GET", list+"?cursor="+escaped, nil))
		}
		fine("path", w.call(ann.token, "GET", "/conversations/"+url.PathEscape(text), nil))
		fine("user in the path", w.call(ann.token, "POST", "/users/"+url.PathEscape(text)+"/block", nil))
		fine("user", w.call(ann.token, "POST", "/contacts", object{"user_id": text}))
		fine("title", w.call(ann.token, "POST", "/conversations", object{"title": text, "member_ids": []string{bob.id}}))
		fine("client_msg_id", w.call(ann.token, "POST", "/conversations/"+direct+"/messages", object{"client_msg_id": text, "text": text}))
		fine("name", w.call(ann.token, "PATCH", "/me", object{"name": text}))
		fine("zone", w.call(ann.token, "PATCH", "/me", object{"quiet_hours": object{"from": "22:00", "until": "07:00", "time_zone": text}}))
		fine("admin user", w.call(serverKey, "POST", "/admin/users", object{"user": text, "name": "x"}))
		fine("admin path", w.call(serverKey, "GET", "/admin/users/"+url.PathEscape(text)+"/export", nil))
		for event, payload := range map[string]object{
			"message:send":  {"conversationId": direct, "clientMsgId": fmt.Sprint(text, i), "text": text},
			"history":       {"conversationId": text},
			"conversations": {"cursor": text},
			"presence":      {"userIds": []string{text}},
		} {
			if got := w.ask(page, event, payload); got.Error.Code == "internal" {
				t.Errorf("%s with %q: %s", event, text, got.raw)
			}
		}
	}
	w.want(200, nil, bob.token, "GET", "/conversations/"+direct, nil)
	if strings.Contains(w.g.Log(), `"level":"ERROR"`) {
		t.Error("something was an internal error; see the log")
	}
}

// raw speaks HTTP by hand and returns the status, 0 when the connection was closed
// without an answer, and the whole answer.
func raw(t *testing.T, w *world, patience time.Duration, pieces ...string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.g.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	for _, piece := range pieces {
		if _, err := io.WriteString(conn, piece); err != nil {
			break // the server has enough; what it said can still be read
		}
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body) // as far as it comes: the server may close
	return answer.StatusCode, string(body)
}

func TestOversizedAndSlow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("ann")
	head := "POST /sync HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + ann.token + "\r\nContent-Type: application/json\r\n"
	for name, test := range map[string]struct {
		pieces []string
		status int
		code   string
	}{
		"headers of 200 kB":    {[]string{"GET /me HTTP/1.1\r\nHost: x\r\nX-Big: " + strings.Repeat("x", 200<<10) + "\r\n\r\n"}, 431, ""},
		"5,000 headers":        {[]string{"GET /me HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X-Many: 123456789\r\n", 5000) + "\r\n"}, 431, ""},
		"a body of 2 MB":       {[]string{head + "Content-Length: 2097152\r\n\r\n"}, 413, "invalid_argument"},
		"a body without a end": {[]string{head + "Transfer-Encoding: chunked\r\n\r\n", strings.Repeat("10000\r\n"+strings.Repeat(" ", 1<<16)+"\r\n", 40)}, 413, "invalid_argument"},
		"a slow body":          {[]string{head + "Content-Length: 100\r\n\r\n{"}, 408, "timeout"},
		"slow headers":         {[]string{"GET /me HTTP/1.1\r\nHost: x\r\n"}, 0, ""},
		"two lengths":          {[]string{head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} "}, 400, ""},
		"an old trick":         {[]string{"GET /me HTTP/1.1\r\nHost: x\r\nX-Bad: a\x00b\r\n\r\n"}, 400, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			status, body := raw(t, w, 30*time.Second, test.pieces...)
			if status != test.status || !strings.Contains(body, test.code) {
				t.Errorf("%d %s, want %d %s", status, body, test.status, test.code)
			}
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// What a client writes can't forge a line of the log, nor a header of an answer.
func TestHeaderAndLogInjection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--log-level", "debug")
	ann := w.person("ann")
	const forged = "forged\",\"level\":\"FATAL"
	for _, id := range []string{"ok-1.2_3", "a b", "a\tb", forged, strings.Repeat("x", 65), "é"} {
		r := w.call(ann.token, "GET", "/me", nil, "X-Request-Id", id)
		if got := r.header.Get("X-Request-Id"); (got == id) != (id == "ok-1.2_3") || got == "" {
			t.Errorf("request id %q is answered with %q", id, got)
		}
	}
	for _, path := range []string{
		"/conversations/%0d%0aSet-Cookie:%20a=b", "/users/a%0d%0aX-Injected:%20yes/block", "/%0a{%22level%22:%22FATAL%22}", "/../../etc/passwd", "/me%00",
	} {
		method := "GET"
		if strings.HasSuffix(path, "block") {
			method = "POST"
		}
		status, _ := raw(t, w, testkit.Patience, method+" "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer "+ann.token+"\r\n\r\n")
		if status < 300 || status > 499 {
			t.Errorf("%s: %d", path, status)
		}
	}
	r := w.call(ann.token, "POST", "/users/"+url.PathEscape("a\r\nX-Injected: yes")+"/block", nil)
	if r.header.Get("X-Injected") != "" {
		t.Error("a header was injected")
	}
	if r := w.call("a\"b.c.d"+forged, "GET", "/me", nil); r.status != 401 {
		t.Errorf("%d %s", r.status, r.body)
	}
	w.call(ann.token, "GET", "/me", nil, "User-Agent", forged)
	w.g.Stop()
	for line := range strings.Lines(w.g.Log()) {
		if !strings.HasPrefix(line, "{") {
			continue // the banner
		}
		var entry struct{ Level string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Level == "FATAL" {
			t.Errorf("a line of the log is %q: %v", line, err)
		}
		if strings.Contains(line, ann.token) {
			t.Errorf("the log holds a token: %s", line)
		}
	}
}

// Bodies that grow when they are parsed, many at once: an answer each, and memory
// that stays bounded.
func TestJSONBombs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--limit-events", "off", "--limit-conversations", "off")
	ann := w.person("ann")
	const large = 1 << 20
	wide := []byte(`{"positions": {` + strings.Repeat(`"a":{},`, large/7-20) + `"b":0}}`)
	ids := []byte(`{"title": "x", "member_ids": [` + strings.Repeat("1,", 512<<10/2-100) + `1]}`)
	bombs := map[string]struct {
		path string
		body []byte
	}{
		"deep arrays":  {"/sync", bytes.Repeat([]byte("["), large-10)},
		"deep objects": {"/sync", bytes.Repeat([]byte(`{"a":`), large/5-10)},
		"deep inside":  {"/sync", []byte(`{"positions": ` + strings.Repeat(`{"x":`, 9000) + "1" + strings.Repeat("}", 9000) + "}")},
		"wide":         {"/sync", wide},
		"ids":          {"/conversations", ids},
		"a number":     {"/sync", []byte(`{"positions": {"` + chat.NewID().String() + `": 1` + strings.Repeat("0", 500_000) + "}}")},
		"an exponent":  {"/sync", []byte(`{"positions": {"` + chat.NewID().String() + `": 1e999999999}}`)},
		"long keys":    {"/sync", []byte(`{"` + strings.Repeat("k", large-100) + `": 1, "positions": []}`)},
		"a wide list":  {"/sync", []byte(`{"positions": [` + strings.Repeat("{},", large/3-50) + `1]}`)},
		"repeats":      {"/sync", []byte(`{` + strings.Repeat(`"positions":{},`, large/15-20) + `"positions":[]}`)},
	}
	before := peakMemory(t, w.g.PID())
	for name, bomb := range bombs {
		var all sync.WaitGroup
		for range 30 {
			all.Go(func() {
				r := w.call(ann.token, "POST", bomb.path, bomb.body)
				if r.status != 400 && r.status != 503 {
					t.Errorf("%s: %d %.200s", name, r.status, r.body)
				}
			})
		}
		all.Wait()
	}
	for _, query := range []string{"limit=1e999999999", "limit=" + strings.Repeat("9", 30_000), "after_seq=1e999999999", "before_seq=0x7fffffffffffffff"} {
		if r := w.call(ann.token, "GET", "/conversations/"+chat.NewID().String()+"/messages?"+query, nil); r.status != 400 {
			t.Errorf("%.40s: %d %.200s", query, r.status, r.body)
		}
	}
	// Up to 16 MB of large bodies at a time, each parsed twice; the rest is
	// garbage that waits for its collection, and the race detector.
	grown := peakMemory(t, w.g.PID()) - before
	t.Logf("the server grew by %d MB", grown>>20)
	if grown > 600<<20 {
		t.Errorf("the server grew by %d MB", grown>>20)
	}
	w.want(200, nil, ann.token, "GET", "/me", nil)
}

// peakMemory is the most that the process has held so far, in bytes.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}
