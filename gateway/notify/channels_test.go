package notify_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xabar/chat"
	"xabar/gateway/notify"
	"xabar/gateway/notify/notifytest"
	"xabar/persistence"
)

func channelStore(t *testing.T) chat.Store {
	t.Helper()
	store, err := persistence.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "x.db"), persistence.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func TestChannelsAreThoseThatAreConfigured(t *testing.T) {
	t.Parallel()
	store := channelStore(t)
	base := notify.ChannelConfig{Store: store, Logger: slog.New(slog.DiscardHandler)}
	push := func(c *notify.ChannelConfig) { c.VAPIDSubject = "mailto:admin@example.org" }
	telegram := func(c *notify.ChannelConfig) { c.TelegramToken = "1:token" }
	webhook := func(c *notify.ChannelConfig) {
		c.WebhookURL, c.WebhookSecret = "http://127.0.0.1:1/", "0123456789abcdef"
	}
	var key string
	for _, c := range []struct {
		set  []func(*notify.ChannelConfig)
		want []string
	}{
		{nil, []string{}},
		{[]func(*notify.ChannelConfig){push}, []string{"web-push"}},
		{[]func(*notify.ChannelConfig){telegram}, []string{"telegram"}},
		{[]func(*notify.ChannelConfig){webhook}, []string{"webhook"}},
		{[]func(*notify.ChannelConfig){webhook, telegram, push}, []string{"web-push", "telegram", "webhook"}},
	} {
		config := base
		for _, set := range c.set {
			set(&config)
		}
		channels, err := notify.OpenChannels(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer channels.Close()
		features := channels.Features()
		if !slices.Equal(features, c.want) || features == nil || len(channels.Notifiers) != len(c.want) {
			t.Errorf("%v, want %v", features, c.want)
		}
		if (channels.Push != nil) != slices.Contains(c.want, "web-push") || (channels.Telegram != nil) != slices.Contains(c.want, "telegram") {
			t.Errorf("%v: %+v", c.want, channels)
		}
		if channels.PushKey != "" {
			if key != "" && channels.PushKey != key {
				t.Error("another key at the next start")
			}
			key = channels.PushKey
		}
	}
	if key == "" {
		t.Error("there is no key")
	}
}

func TestWhatCannotBeUsedIsAnError(t *testing.T) {
	t.Parallel()
	store := channelStore(t)
	for _, c := range []notify.ChannelConfig{
		{VAPIDSubject: "admin"}, {TelegramToken: "secret"}, {TelegramToken: "1:x", TelegramAPIURL: "x"},
		{WebhookURL: "secret", WebhookSecret: "0123456789abcdef"}, {WebhookURL: "https://example.org"},
	} {
		c.Store, c.Logger = store, slog.New(slog.DiscardHandler)
		if _, err := notify.OpenChannels(t.Context(), c); err == nil || strings.Contains(err.Error(), "secret\"") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A user links a chat and is notified in it, by what OpenChannels has wired.
func TestALinkedChatIsNotified(t *testing.T) {
	t.Parallel()
	store, api := channelStore(t), notifytest.NewTelegram()
	server := httptest.NewServer(api)
	defer server.Close()
	channels, err := notify.OpenChannels(t.Context(), notify.ChannelConfig{
		Store: store, Logger: slog.New(slog.DiscardHandler), TelegramToken: api.Token, TelegramAPIURL: server.URL,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer channels.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- channels.Run(ctx) }()
	user, err := store.EnsureUser(t.Context(), "bob", "Bob")
	if err != nil {
		t.Fatal(err)
	}
	code, err := channels.Telegram.New(t.Context(), user.ID)
	if err != nil {
		t.Fatal(err)
	}
	api.Write(77, "private", "en", "/start "+code.Code)
	var targets []chat.NotifyTarget
	for deadline := time.Now().Add(20 * time.Second); len(targets) == 0; time.Sleep(5 * time.Millisecond) {
		if targets, err = store.NotifyTargets(t.Context(), user.ID); err != nil || time.Now().After(deadline) {
			t.Fatalf("not linked: %v", err)
		}
	}
	outcome, err := channels.Notifiers[0].Notify(t.Context(), notifytest.Notification("hi"), targets[0].Target)
	if err != nil || !outcome.Sent {
		t.Fatalf("%+v, %v", outcome, err)
	}
	messages := api.Messages()
	if last := messages[len(messages)-1]; last.ChatID != 77 || last.Text != "Ada\nhi" {
		t.Errorf("%+v", last)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
