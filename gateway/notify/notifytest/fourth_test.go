package notifytest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"xabar/chat"
	"xabar/gateway/notify/notifytest"
	"xabar/gateway/notify/outbound"
	"xabar/gateway/notify/text"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The fourth channel of docs/guides/notification-channel.md stands between the two
// lines below, and there, the same. It passes the suite as the other three do.

// begin: the channel

// Notifier publishes to topics of an ntfy server (docs.ntfy.sh/publish).
type Notifier struct {
	server string
	caller *outbound.Caller
}

// Target is the topic that a user listens to.
type Target struct {
	Topic string `json:"topic"`
}

// New publishes to the server at that URL.
func New(server string, caller *outbound.Caller) *Notifier { return &Notifier{server, caller} }

// Channel implements chat.Notifier.
func (*Notifier) Channel() string { return "ntfy" }

// Notify implements chat.Notifier.
func (n *Notifier) Notify(ctx context.Context, notification chat.Notification, target json.RawMessage) (chat.Outcome, error) {
	var to Target
	if err := json.Unmarshal(target, &to); err != nil || to.Topic == "" {
		return chat.Outcome{}, errors.Join(chat.ErrRefused, errors.New("not a topic"))
	}
	written := text.Of(notification)
	body, err := json.Marshal(map[string]string{"topic": to.Topic, "title": written.Title, "message": written.Body})
	if err != nil {
		return chat.Outcome{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.server, bytes.NewReader(body))
	if err != nil {
		return chat.Outcome{}, errors.New("the server's URL can't be used")
	}
	answer, err := n.caller.Do(ctx, request)
	if err != nil {
		return outbound.Failed(err)
	}
	failed := fmt.Errorf("the ntfy server answers %d", answer.Status)
	switch answer.Status {
	case http.StatusOK:
		return chat.Outcome{Sent: true}, nil
	case http.StatusNotFound:
		return chat.Outcome{Gone: true}, nil
	case http.StatusTooManyRequests:
		return chat.Outcome{RetryAfter: max(answer.RetryAfter, time.Second)}, nil
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return chat.Outcome{}, errors.Join(chat.ErrRefused, failed)
	}
	return chat.Outcome{}, failed
}

// end: the channel

// begin: its test

const timeout = 2 * time.Second

func TestNotifier(t *testing.T) {
	t.Parallel()
	notifytest.Exercise(t, "ntfy", func(t *testing.T) notifytest.Service {
		far := &notifytest.Far{Status: map[notifytest.Behaviour]int{
			notifytest.RefuseGone: 404, notifytest.RefuseFlood: 429, notifytest.RefuseThis: 400, notifytest.Fail: 500,
		}}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !far.Attempt(w, r) {
				return
			}
			var got struct{ Topic, Title, Message string }
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil || got.Topic != "bob" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			far.Arrived(got.Title + "\n" + got.Message)
		}))
		t.Cleanup(server.Close)
		caller := outbound.New(outbound.Options{Timeout: timeout})
		t.Cleanup(caller.Close)
		return notifytest.Service{
			Notifier: New(server.URL, caller), Target: json.RawMessage(`{"topic":"bob"}`), Timeout: timeout,
			Behave: far.Behave, Received: far.Received, Attempts: far.Attempts,
		}
	})
}

// end: its test

// The guide shows the code that this file runs.
func TestTheGuideShowsThisCode(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/guides/notification-channel.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("fourth_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"the channel", "its test"} {
		_, rest, begun := strings.Cut(string(source), "\n// begin: "+part+"\n")
		code, _, ended := strings.Cut(rest, "\n// end: "+part+"\n")
		if !begun || !ended || len(code) < 200 {
			t.Fatalf("%s is not marked", part)
		}
		if !strings.Contains(string(guide), strings.TrimSpace(code)) {
			t.Errorf("docs/guides/notification-channel.md does not show this, of %s:\n%s", part, code)
		}
	}
}
