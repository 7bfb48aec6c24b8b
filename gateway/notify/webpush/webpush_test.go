package webpush

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"xabar/chat"
	"xabar/gateway/notify/notifytest"
	"xabar/gateway/notify/outbound"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	timeout = 2 * time.Second
	subject = "mailto:admin@example.org"
)

// memory keeps secrets as stores do.
type memory map[string][]byte

func (m memory) Secret(_ context.Context, name string, fresh []byte) ([]byte, error) {
	if m[name] == nil {
		m[name] = fresh
	}
	return m[name], nil
}

func newKeys(t *testing.T) *Keys {
	t.Helper()
	keys, err := LoadKeys(t.Context(), memory{}, subject)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// browser is a push service on TLS, and a Notifier that may call it.
type browser struct {
	*notifytest.PushService
	notifier *Notifier
	target   json.RawMessage
}

func newBrowser(t *testing.T, keys *Keys) browser {
	t.Helper()
	b := browser{PushService: notifytest.NewPushService()}
	server := httptest.NewTLSServer(b.PushService)
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	caller := outbound.New(outbound.Options{Roots: roots, Timeout: timeout})
	t.Cleanup(caller.Close)
	b.notifier = New(Options{Keys: keys, Caller: caller, AllowPrivate: true})
	b.target = target(t, server.URL+"/push/1", b.Browser)
	t.Cleanup(func() {
		if err := b.Errors(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func target(t *testing.T, endpoint string, b *notifytest.Browser) json.RawMessage {
	t.Helper()
	s := Subscription{Endpoint: endpoint}
	var err error
	if s.P256dh, err = decodeKey(b.P256dh()); err != nil {
		t.Fatal(err)
	}
	if s.Auth, err = decodeKey(b.Auth()); err != nil {
		t.Fatal(err)
	}
	target, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func TestNotifier(t *testing.T) {
	t.Parallel()
	notifytest.Exercise(t, chat.ChannelWebPush, func(t *testing.T) notifytest.Service {
		b := newBrowser(t, newKeys(t))
		return notifytest.Service{
			Notifier: b.notifier, Target: b.target, Timeout: timeout,
			Behave: b.Behave, Received: b.Received, Attempts: b.Attempts,
		}
	})
}

func TestWhatTheBrowserGets(t *testing.T) {
	t.Parallel()
	keys := newKeys(t)
	b := newBrowser(t, keys)
	n := notifytest.Notification("see you")
	for range 2 {
		if _, err := b.notifier.Notify(t.Context(), n, b.target); err != nil {
			t.Fatal(err)
		}
	}
	messages := b.Messages()
	m := messages[0]
	if m.TTL != "86400" || m.Urgency != "high" || m.Subject != subject || m.PublicKey != keys.Public() || m.PaddedTo%padStep != 0 {
		t.Errorf("%+v", m)
	}
	if len(m.Topic) != 32 || messages[1].Topic != m.Topic || topic("another") == m.Topic || strings.Contains(m.Topic, n.Tag) {
		t.Errorf("topics %q and %q", m.Topic, messages[1].Topic)
	}
	if bytes.Equal(m.Payload, nil) || messages[1].BodyLength != m.BodyLength {
		t.Errorf("%+v", messages)
	}
	want := fmt.Sprintf(`{"id":%q,"title":"Ada","body":"see you","tag":"c1","conversation_id":%q,"last_seq":3,"badge":7,"language":"en"}`,
		n.ID, n.Conversations[0].ConversationID)
	if string(m.Payload) != want {
		t.Errorf("got  %s\nwant %s", m.Payload, want)
	}
}

// The largest notification fits into what every push service takes, whatever is in it.
func TestTheLargestFits(t *testing.T) {
	t.Parallel()
	largest := notifytest.Largest()
	for _, count := range []int{1, 2, 4, 5, 50} {
		n := largest
		n.Conversations = largest.Conversations[:count]
		n.Tag = strings.Repeat("t", 64)
		message, err := newPayload(n).encode()
		if err != nil || len(message) > maxMessage {
			t.Errorf("%d conversations: %d bytes, %v", count, len(message), err)
		}
		t.Logf("%d conversations: %d of %d bytes", count, len(message), maxMessage)
	}
	b := notifytest.NewBrowser()
	var s Subscription
	if err := json.Unmarshal(target(t, "https://push.example/1", b), &s); err != nil {
		t.Fatal(err)
	}
	if _, err := encrypt(make([]byte, maxMessage+1), s); err == nil {
		t.Error("more than fits is encrypted")
	}
	body, err := encrypt(make([]byte, maxMessage), s)
	if err != nil || len(body) != maxBody {
		t.Errorf("%d bytes, %v", len(body), err)
	}
}

func TestEveryStatus(t *testing.T) {
	t.Parallel()
	type want struct {
		outcome         chat.Outcome
		refused, failed bool
	}
	for status, w := range map[int]want{
		200: {outcome: chat.Outcome{Sent: true}}, 201: {outcome: chat.Outcome{Sent: true}}, 202: {outcome: chat.Outcome{Sent: true}},
		404: {outcome: chat.Outcome{Gone: true}}, 410: {outcome: chat.Outcome{Gone: true}},
		400: {refused: true, failed: true}, 403: {refused: true, failed: true}, 413: {refused: true, failed: true},
		429: {outcome: chat.Outcome{RetryAfter: outbound.DefaultRetryAfter}},
		301: {failed: true}, 401: {failed: true}, 408: {failed: true}, 500: {failed: true}, 502: {failed: true}, 503: {failed: true},
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			b := newBrowser(t, newKeys(t))
			b.Status["any"] = status
			b.Behave("any")
			outcome, err := b.notifier.Notify(t.Context(), notifytest.Notification("hi"), b.target)
			if outcome != w.outcome || (err != nil) != w.failed || errors.Is(err, chat.ErrRefused) != w.refused {
				t.Errorf("%+v, %v", outcome, err)
			}
		})
	}
}

// What was subscribed before private addresses were refused is refused when it is sent.
func TestPrivateEndpointsAreNotCalled(t *testing.T) {
	t.Parallel()
	b := notifytest.NewPushService()
	server := httptest.NewTLSServer(b)
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	caller := outbound.New(outbound.Options{PublicOnly: true, Roots: roots})
	defer caller.Close()
	n := New(Options{Keys: newKeys(t), Caller: caller})
	for _, endpoint := range []string{
		server.URL, strings.Replace(server.URL, "127.0.0.1", "localhost", 1), strings.Replace(server.URL, "https", "http", 1),
	} {
		outcome, err := n.Notify(t.Context(), notifytest.Notification("hi"), target(t, endpoint, b.Browser))
		if !errors.Is(err, chat.ErrRefused) || outcome != (chat.Outcome{}) || b.Attempts() != 0 {
			t.Errorf("%s: %+v, %v, %d attempts", endpoint, outcome, err, b.Attempts())
		}
	}
}

// RFC 8291, 5 and appendix A.
func TestTheExampleOfTheRFC(t *testing.T) {
	t.Parallel()
	const (
		plaintext = "When I grow up, I want to be a watermelon"
		uaPrivate = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
		uaPublic  = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
		auth      = "BTBZMqHH6r4Tts7J_aSIgg"
		asPrivate = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
		salt      = "DGv6ra1nlYgDCS1FRnbzlw"
		body      = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6Tlz" +
			"AC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	)
	decoded := func(s string) []byte {
		b, err := base64.RawURLEncoding.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	as, err := ecdh.P256().NewPrivateKey(decoded(asPrivate))
	if err != nil {
		t.Fatal(err)
	}
	got, err := seal([]byte(plaintext), 0, Subscription{P256dh: decoded(uaPublic), Auth: decoded(auth)}, as, decoded(salt))
	if err != nil || base64.RawURLEncoding.EncodeToString(got) != body {
		t.Errorf("got %s, %v", base64.RawURLEncoding.EncodeToString(got), err)
	}
	// The reader that the other tests rely on reads it too.
	browser, err := notifytest.NewBrowserOf(uaPrivate, auth)
	if err != nil {
		t.Fatal(err)
	}
	if message, _, err := browser.Decrypt(decoded(body)); err != nil || string(message) != plaintext {
		t.Errorf("%q, %v", message, err)
	}
}

func TestKeysAreMadeOnceAndKept(t *testing.T) {
	t.Parallel()
	store := memory{}
	first, err := LoadKeys(t.Context(), store, subject)
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadKeys(t.Context(), store, "https://example.org/contact")
	if err != nil || again.Public() != first.Public() {
		t.Errorf("%v, %v", again.Public(), err)
	}
	if len(store) != 1 || bytes.Contains(decodeOrFail(t, first.Public()), store[secretName]) {
		t.Error("the private key is in the public one, or kept elsewhere")
	}
	store[secretName] = []byte("not a key")
	if _, err := LoadKeys(t.Context(), store, subject); err == nil || strings.Contains(err.Error(), "not a key") {
		t.Errorf("a broken key: %v", err)
	}
}

func decodeOrFail(t *testing.T, s string) []byte {
	t.Helper()
	b, err := decodeKey(s)
	if err != nil || len(b) != keySize {
		t.Fatalf("%q: %d bytes, %v", s, len(b), err)
	}
	return b
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		subject: true, "https://example.org": true, "mailto:": false, "admin@example.org": false, "http://example.org": false,
		"": false, "https://": false, "mailto:admin": false,
	} {
		if err := CheckSubject(s); (err == nil) != want {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestTokensAreUsedAgainUntilHalfOfTheirLife(t *testing.T) {
	t.Parallel()
	keys := newKeys(t)
	at := func(endpoint string, now time.Time) string {
		u, err := url.Parse(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		header, err := keys.authorization(u, now)
		if err != nil {
			t.Fatal(err)
		}
		return header
	}
	now := time.Now()
	first := at("https://a.example/1", now)
	if at("https://a.example/2", now.Add(tokenUse-time.Second)) != first {
		t.Error("a second token for the same service")
	}
	if at("https://b.example/1", now) == first || at("https://a.example:8443/1", now) == first {
		t.Error("one token for two services")
	}
	if at("https://a.example/1", now.Add(tokenUse+time.Second)) == first {
		t.Error("a token that ends soon is used")
	}
}
