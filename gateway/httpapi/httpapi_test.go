package httpapi_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"xabar/chat"
	"xabar/gateway/engineio"
	"xabar/gateway/httpapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

type demoUsers struct{ err error }

func (d demoUsers) AddDemoUser(_ context.Context, name string) (chat.User, error) {
	return chat.User{ID: uuid.NewSHA1(uuid.Nil, []byte(name)), Name: name}, d.err
}

type minter struct{}

func (minter) Mint(sub chat.UserRef, name string, ttl time.Duration) (string, time.Time, error) {
	return "token of " + name, time.Now().Add(ttl), nil
}

func public(t *testing.T, d *httpapi.Demo, origins ...string) http.Handler {
	return httpapi.NewPublic(httpapi.Public{Demo: d, Door: door(t, origins...), Logger: quiet})
}

// door is the Engine.IO server's policy.
func door(t *testing.T, origins ...string) httpapi.Door {
	server := engineio.NewServer(engineio.Options{Origins: origins, Logger: quiet}, nil)
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server
}

func serve(h http.Handler, method, path, body string, header ...string) (int, string, http.Header) {
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request)
	answer, _ := io.ReadAll(recorder.Body)
	return recorder.Code, string(answer), recorder.Header()
}

func TestDemoLogin(t *testing.T) {
	h := public(t, &httpapi.Demo{Users: demoUsers{}, Minter: minter{}})
	status, body, header := serve(h, "POST", "/demo/login", `{"name": " Ada "}`, "Content-Type", "application/json; charset=utf-8")
	var answer struct {
		Token string    `json:"token"`
		User  chat.User `json:"user"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	if answer.Token != "token of Ada" || answer.User.Name != "Ada" {
		t.Fatalf("answer %s", body)
	}
	if header.Get("Cache-Control") != "no-store" {
		t.Error("a token may be cached")
	}
}

func TestErrors(t *testing.T) {
	h := public(t, &httpapi.Demo{Users: demoUsers{}, Minter: minter{}})
	down := public(t, &httpapi.Demo{Users: demoUsers{err: chat.Wrap(chat.CodeUnavailable, errors.New("secret of the database"))}, Minter: minter{}})
	broken := public(t, &httpapi.Demo{Users: demoUsers{err: errors.New("secret of the database")}, Minter: minter{}})
	const jsonType = "application/json"
	for name, tc := range map[string]struct {
		handler           http.Handler
		method, path      string
		contentType, body string
		status            int
		code, field       string
	}{
		"no name":            {h, "POST", "/demo/login", jsonType, `{}`, 400, "invalid_argument", "name"},
		"a blank name":       {h, "POST", "/demo/login", jsonType, `{"name": " "}`, 400, "invalid_argument", "name"},
		"a long name":        {h, "POST", "/demo/login", jsonType, `{"name": "` + strings.Repeat("a", 101) + `"}`, 400, "invalid_argument", "name"},
		"a name of 2 lines":  {h, "POST", "/demo/login", jsonType, `{"name": "a\nb"}`, 400, "invalid_argument", "name"},
		"a number":           {h, "POST", "/demo/login", jsonType, `{"name": 1}`, 400, "invalid_argument", "name"},
		"not JSON":           {h, "POST", "/demo/login", jsonType, `name=ada`, 400, "invalid_argument", ""},
		"a form":             {h, "POST", "/demo/login", "text/plain", `{"name": "ada"}`, 415, "invalid_argument", ""},
		"too much":           {h, "POST", "/demo/login", jsonType, `{"name": "` + strings.Repeat("a", 300<<10), 413, "invalid_argument", ""},
		"no such route":      {h, "GET", "/nowhere", "", "", 404, "not_found", ""},
		"no such method":     {h, "GET", "/demo/login", "", "", 405, "not_found", ""},
		"demo is off":        {public(t, nil), "POST", "/demo/login", jsonType, `{"name": "ada"}`, 404, "not_found", ""},
		"the store is down":  {down, "POST", "/demo/login", jsonType, `{"name": "ada"}`, 503, "unavailable", ""},
		"something is wrong": {broken, "POST", "/demo/login", jsonType, `{"name": "ada"}`, 500, "internal", ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, body, _ := serve(tc.handler, tc.method, tc.path, tc.body, "Content-Type", tc.contentType)
			var answer struct {
				Error struct{ Code, Message, Field string }
			}
			if err := json.Unmarshal([]byte(body), &answer); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			if status != tc.status || answer.Error.Code != tc.code || answer.Error.Field != tc.field || answer.Error.Message == "" {
				t.Fatalf("%d %s", status, body)
			}
			if strings.Contains(body, "secret") {
				t.Fatal("the cause reaches the client")
			}
		})
	}
}

