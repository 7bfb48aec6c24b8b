package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"xabar/chat"
	"xabar/internal/testkit"
)

// logLines are the lines of a gateway's log with this message.
func logLines(t *testing.T, log, msg string) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for text := range strings.Lines(log) {
		var line map[string]any
		if json.Unmarshal([]byte(text), &line) == nil && line["msg"] == msg {
			lines = append(lines, line)
		}
	}
	return lines
}

// request asks the gateway with these headers, names and values in turn, and returns the
// answer without its body.
func request(t *testing.T, method, url, body string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(testkit.Context(t), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return answer
}

// Each line of an HTTP request has the request's id, and the trace's if that is recorded.
func TestLinesOfARequestHaveItsID(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{Args: []string{"--log-level", "debug", "--otlp-endpoint", "http://127.0.0.1:1", "--trace-sample", "0"}})
	token := "Bearer " + g.Login("ada").Token
	const trace = "0af7651916cd43dd8448eb211c80319c"
	if got := request(t, "GET", g.URL+"/me", "", "Authorization", token, "X-Request-Id", "mine-1").Header.Get("X-Request-Id"); got != "mine-1" {
		t.Errorf("the answer's id is %q", got)
	}
	request(t, "GET", g.URL+"/me", "", "X-Request-Id", "traced-2", "Traceparent", "00-"+trace+"-b7ad6b7169203331-01")
	made := request(t, "GET", g.URL+"/nowhere/at/all", "", "X-Request-Id", "no good, this one").Header.Get("X-Request-Id")
	if made == "" || strings.Contains(made, " ") {
		t.Errorf("an id was made: %q", made)
	}
	g.Stop()
	lines := map[any]map[string]any{}
	for _, line := range logLines(t, g.Log(), "http request") {
		lines[line["request_id"]] = line
	}
	for id, want := range map[string]map[string]any{
		"mine-1":   {"method": "GET", "path": "/me", "status": 200.0, "trace_id": nil},
		"traced-2": {"method": "GET", "path": "/me", "status": 401.0, "trace_id": trace},
		made:       {"status": 404.0},
	} {
		for name, value := range want {
			if lines[id] == nil || lines[id][name] != value {
				t.Errorf("request %s: %s is %v in %v", id, name, lines[id][name], lines[id])
			}
		}
	}
}

// Each line about a socket says whose it is.
func TestLinesOfASocketSayWhose(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{Args: []string{"--log-level", "debug"}})
	ada := g.Login("ada")
	c := testkit.NewJS(t).Connected(t, testkit.ClientOptions{URL: g.URL, Token: ada.Token, Transports: []string{"websocket"}})
	if _, err := c.WaitFor(testkit.Context(t), "session", nil); err != nil {
		t.Fatal(err)
	}
	g.Stop()
	begun, ended := logLines(t, g.Log(), "a socket is connected"), logLines(t, g.Log(), "a socket has ended")
	if len(begun) != 1 || len(ended) != 1 {
		t.Fatalf("%d and %d lines", len(begun), len(ended))
	}
	for _, line := range []map[string]any{begun[0], ended[0]} {
		sid, _ := line["sid"].(string)
		if line["user"] != ada.User.ID || line["socket"] == nil || len(sid) != 20 || sid != begun[0]["sid"] {
			t.Errorf("%v", line)
		}
	}
	if ended[0]["reason"] == "" {
		t.Errorf("it ended without a reason: %v", ended[0])
	}
}

