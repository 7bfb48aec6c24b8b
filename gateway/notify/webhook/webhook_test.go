package webhook_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"xabar/chat"
	"xabar/gateway/notify/notifytest"
	"xabar/gateway/notify/outbound"
	"xabar/gateway/notify/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secret  = "0123456789abcdef"
	timeout = 2 * time.Second
)

// received is what the guide says is in a body.
type received struct {
	ID, Type, Language, Title, Body, Text, Tag string
	User                                       struct {
		ID         string `json:"id"`
		ExternalID string `json:"external_id"`
		Name       string `json:"name"`
	}
	Badge         int64
	Conversations []struct {
		ID, Kind, Title string
		SenderName      string `json:"sender_name"`
		Count           int64
		Preview         *string
		LastSeq         int64 `json:"last_seq"`
	}
}

// receiver is a webhook that checks every signature.
type receiver struct {
	notifytest.Far
	server *httptest.Server
	last   received
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{Far: notifytest.Far{Status: map[notifytest.Behaviour]int{
		notifytest.RefuseFlood: 429, notifytest.RefuseThis: 422, notifytest.Fail: 500,
	}}}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !r.Attempt(w, req) {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err == nil {
			err = webhook.Verify(req.Header, []byte(secret), time.Now(), body)
		}
		if err == nil {
			r.last = received{}
			err = json.Unmarshal(body, &r.last)
		}
		if err != nil || req.Method != http.MethodPost || req.Header.Get("Content-Type") != "application/json" {
			t.Errorf("a bad request: %v", err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.Arrived(r.last.Text + "\n" + r.last.Title + "\n" + r.last.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(r.server.Close)
	return r
}

func (r *receiver) notifier(t *testing.T) chat.Notifier {
	t.Helper()
	caller := outbound.New(outbound.Options{Timeout: timeout})
	t.Cleanup(caller.Close)
	n, err := webhook.New(webhook.Options{URL: r.server.URL + "/hook", Secret: secret, Caller: caller})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNotifier(t *testing.T) {
	t.Parallel()
	notifytest.Exercise(t, chat.ChannelWebhook, func(t *testing.T) notifytest.Service {
		r := newReceiver(t)
		return notifytest.Service{
			Notifier: r.notifier(t), Target: json.RawMessage("null"), NeverGone: true, Timeout: timeout,
			Behave: r.Behave, Received: r.Received, Attempts: r.Attempts,
		}
	})
}

func TestTheBodyIsAsDescribed(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	n := notifytest.Notification("see you")
	external := "42"
	n.User.ExternalID = &external
	if _, err := r.notifier(t).Notify(t.Context(), n, nil); err != nil {
		t.Fatal(err)
	}
	got, c := r.last, n.Conversations[0]
	if got.ID != n.ID || got.Type != "notification" || got.Language != "en" || got.Tag != "c1" || got.Badge != 7 ||
		got.User.ID != n.User.ID.String() || got.User.ExternalID != "42" || got.User.Name != "Bob" ||
		got.Text != "Ada: see you" || len(got.Conversations) != 1 {
		t.Fatalf("%+v", got)
	}
	if in := got.Conversations[0]; in.ID != c.ConversationID.String() || in.Kind != "direct" || in.SenderName != "Ada" ||
		in.Count != 1 || *in.Preview != "see you" || in.LastSeq != 3 {
		t.Errorf("%+v", in)
	}
	n.HideText = true
	if _, err := r.notifier(t).Notify(t.Context(), n, nil); err != nil {
		t.Fatal(err)
	}
	if r.last.Conversations[0].Preview != nil {
		t.Errorf("the text is there: %+v", r.last)
	}
}

func TestEveryStatus(t *testing.T) {
	t.Parallel()
	type want struct {
		outcome chat.Outcome
		refused bool
		failed  bool
	}
	for status, w := range map[int]want{
		200: {outcome: chat.Outcome{Sent: true}}, 201: {outcome: chat.Outcome{Sent: true}}, 202: {outcome: chat.Outcome{Sent: true}},
		204: {outcome: chat.Outcome{Sent: true}},
		301: {failed: true}, 307: {failed: true}, 401: {failed: true}, 403: {failed: true}, 404: {failed: true}, 408: {failed: true},
		400: {failed: true, refused: true}, 410: {failed: true, refused: true}, 413: {failed: true, refused: true},
		415: {failed: true, refused: true}, 422: {failed: true, refused: true},
		429: {outcome: chat.Outcome{RetryAfter: outbound.DefaultRetryAfter}},
		500: {failed: true}, 502: {failed: true}, 503: {failed: true}, 504: {failed: true},
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t)
			r.Status["any"] = status
			r.Behave("any")
			outcome, err := r.notifier(t).Notify(t.Context(), notifytest.Notification("hi"), nil)
			if outcome != w.outcome || (err != nil) != w.failed || errors.Is(err, chat.ErrRefused) != w.refused {
				t.Errorf("%+v, %v", outcome, err)
			}
		})
	}
}

func TestAPauseIsAskedForWith503Too(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.Status[notifytest.RefuseFlood] = 503
	r.Behave(notifytest.RefuseFlood)
	outcome, err := r.notifier(t).Notify(t.Context(), notifytest.Notification("hi"), nil)
	if err != nil || outcome != (chat.Outcome{RetryAfter: notifytest.FloodPause}) {
		t.Errorf("%+v, %v", outcome, err)
	}
}

// The example of the Standard Webhooks specification.
func TestTheSignatureIsThatOfStandardWebhooks(t *testing.T) {
	t.Parallel()
	key, err := webhook.Key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{}
	at, body := time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`)
	webhook.Sign(header, key, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, body)
	if got := header.Get("webhook-signature"); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Error(got)
	}
}

func TestWhatIsNotBelieved(t *testing.T) {
	t.Parallel()
	now, body, key := time.Now(), []byte(`{"a":1}`), []byte(secret)
	signed := func(change func(http.Header)) http.Header {
		header := http.Header{}
		webhook.Sign(header, key, "id", now, body)
		change(header)
		return header
	}
	none := func(http.Header) {}
	if err := webhook.Verify(signed(none), key, now.Add(webhook.ReplayWindow-time.Second), body); err != nil {
		t.Errorf("in time: %v", err)
	}
	both := signed(func(h http.Header) { h.Set(webhook.HeaderSignature, "v1,AAAA v2,x "+h.Get(webhook.HeaderSignature)) })
	if err := webhook.Verify(both, key, now, body); err != nil {
		t.Errorf("one of several signatures: %v", err)
	}
	for name, bad := range map[string]struct {
		header http.Header
		key    []byte
		now    time.Time
		body   []byte
	}{
		"another body":      {signed(none), key, now, []byte(`{"a":2}`)},
		"another key":       {signed(none), []byte("fedcba9876543210"), now, body},
		"too late":          {signed(none), key, now.Add(webhook.ReplayWindow + 2*time.Second), body},
		"too early":         {signed(none), key, now.Add(-webhook.ReplayWindow - 2*time.Second), body},
		"another id":        {signed(func(h http.Header) { h.Set(webhook.HeaderID, "other") }), key, now, body},
		"another timestamp": {signed(func(h http.Header) { h.Set(webhook.HeaderTimestamp, fmt.Sprint(now.Unix()+1)) }), key, now, body},
		"no timestamp":      {signed(func(h http.Header) { h.Del(webhook.HeaderTimestamp) }), key, now, body},
		"no signature":      {signed(func(h http.Header) { h.Del(webhook.HeaderSignature) }), key, now, body},
		"another version": {signed(func(h http.Header) {
			h.Set(webhook.HeaderSignature, strings.Replace(h.Get(webhook.HeaderSignature), "v1", "v0", 1))
		}), key, now, body},
	} {
		if err := webhook.Verify(bad.header, bad.key, bad.now, bad.body); err == nil {
			t.Errorf("%s is believed", name)
		}
	}
}

func TestWhatCannotBeConfigured(t *testing.T) {
	t.Parallel()
	caller := outbound.New(outbound.Options{})
	defer caller.Close()
	for _, o := range []webhook.Options{
		{URL: "", Secret: secret}, {URL: "example.org", Secret: secret}, {URL: "ftp://example.org", Secret: secret},
		{URL: "https://example.org", Secret: ""}, {URL: "https://example.org", Secret: "short"},
		{URL: "https://example.org", Secret: "whsec_not base64!"}, {URL: "https://example.org", Secret: "whsec_c2hvcnQ="},
	} {
		o.Caller = caller
		if _, err := webhook.New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