func TestOrigins(t *testing.T) {
	h := public(t, &httpapi.Demo{Users: demoUsers{}, Minter: minter{}}, "https://example.org")
	preflight := func(h http.Handler, origin string) string {
		_, _, header := serve(h, "OPTIONS", "/demo/login", "", "Origin", origin,
			"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type")
		return header.Get("Access-Control-Allow-Origin")
	}
	if got := preflight(h, "https://example.org"); got != "https://example.org" {
		t.Errorf("a listed origin gets %q", got)
	}
	if got := preflight(h, "https://example.com"); got != "" {
		t.Errorf("a foreign origin gets %q", got)
	}
	if got := preflight(public(t, nil), "https://example.org"); got != "" {
		t.Errorf("without a list an origin gets %q", got)
	}
}

func TestTheReferenceNeedsNothingFromElsewhere(t *testing.T) {
	status, body, header := serve(public(t, nil), "GET", "/reference", "")
	policy := header.Get("Content-Security-Policy")
	if status != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "text/html") || !strings.Contains(policy, "default-src 'none'") {
		t.Fatalf("%d, headers %v", status, header)
	}
	for _, block := range []struct{ tag, directive string }{{"style", "style-src"}, {"script", "script-src"}} {
		_, rest, _ := strings.Cut(body, "<"+block.tag+">")
		text, _, ok := strings.Cut(rest, "</"+block.tag+">")
		sum := sha256.Sum256([]byte(text))
		if want := block.directive + " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !ok || !strings.Contains(policy, want) {
			t.Errorf("the policy %q does not allow the page's own %s, by %s", policy, block.tag, want)
		}
	}
	for _, text := range []string{"sendMessage", "/conversations/{id}/messages", "client_msg_id", "text_too_long", "server key"} {
		if !strings.Contains(body, text) {
			t.Errorf("the page does not have %q", text)
		}
	}
	for _, attribute := range []string{" style=", " onclick=", "src=", "http://", "@import", "url("} {
		if strings.Contains(body, attribute) {
			t.Errorf("the page has %q", attribute)
		}
	}
}

func TestAdmin(t *testing.T) {
	var store, cluster error
	health := httpapi.NewHealth(quiet,
		httpapi.Check{Name: "store", Required: true, Probe: func(context.Context) error { return store }},
		httpapi.Check{Name: "cluster", Probe: func(context.Context) error { return cluster }})
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "answer", Help: "x"}, func() float64 { return 42 }))
	h := httpapi.NewAdmin(health, registry, quiet)
	want := func(path string, status int, text string) {
		t.Helper()
		gotStatus, got, _ := serve(h, "GET", path, "")
		if gotStatus != status || !strings.Contains(got, text) {
			t.Fatalf("%s: %d %s, want %d %s", path, gotStatus, got, status, text)
		}
	}
	want("/readyz", 200, `{"status":"ok","reasons":[]}`)
	want("/metrics", 200, "answer 42")
	cluster = errors.New("down")
	want("/readyz", 200, `{"status":"degraded","reasons":["cluster"]}`)
	store = errors.New("down")
	want("/readyz", 503, `{"status":"unavailable","reasons":["store","cluster"]}`)
	store, cluster = nil, nil
	health.Drain()
	want("/readyz", 503, `{"status":"draining","reasons":["draining"]}`)
	want("/healthz", 200, "ok")
	want("/nowhere", 404, "not_found")
}

func TestAProbeThatHangsIsNotWaitedForLong(t *testing.T) {
	health := httpapi.NewHealth(quiet, httpapi.Check{Name: "store", Required: true, Probe: func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}})
	start := time.Now()
	status, _, _ := serve(httpapi.NewAdmin(health, prometheus.NewRegistry(), quiet), "GET", "/readyz", "")
	if took := time.Since(start); status != 503 || took > 10*time.Second {
		t.Fatalf("%d after %v", status, took)
	}
}
