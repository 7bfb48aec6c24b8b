package engineio

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestRefusals(t *testing.T) {
	f := newFixture(t, Options{}, nil)
	p := f.openPolling()
	ws, open := f.openWS()
	defer ws.conn.Close()
	for _, c := range []struct {
		name, method, query string
		status              int
		body                string
	}{
		{"no transport", "GET", "EIO=4", 400, `{"code":0,"message":"Transport unknown"}`},
		{"bad transport", "GET", "EIO=4&transport=constructor", 400, `{"code":0,"message":"Transport unknown"}`},
		{"bad sid", "GET", "EIO=4&transport=polling&sid=abc", 400, `{"code":1,"message":"Session ID unknown"}`},
		{"bad sid POST", "POST", "EIO=4&transport=polling&sid=abc", 400, `{"code":1,"message":"Session ID unknown"}`},
		{"POST handshake", "POST", "EIO=4&transport=polling", 400, `{"code":2,"message":"Bad handshake method"}`},
		{"OPTIONS handshake", "OPTIONS", "EIO=4&transport=polling", 400, `{"code":2,"message":"Bad handshake method"}`},
		{"websocket without upgrade", "GET", "EIO=4&transport=websocket", 400, `{"code":3,"message":"Bad request"}`},
		{"websocket GET of a polling session", "GET", strings.Replace(p.query, "polling", "websocket", 1), 400, `{"code":3,"message":"Bad request"}`},
		{"polling GET of a websocket session", "GET", "EIO=4&transport=polling&sid=" + open.SID, 400, `{"code":3,"message":"Bad request"}`},
		{"polling POST of a websocket session", "POST", "EIO=4&transport=polling&sid=" + open.SID, 400, `{"code":3,"message":"Bad request"}`},
		{"protocol 3", "GET", "EIO=3&transport=polling", 400, `{"code":5,"message":"Unsupported protocol version"}`},
		{"no protocol", "GET", "transport=polling", 400, `{"code":5,"message":"Unsupported protocol version"}`},
		{"PUT of a session", "PUT", p.query, 500, ``},
	} {
		a := f.request(c.method, c.query, "")
		if a.status != c.status || a.body != c.body {
			t.Errorf("%s: %d %q, want %d %q", c.name, a.status, a.body, c.status, c.body)
		}
		if c.status == 400 && a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: content type %q", c.name, a.header.Get("Content-Type"))
		}
	}
}

func TestRefusedUpgrades(t *testing.T) {
	f := newFixture(t, Options{}, nil)
	for _, c := range []struct {
		name, query string
		header      []string
		body        string
	}{
		{"bad transport", "EIO=4&transport=x", nil, "Transport unknown"},
		{"polling", "EIO=4&transport=polling", nil, "Bad request"},
		{"bad sid", "EIO=4&transport=websocket&sid=abc", nil, "Session ID unknown"},
		{"protocol 3", "EIO=3&transport=websocket", nil, "Unsupported protocol version"},
		{"foreign origin", "EIO=4&transport=websocket", []string{"Origin", "https://evil.example"}, "Forbidden"},
	} {
		w := f.upgrade(c.query, c.header...)
		body := make([]byte, w.resp.ContentLength)
		if _, err := w.resp.Body.Read(body); err != nil && len(body) > 0 && body[0] == 0 {
			t.Fatal(err)
		}
		if w.resp.StatusCode != 400 || string(body) != c.body {
			t.Errorf("%s: %d %q, want 400 %q", c.name, w.resp.StatusCode, body, c.body)
		}
	}
	for name, header := range map[string][]string{
		"short key":   {"Sec-WebSocket-Key", "abc"},
		"old version": {"Sec-WebSocket-Version", "7"},
	} {
		a := f.request("GET", "EIO=4&transport=websocket", "", append([]string{"Upgrade", "websocket", "Connection", "keep-alive, Upgrade",
			"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}, header...)...)
		if a.status != 400 {
			t.Errorf("%s: %d", name, a.status)
		}
	}
}

func TestPaths(t *testing.T) {
	for _, c := range []struct {
		opts Options
		path string
		want bool
	}{
		{Options{}, "/engine.io/", true},
		{Options{}, "/engine.io/default/", true},
		{Options{}, "/engine.io", false},
		{Options{}, "/engine.iox/", false},
		{Options{}, "/", false},
		{Options{Path: "/socket.io/"}, "/socket.io/", true},
		{Options{Path: "/socket.io/"}, "/engine.io/", false},
		{Options{NoTrailingSlash: true}, "/engine.io", true},
		{Options{NoTrailingSlash: true}, "/engine.io/", true},
		{Options{NoTrailingSlash: true}, "/engine.iox", false},
	} {
		f := newFixture(t, c.opts, nil)
		resp, err := f.client.Get(f.http.URL + c.path + "?EIO=4&transport=polling")
		must(t, err)
		must(t, resp.Body.Close())
		if got := resp.StatusCode == 200; got != c.want {
			t.Errorf("%+v %s: %d", c.opts.Path, c.path, resp.StatusCode)
		}
	}
}

func TestOpenPacket(t *testing.T) {
	f := newFixture(t, Options{PingInterval: 3 * time.Second, PingTimeout: 2 * time.Second, MaxPayload: 1234}, nil)
	want := openData{PingInterval: 3000, PingTimeout: 2000, MaxPayload: 1234}
	a := f.request("GET", "EIO=4&transport=polling", "")
	o := parseOpen(t, a.body)
	if len(o.SID) != 20 || len(o.Upgrades) != 1 || o.Upgrades[0] != "websocket" ||
		o.PingInterval != want.PingInterval || o.PingTimeout != want.PingTimeout || o.MaxPayload != want.MaxPayload {
		t.Errorf("polling: %+v", o)
	}
	if a.header.Get("Content-Type") != "text/plain; charset=UTF-8" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers: %v", a.header)
	}
	_, o = f.openWS()
	if o.Upgrades == nil || len(o.Upgrades) != 0 {
		t.Errorf("websocket: %+v", o)
	}
	for name, opts := range map[string]Options{"no upgrades": {NoUpgrades: true}, "no websocket": {Transports: []string{Polling}}} {
		f := newFixture(t, opts, nil)
		if a := f.request("GET", "EIO=4&transport=polling", ""); !strings.Contains(a.body, `"upgrades":[]`) {
			t.Errorf("%s: %s", name, a.body)
		}
	}
}

func TestHandshakeDetails(t *testing.T) {
	f := newFixture(t, Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}}, nil)
	f.openWS("X-Custom", "1", "X-Forwarded-For", "6.6.6.6, 203.0.113.9, 10.1.1.1", "X-Forwarded-Proto", "https",
		"X-Forwarded-Host", "chat.example", "Origin", "https://chat.example")
	h := f.session().socket.Handshake()
	if h.Address != "203.0.113.9" || !h.Secure || h.Host != "chat.example" || !h.XDomain || h.Headers.Get("X-Custom") != "1" ||
		h.Query.Get("transport") != "websocket" || h.URL != "/engine.io/?EIO=4&transport=websocket" || time.Since(h.Time) > patience {
		t.Errorf("%+v", h)
	}
	f = newFixture(t, Options{}, nil)
	f.openWS("X-Forwarded-For", "6.6.6.6", "X-Forwarded-Proto", "https")
	if h := f.session().socket.Handshake(); h.Address != "127.0.0.1" || h.Secure || h.XDomain {
		t.Errorf("untrusted: %+v", h)
	}
}

