package telegram_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"xabar/chat"
	"xabar/gateway/notify/notifytest"
	"xabar/gateway/notify/outbound"
	"xabar/gateway/notify/telegram"
)

const timeout = 2 * time.Second

func newBot(t *testing.T, token, address string) *telegram.Bot {
	t.Helper()
	caller := outbound.New(outbound.Options{Timeout: timeout, MaxAnswer: telegram.UpdatesAnswer})
	t.Cleanup(caller.Close)
	bot, err := telegram.NewBot(token, address, caller)
	if err != nil {
		t.Fatal(err)
	}
	return bot
}

func newAPI(t *testing.T) (*notifytest.Telegram, *telegram.Bot) {
	t.Helper()
	api := notifytest.NewTelegram()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	return api, newBot(t, api.Token, server.URL+"/")
}

func target(t *testing.T, id int64) json.RawMessage {
	t.Helper()
	target, err := json.Marshal(telegram.Target{ChatID: id})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func TestNotifier(t *testing.T) {
	t.Parallel()
	notifytest.Exercise(t, chat.ChannelTelegram, func(t *testing.T) notifytest.Service {
		api, bot := newAPI(t)
		return notifytest.Service{
			Notifier: telegram.NewNotifier(bot, timeout), Target: target(t, 99), Timeout: timeout,
			Behave: api.Behave, Received: api.Received, Attempts: api.Attempts,
		}
	})
}

func TestTheTitleIsBoldAndTheChatTheLinkedOne(t *testing.T) {
	t.Parallel()
	api, bot := newAPI(t)
	n := notifytest.Notification("1 < 2 && \"3\" > </b>")
	n.Conversations[0].SenderName = "<b>Ada</b>"
	if _, err := telegram.NewNotifier(bot, 0).Notify(t.Context(), n, target(t, -5)); err != nil {
		t.Fatal(err)
	}
	m := api.Messages()[0]
	if m.ChatID != -5 || m.Text != "<b>Ada</b>\n1 < 2 && \"3\" > </b>" || !slices.Equal(m.Bold, []string{"<b>Ada</b>"}) {
		t.Errorf("%+v", m)
	}
}

func TestEveryAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status          int
		body            string
		outcome         chat.Outcome
		failed, refused bool
	}{
		"sent":                           {200, `{"ok":true,"result":{"message_id":1}}`, chat.Outcome{Sent: true}, false, false},
		"retry_after 3":                  {429, `{"ok":false,"error_code":429,"description":"x","parameters":{"retry_after":3}}`, chat.Outcome{RetryAfter: 3 * time.Second}, false, false},
		"too many, without a time":       {429, `{"ok":false,"error_code":429,"description":"x"}`, chat.Outcome{RetryAfter: outbound.DefaultRetryAfter}, false, false},
		"too many, from a proxy":         {429, `slow down`, chat.Outcome{RetryAfter: outbound.DefaultRetryAfter}, false, false},
		"blocked":                        {403, `{"ok":false,"error_code":403,"description":"Forbidden: bot was blocked by the user"}`, chat.Outcome{Gone: true}, false, false},
		"bad request":                    {400, `{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}`, chat.Outcome{}, true, true},
		"wrong token":                    {401, `{"ok":false,"error_code":401,"description":"Unauthorized"}`, chat.Outcome{}, true, false},
		"no such bot":                    {404, `{"ok":false,"error_code":404,"description":"Not Found"}`, chat.Outcome{}, true, false},
		"Telegram's fault":               {500, `{"ok":false,"error_code":500,"description":"Internal"}`, chat.Outcome{}, true, false},
		"a proxy's fault":                {502, `<html>`, chat.Outcome{}, true, false},
		"refused with status 200":        {200, `{"ok":false,"error_code":403,"description":"Forbidden"}`, chat.Outcome{Gone: true}, false, false},
		"success that is none":           {200, `welcome to our network`, chat.Outcome{}, true, false},
		"a redirect":                     {302, ``, chat.Outcome{}, true, false},
		"refused without a code of ours": {403, `{"ok":false}`, chat.Outcome{Gone: true}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			bot := newBot(t, "1:secret", server.URL)
			outcome, err := telegram.NewNotifier(bot, timeout).Notify(t.Context(), notifytest.Notification("hi"), target(t, 1))
			if outcome != c.outcome || (err != nil) != c.failed || errors.Is(err, chat.ErrRefused) != c.refused {
				t.Errorf("%+v, %v", outcome, err)
			}
		})
	}
}

func TestErrorsDoNotNameTheToken(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	address := server.URL
	server.Close()
	_, err := telegram.NewNotifier(newBot(t, "1:secret", address), timeout).Notify(t.Context(), notifytest.Notification("hi"), target(t, 1))
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	for _, token := range []string{"", "secret", "secret:1", "1:sec ret", "1:secret/x", "1:secret\n"} {
		if _, err := telegram.NewBot(token, "", nil); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", token, err)
		}
	}
	for _, address := range []string{"api.telegram.org", "ftp://example.org", "https://", "https://example.org?x"} {
		if _, err := telegram.NewBot("1:secret", address, nil); err == nil {
			t.Errorf("%q is taken", address)
		}
	}
	if _, err := telegram.NewBot("1:secret", "", nil); err != nil {
		t.Error(err)
	}
}
