package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xabar/chat"
	"xabar/persistence/queue"
)

// TestNotificationsListAndRetry: a notification that failed is shown, and tried again.
func TestNotificationsListAndRetry(t *testing.T) {
	dir := t.TempDir()
	if code, _, stderr := xabar(t, "notifications", "list", "--data-dir", dir); code != 1 || !strings.Contains(stderr, "no database") {
		t.Fatalf("without a database: %d %s", code, stderr)
	}
	if code, _, stderr := xabar(t, "migrate", "up", "--data-dir", dir); code != 0 {
		t.Fatal(stderr)
	}
	q, err := queue.Open(t.Context(), "sqlite:"+filepath.Join(dir, "xabar.db"), queue.Options{
		Channels: []string{chat.ChannelWebhook}, Logger: slog.New(slog.DiscardHandler), Poll: 20 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	user := chat.NewID()
	err = q.Insert(t.Context(), []chat.NotifyJob{{
		Notification: chat.NewID(), UserID: user, Channel: chat.ChannelWebhook, Reason: chat.NotDelivered,
		Conversations: []chat.JobConversation{{ConversationID: chat.NewID(), UpTo: 1}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	attempts, ended := make(chan int, 10), make(chan error, 1)
	go func() {
		ended <- q.Run(ctx, func(_ context.Context, a chat.NotifyAttempt) (time.Duration, bool, error) {
			attempts <- a.Number
			return 0, true, errors.New("the webhook answers 410")
		})
	}()
	defer func() {
		stop()
		if err := errors.Join(<-ended, q.Close()); err != nil {
			t.Error(err)
		}
	}()
	attempt := func() {
		t.Helper()
		select {
		case <-attempts:
		case <-time.After(30 * time.Second):
			t.Fatal("no attempt")
		}
	}
	list := func() string {
		t.Helper()
		code, out, stderr := xabar(t, "notifications", "list", "--failed", "--data-dir", dir)
		if code != 0 {
			t.Fatal(stderr)
		}
		return out
	}
	attempt()
	within(t, 30*time.Second, "the notification has failed", func() bool { return strings.Contains(list(), " failed ") })
	if out := list(); !strings.Contains(out, user.String()) || !strings.Contains(out, "the webhook answers 410") {
		t.Errorf("the list is\n%s", out)
	}
	if code, out, stderr := xabar(t, "notifications", "retry", "--all", "--data-dir", dir); code != 0 || !strings.HasPrefix(out, "1 notification") {
		t.Fatalf("retry: %d %s %s", code, out, stderr)
	}
	attempt()
	for _, wrong := range [][]string{{}, {"1", "--all"}} {
		if code, _, _ := xabar(t, append([]string{"notifications", "retry", "--data-dir", dir}, wrong...)...); code != 2 {
			t.Errorf("retry %v exits with %d", wrong, code)
		}
	}
	if code, _, stderr := xabar(t, "notifications", "retry", "999", "--data-dir", dir); code != 1 || !strings.Contains(stderr, "there is no notification 999") {
		t.Errorf("retry of what is not there: %d %s", code, stderr)
	}
}

func TestQuietHoursOfAFlag(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"off", "22:00-07:00 Asia/Tashkent", "00:00-23:59 UTC"} {
		var q Quiet
		if err := q.UnmarshalText([]byte(text)); err != nil || q.String() != text {
			t.Errorf("%q became %q, %v", text, q, err)
		}
	}
	for _, text := range []string{"", "on", "22:00-07:00", "22:00 Asia/Tashkent", "25:00-07:00 UTC", "22:00-07:00 Mars/Olympus", "22:00-07:00 Local", "22-7 UTC"} {
		if err := new(Quiet).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