func TestForwardedFor(t *testing.T) {
	s := &Server{opts: Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}}
	for _, c := range []struct{ remote, forwarded, want string }{
		{"10.0.0.1:5", "1.2.3.4", "1.2.3.4"},
		{"10.0.0.1:5", "9.9.9.9, 1.2.3.4, 10.0.0.2", "1.2.3.4"},
		{"10.0.0.1:5", "10.0.0.3, 10.0.0.2", "10.0.0.3"},
		{"10.0.0.1:5", "1.2.3.4:777", "1.2.3.4"},
		{"10.0.0.1:5", "1.2.3.4, unknown", "10.0.0.1"},
		{"10.0.0.1:5", "", "10.0.0.1"},
		{"[fd00::1]:5", "[2001:db8::1]", "2001:db8::1"},
		{"10.0.0.1:5", "::ffff:1.2.3.4", "1.2.3.4"},
		{"8.8.8.8:5", "1.2.3.4", "8.8.8.8"},
	} {
		r := &http.Request{RemoteAddr: c.remote, Header: http.Header{}}
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if got := s.clientOf(r).address; got != c.want {
			t.Errorf("%s, %q: %s, want %s", c.remote, c.forwarded, got, c.want)
		}
	}
}

func TestAllowRequest(t *testing.T) {
	var refusal error
	f := newFixture(t, Options{AllowRequest: func(*http.Request) error { return refusal }}, nil)
	f.openPolling()
	for _, c := range []struct {
		err     error
		status  int
		body    string
		upgrade int
	}{
		{errors.New("no entry"), 403, `{"code":4,"message":"no entry"}`, 400},
		{&RefuseError{}, 403, `{"code":4,"message":"Forbidden"}`, 400},
		{&RefuseError{Status: 429, Message: "slowly"}, 429, `{"code":4,"message":"slowly"}`, 429},
	} {
		refusal = c.err
		a := f.request("GET", "EIO=4&transport=polling", "")
		if a.status != c.status || a.body != c.body {
			t.Errorf("%v: %d %s", c.err, a.status, a.body)
		}
		if w := f.upgrade("EIO=4&transport=websocket"); w.resp.StatusCode != c.upgrade {
			t.Errorf("%v: upgrade: %d", c.err, w.resp.StatusCode)
		}
	}
}

