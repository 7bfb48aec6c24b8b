package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"xabar/gateway/notify/notifytest"
	"xabar/gateway/notify/webhook"
	"xabar/internal/testkit"
)

// noticed is for a wait of 10 s, what a channel then asks for, and a busy machine.
const noticed = 45 * time.Second

func within(t *testing.T, limit time.Duration, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, limit)
		}
	}
}

// hooked is a webhook that keeps what it believes.
type hooked struct {
	mu     sync.Mutex // guards what follows
	bodies []string
	errs   []error
}

func (h *hooked) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = webhook.Verify(r.Header, []byte(strings.Repeat("s", 32)), time.Now(), body)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.errs = append(h.errs, err)
	}
	h.bodies = append(h.bodies, string(body))
}

func (h *hooked) heard() ([]string, []error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bodies, h.errs
}

// do makes a call with a token and returns the answer's body.
func do(t *testing.T, g *testkit.Gateway, method, path, token, body string, want int) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, g.URL+path, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != want {
		t.Fatalf("%s %s: %d %s, %v", method, path, response.StatusCode, answer, err)
	}
	return answer
}

// A user links a Telegram chat, is away, and is told of a message: there, not sooner
// than Telegram allows and once, and by the webhook. Then the user blocks the bot.
func TestTelegramAndWebhookFromEndToEnd(t *testing.T) {
	t.Parallel()
	api, hook := notifytest.NewTelegram(), &hooked{}
	var mu sync.Mutex
	var sent []time.Time // when the bot wrote to the chat
	bot := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/sendMessage") {
			mu.Lock()
			sent = append(sent, time.Now())
			mu.Unlock()
		}
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(bot.Close)
	receiver := httptest.NewServer(hook)
	t.Cleanup(receiver.Close)
	g := testkit.StartGateway(t, testkit.GatewayOptions{Args: []string{
		"--telegram-token", api.Token, "--telegram-api-url", bot.URL, "--notify-wait", "10s",
		"--webhook-url", receiver.URL, "--webhook-secret", strings.Repeat("s", 32),
	}})
	ada, bob := g.Login("Ada"), g.Login("Bob")

	var link struct{ Code, URL string }
	if err := json.Unmarshal(do(t, g, "POST", "/me/telegram", bob.Token, "", 201), &link); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(link.URL, "?start="+link.Code) {
		t.Errorf("%+v", link)
	}
	api.Write(77, "private", "en", "/start "+link.Code)
	within(t, noticed, "the bot's answer", func() bool { return len(api.Messages()) == 1 })

	api.Behave(notifytest.RefuseFlood)
	var opened struct{ ID string }
	answer := do(t, g, "POST", "/conversations", ada.Token, fmt.Sprintf(`{"user_id":%q}`, bob.User.ID), 201)
	if err := json.Unmarshal(answer, &opened); err != nil || opened.ID == "" {
		t.Fatalf("%s, %v", answer, err)
	}
	messages := "/conversations/" + opened.ID + "/messages"
	do(t, g, "POST", messages, ada.Token, `{"client_msg_id":"1","text":"<b>see you</b>"}`, 201)
	within(t, noticed, "the first attempt", func() bool { return api.Attempts() == 2 })
	api.Behave(notifytest.Accept)
	within(t, noticed, "the second attempt", func() bool { return len(api.Messages()) == 2 })
	if m := api.Messages()[1]; m.ChatID != 77 || m.Text != "Ada\n<b>see you</b>" {
		t.Errorf("%+v", m)
	}
	mu.Lock()
	pause := sent[2].Sub(sent[1])
	mu.Unlock()
	if pause < notifytest.FloodPause || api.Attempts() != 3 {
		t.Errorf("%d attempts, %s apart", api.Attempts(), pause)
	}
	within(t, noticed, "the webhook", func() bool { bodies, _ := hook.heard(); return len(bodies) > 0 })
	bodies, errs := hook.heard()
	if len(errs) > 0 || len(bodies) != 1 || !strings.Contains(bodies[0], `"text":"Ada: \u003cb\u003esee you\u003c/b\u003e"`) {
		t.Errorf("the webhook heard %v %q", errs, bodies)
	}

	api.Behave(notifytest.RefuseGone)
	do(t, g, "POST", messages, ada.Token, `{"client_msg_id":"2","text":"again"}`, 201)
	within(t, noticed, "the chat is unlinked", func() bool {
		_, metrics := g.Get("/metrics")
		return strings.Contains(metrics, `xabar_notification_targets_removed_total{channel="telegram"} 1`)
	})
	http.DefaultClient.CloseIdleConnections()
	if log := g.Log(); strings.Contains(log, api.Token) || strings.Contains(log, "see you") || strings.Contains(log, link.Code) {
		t.Error("the log has a token, a code or a text")
	}
}
