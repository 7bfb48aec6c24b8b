package outbound

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"xabar/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func post(t *testing.T, url string) *http.Request {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return request
}

func newCaller(t *testing.T, o Options) *Caller {
	t.Helper()
	c := New(o)
	t.Cleanup(c.Close)
	return c
}

func TestPublicAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true, "64:ff9b::808:808": true,
		"127.0.0.1": false, "127.9.9.9": false, "::1": false, "::ffff:127.0.0.1": false, "10.1.2.3": false,
		"172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "fe80::1%eth0": false, "fd00:ec2::254": false,
		"0.0.0.0": false, "0.1.2.3": false, "::": false, "100.64.0.1": false, "198.18.0.1": false, "224.0.0.1": false,
		"255.255.255.255": false, "240.0.0.1": false, "64:ff9b::7f00:1": false, "64:ff9b::a00:1": false,
		"64:ff9b:1::808:808": false, "2002:7f00:1::": false, "2001:db8::1": false, "ff02::1": false, "fec0::1": false,
	} {
		if got := Public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for endpoint, wantPublic := range map[string]bool{
		"https://fcm.googleapis.com/fcm/send/x": true, "https://8.8.8.8/": true, "https://push.example.org:8443/a?b": true,
		"https://127.0.0.1/": false, "https://[::1]/": false, "https://[::ffff:10.0.0.1]/x": false,
		"https://169.254.169.254/latest": false, "http://push.example.org/": false, "ftp://example.org": false,
		"https://user:pw@example.org/": false, "https:example.org": false, "https:///x": false, "": false, "https://:80/": false,
		"https://example.org/#f": false, "javascript:alert(1)": false,
	} {
		if err := CheckEndpoint(endpoint, true); (err == nil) != wantPublic {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
	if err := CheckEndpoint("http://127.0.0.1:8080/x", false); err != nil {
		t.Error(err)
	}
	if err := CheckEndpoint("gopher://127.0.0.1/x", false); err == nil {
		t.Error("another scheme passes where private addresses do")
	}
}

// A name that passes every look at it must still not lead to a private address.
func TestNamesDoNotLeadAroundTheGuard(t *testing.T) {
	t.Parallel()
	var called bool
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer server.Close()
	guarded := newCaller(t, Options{PublicOnly: true})
	url := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	_, err := guarded.Do(t.Context(), post(t, url))
	if !errors.Is(err, ErrPrivate) || called {
		t.Fatalf("called: %t, error: %v", called, err)
	}
	if _, err := Failed(err); !errors.Is(err, chat.ErrRefused) {
		t.Fatal(err)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/", http.StatusTemporaryRedirect)
		case "/long":
			_, _ = io.WriteString(w, strings.Repeat("x", 2*DefaultAnswer))
		default:
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()
	c := newCaller(t, Options{})
	if got, err := c.Do(t.Context(), post(t, server.URL+"/moved")); err != nil || got.Status != http.StatusTemporaryRedirect {
		t.Errorf("a redirect: %v, %v", got.Status, err)
	}
	if got, err := c.Do(t.Context(), post(t, server.URL+"/long")); err != nil || len(got.Body) != DefaultAnswer {
		t.Errorf("a long answer: %d bytes, %v", len(got.Body), err)
	}
	if got, err := c.Do(t.Context(), post(t, server.URL)); err != nil || got.Status != 429 || got.RetryAfter != 3*time.Second {
		t.Errorf("too many: %+v, %v", got, err)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-1": 0, "0": time.Second, "3": 3 * time.Second, "99999999999999999": maxRetryAfter,
		"Mon, 30 Nov 2026 12:01:00 GMT": time.Minute, "Mon, 30 Nov 2020 12:01:00 GMT": time.Second,
		"Mon, 30 Nov 2099 12:01:00 GMT": maxRetryAfter,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}

// A slow server fills its own places only, and those who find them full do not wait.
func TestASlowServerHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-release
	}))
	defer slow.Close()
	fast := httptest.NewServer(http.NotFoundHandler())
	defer fast.Close()
	c := newCaller(t, Options{InFlight: 2, Timeout: time.Minute})
	answers := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := c.Do(context.Background(), post(t, slow.URL))
			answers <- err
		}()
		<-entered
	}
	_, err := c.Do(t.Context(), post(t, slow.URL))
	if outcome, failed := Failed(err); !errors.Is(err, ErrBusy) || failed != nil || outcome.RetryAfter <= 0 {
		t.Errorf("the third call: %v, %+v, %v", err, outcome, failed)
	}
	if got, err := c.Do(t.Context(), post(t, fast.URL)); err != nil || got.Status != http.StatusNotFound {
		t.Errorf("the other server: %+v, %v", got, err)
	}
	close(release)
	for range 2 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if len(c.gate.inside) != 0 {
		t.Errorf("places are still taken: %v", c.gate.inside)
	}
}

func TestATimeoutEndsACallAndNamesNoURL(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	c := newCaller(t, Options{Timeout: 20 * time.Millisecond})
	_, err := c.Do(t.Context(), post(t, server.URL+"/secret"))
	if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	if outcome, err := Failed(err); outcome != (chat.Outcome{}) || err == nil || errors.Is(err, chat.ErrRefused) {
		t.Errorf("%+v, %v", outcome, err)
	}
}