// Texts and tokens are in no line, whatever fails.
func TestTheLogKeepsSecretsOfWhatFails(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{Args: []string{"--log-level", "debug"}})
	js, ctx := testkit.NewJS(t), testkit.Context(t)
	ada := g.Login("ada")
	const text = "a_most_private_word"
	c := js.Connected(t, testkit.ClientOptions{URL: g.URL, Token: ada.Token})
	for event, payload := range map[string]any{
		"message:send": map[string]any{"toUserId": text, "clientMsgId": text, "text": text},
		"history":      map[string]any{"conversationId": text},
		text:           map[string]any{"text": text},
		"auth:refresh": map[string]any{"token": ada.Token + "x"},
		"sync":         map[string]any{"positions": map[string]any{text: text}, "cursor": text},
	} {
		if answer, err := c.Emit(ctx, event, payload); err != nil || !strings.Contains(string(answer), `"ok":false`) {
			t.Errorf("%s: %s %v", event, answer, err)
		}
	}
	for _, auth := range []testkit.ClientOptions{
		{URL: g.URL, Token: ada.Token + "x"},
		{URL: g.URL, Token: ada.Token, Auth: map[string]any{"dialect": text}},
	} {
		if js.Client(t, auth).Connect(ctx) == nil {
			t.Errorf("%v lets in", auth.Auth)
		}
	}
	for _, path := range []string{"/conversations/" + text, "/" + text + "?token=" + ada.Token, "/socket.io/?EIO=4&transport=" + text + "&token=" + ada.Token} {
		request(t, "GET", g.URL+path, "", "Authorization", "Bearer "+ada.Token)
	}
	request(t, "POST", g.URL+"/conversations/"+chat.NewID().String()+"/messages", `{"client_msg_id":"`+text+`","text":"`+text, "Authorization", "Bearer "+ada.Token, "Content-Type", "application/json")
	request(t, strings.ToUpper(text), g.URL+"/me", text, "Authorization", text)
	brokenPackets(t, g.URL, ada.Token, text)
	g.Stop()
	if !strings.Contains(g.Log(), "malformed packet") {
		t.Error("the broken packet is not in the log: this test shows less than it should")
	}
	for _, secret := range []string{ada.Token, text, strings.ToUpper(text)} {
		if i := strings.Index(g.Log(), secret); i >= 0 {
			t.Errorf("the log has %q: %s", secret, g.Log()[max(0, i-300):min(len(g.Log()), i+200)])
		}
	}
}

// brokenPackets sends, on connections of their own, what breaks the protocol.
func brokenPackets(t *testing.T, url, token, text string) {
	t.Helper()
	const opened = `{"sid":"`
	for _, packet := range []string{
		`40{"token":"` + token + `",` + text, `42["message:send",{"text":"` + text, `4` + text, `40/` + text + `,{"token":"` + token + `"}`,
	} {
		answer, err := http.Get(url + "/socket.io/?EIO=4&transport=polling")
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		if _, err := body.ReadFrom(answer.Body); err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(body.String(), opened)
		sid, _, ok := strings.Cut(rest, `"`)
		if !ok {
			t.Fatalf("no session: %s", body.String())
		}
		request(t, "POST", url+"/socket.io/?EIO=4&transport=polling&sid="+sid, packet, "Content-Type", "text/plain")
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestTheContextsOfLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := Logging{LogFormat: "text"}.logger(&out).With("a", 1).WithGroup("g")
	log.WarnContext(t.Context(), "x", slog.Int("b", 2))
	if !strings.HasSuffix(out.String(), "msg=x a=1 g.b=2\n") {
		t.Errorf("%s", out.String())
	}
}

// What tells of the process is for its operators only.
func TestProfilesAndMetricsAreOnTheAdminAddressOnly(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{Args: []string{"--server-key", "a-key-that-nobody-else-knows"}})
	for path, want := range map[string]string{
		"/debug/pprof/": "goroutine", "/debug/pprof/heap?debug=1": "heap profile", "/debug/pprof/goroutine?debug=2": "main.main",
		"/debug/pprof/profile?seconds=1": "", "/debug/pprof/trace?seconds=0.1": "", "/metrics": "xabar_trace_spans_total",
	} {
		status, body := g.Get(path)
		if status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("admin %s: %d %.200s", path, status, body)
		}
	}
	if status, body := g.Get("/debug/pprof/cmdline"); status != http.StatusNotFound || strings.Contains(body, "server-key") {
		t.Errorf("the command line is shown: %d %s", status, body)
	}
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/goroutine", "/debug/pprof/profile", "/metrics", "/healthz", "/readyz"} {
		if answer := request(t, "GET", g.URL+path, ""); answer.StatusCode != http.StatusNotFound {
			t.Errorf("public %s: %s", path, answer.Status)
		}
	}
}

// A collector that takes connections and never answers does not keep a node from ending in
// time, and well.
func TestACollectorThatHangsHoldsNoNodeUp(t *testing.T) {
	t.Parallel()
	hangs, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	g := testkit.StartGateway(t, testkit.GatewayOptions{Args: []string{
		"--otlp-endpoint", "http://" + hangs.Addr().String(), "--trace-sample", "1", "--drain-timeout", "3s",
	}})
	g.Login("ada")
	g.Stop()
	if len(logLines(t, g.Log(), "traces were given up")) != 1 {
		t.Errorf("it does not say that traces were given up")
	}
}