// A balancer reads from a session's id which server has it.
func TestSessionPrefix(t *testing.T) {
	f := newFixture(t, Options{SessionPrefix: "node-1"}, echo)
	a := f.request("GET", "EIO=4&transport=polling", "")
	sid := parseOpen(t, a.body).SID
	if !strings.HasPrefix(sid, "node-1.") || len(sid) != len("node-1.")+20 {
		t.Errorf("sid %q", sid)
	}
	if a := f.request("POST", "EIO=4&transport=polling&sid="+sid, "4x"); a.status != 200 {
		t.Errorf("POST: %d %s", a.status, a.body)
	}
	for prefix, valid := range map[string]bool{"": true, "Az-09_": true, "a.b": false, "a b": false, "ü": false, strings.Repeat("x", 65): false} {
		if err := (&Options{SessionPrefix: prefix}).Validate(); (err == nil) != valid {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}

func TestCookieAndHeaders(t *testing.T) {
	f := newFixture(t, Options{
		Cookie:         &http.Cookie{HttpOnly: true, SameSite: http.SameSiteLaxMode},
		InitialHeaders: func(h http.Header, _ *http.Request) { h.Set("X-Initial", "1") },
		Headers:        func(h http.Header, _ *http.Request) { h.Set("X-Each", "1") },
	}, echo)
	a := f.request("GET", "EIO=4&transport=polling", "")
	sid := parseOpen(t, a.body).SID
	if got, want := a.header.Get("Set-Cookie"), "io="+sid+"; Path=/; HttpOnly; SameSite=Lax"; got != want {
		t.Errorf("cookie %q, want %q", got, want)
	}
	if a.header.Get("X-Initial") != "1" || a.header.Get("X-Each") != "1" {
		t.Errorf("handshake: %v", a.header)
	}
	a = f.request("POST", "EIO=4&transport=polling&sid="+sid, "4x")
	if a.header.Get("X-Initial") != "" || a.header.Get("Set-Cookie") != "" || a.header.Get("X-Each") != "1" {
		t.Errorf("POST: %v", a.header)
	}
	w := f.upgrade("EIO=4&transport=websocket")
	if w.resp.Header.Get("X-Initial") != "1" || w.resp.Header.Get("X-Each") != "1" {
		t.Errorf("upgrade: %v", w.resp.Header)
	}
}

func TestRefusedByTheApplication(t *testing.T) {
	f := newFixture(t, Options{}, nil)
	server := NewServer(Options{}, func(*Socket) Session { return nil })
	f.http.Config.Handler = server
	f.request("GET", "EIO=4&transport=polling", "").want(t, 403, `{"code":4,"message":"Forbidden"}`)
	c, _ := f.openWS()
	c.wantClose(0)
	f.client.CloseIdleConnections()
	must(t, server.Shutdown(t.Context()))
}

func TestLimits(t *testing.T) {
	f := newFixture(t, Options{MaxSessions: 2, HandshakeRate: 0.001, HandshakeBurst: 4}, nil)
	p := f.openPolling()
	f.openWS()
	for range 2 {
		f.request("GET", "EIO=4&transport=polling", "").want(t, 503, `{"code":-1,"message":"Too many sessions"}`)
	}
	a := f.request("GET", "EIO=4&transport=polling", "")
	a.want(t, 429, `{"code":-1,"message":"Too many requests"}`)
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if w := f.upgrade("EIO=4&transport=websocket"); w.resp.StatusCode != 429 {
		t.Errorf("upgrade: %d", w.resp.StatusCode)
	}
	p.post("4still").want(t, 200, "ok")
}

func TestRateLimit(t *testing.T) {
	now := time.Now()
	l := newRateLimit(2, 3)
	l.now = func() time.Time { return now }
	take := func(address string) (n int) {
		for l.allow(address) {
			n++
		}
		return n
	}
	if n := take("1.2.3.4"); n != 3 {
		t.Errorf("burst of %d", n)
	}
	if n := take("2001:db8::1"); n != 3 {
		t.Errorf("another address: %d", n)
	}
	if l.allow("2001:db8::2") {
		t.Error("the same /64 was allowed")
	}
	now = now.Add(time.Second)
	if n := take("1.2.3.4"); n != 2 {
		t.Errorf("after a second: %d", n)
	}
	now = now.Add(time.Hour)
	if n := take("1.2.3.4"); n != 3 {
		t.Errorf("after an hour: %d", n)
	}
	now = now.Add(time.Hour)
	if !l.forget(now) || len(l.buckets) != 0 {
		t.Errorf("%d buckets kept", len(l.buckets))
	}
}

func TestValidate(t *testing.T) {
	for _, opts := range []Options{
		{Transports: []string{"webtransport"}},
		{PingInterval: -1},
		{SendBudget: -1},
		{HandshakeRate: -1},
		{Origins: []string{"example.org"}},
		{Origins: []string{"https://example.org/path"}},
		{Origins: []string{"https://*.*.example.org"}},
	} {
		if err := opts.Validate(); err == nil {
			t.Errorf("%+v is valid", opts)
		}
	}
	good := Options{Origins: []string{"*", "null", "https://example.org", "https://*.example.org:8443"}}
	must(t, good.Validate())
}
