package doctor

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xabar/gateway/engineio"
	"xabar/gateway/socketio"
)

const serverKey = "a key of the server's"

// node is what of a gateway can be seen from outside without a token.
func node(t *testing.T, name string, change func(*socketio.Options)) *httptest.Server {
	t.Helper()
	options := socketio.Options{Options: engineio.Options{PingInterval: 300 * time.Millisecond}}
	if change != nil {
		change(&options)
	}
	io := socketio.NewServer(options)
	io.Use(func(*socketio.Socket) error {
		return &socketio.ConnectError{Message: "no token", Data: map[string]string{"code": "unauthenticated"}}
	})
	mux := http.NewServeMux()
	mux.Handle("/socket.io/", io)
	mux.Handle("GET "+SeenPath, SeenHandler(serverKey, name, io.Engine().ClientAddress))
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := io.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	return server
}

// proxy stands before nodes. choose picks one for each request; change may change the request on its way,
// the answer's headers come after it.
type proxy struct {
	choose func(*http.Request) int
	change func(*httputil.ProxyRequest)
	answer func(*http.Response)
}

func (p proxy) before(t *testing.T, nodes ...*httptest.Server) string {
	t.Helper()
	targets := make([]*url.URL, len(nodes))
	for i, n := range nodes {
		var err error
		if targets[i], err = url.Parse(n.URL); err != nil {
			t.Fatal(err)
		}
	}
	reverse := &httputil.ReverseProxy{
		ErrorLog:  log.New(t.Output(), "", 0),
		Transport: &http.Transport{DisableKeepAlives: true},
		Rewrite: func(r *httputil.ProxyRequest) {
			n := 0
			if p.choose != nil {
				n = p.choose(r.In)
			}
			r.SetURL(targets[n])
			r.Out.Host = r.In.Host
			if p.change != nil {
				p.change(r)
			}
		},
		ModifyResponse: func(r *http.Response) error {
			if p.answer != nil {
				p.answer(r)
			}
			return nil
		},
	}
	server := httptest.NewServer(reverse)
	t.Cleanup(server.Close)
	return server.URL
}

// forwards adds the client's address, as a good proxy does.
func forwards(r *httputil.ProxyRequest) {
	r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
	r.SetXForwarded()
	r.Out.Header.Del("X-Forwarded-Host")
	r.Out.Header.Del("X-Forwarded-Proto")
}

func trusting(networks ...string) func(*socketio.Options) {
	return func(o *socketio.Options) {
		for _, n := range networks {
			o.TrustedProxies = append(o.TrustedProxies, netip.MustParsePrefix(n))
		}
	}
}

func examinePublic(t *testing.T, address string, change func(*PublicInput)) (*Report, []ClockSample) {
	t.Helper()
	in := PublicInput{URL: address, ServerKey: serverKey, Now: time.Now}
	if change != nil {
		change(&in)
	}
	var r Report
	return &r, Public(t.Context(), &r, in)
}

func TestANodeWithoutProxy(t *testing.T) {
	t.Parallel()
	r, samples := examinePublic(t, node(t, "one", nil).URL, func(in *PublicInput) { in.WaitPing = true })
	allWell(t, r)
	for name, says := range map[string]string{
		"gateway": "Xabar answers", "websocket": "opens", "upgrade": "moves to a WebSocket", "large requests": "990 kB pass",
		"own origin": "may connect", "foreign origins": "refused", "client address": "127.0.0.1", "idle": "first heartbeat",
	} {
		want(t, r, sectionPublic, name, OK, says)
	}
	want(t, r, sectionPublic, "long-polling", OK, fmt.Sprint(stickyRequests))
	if len(samples) != 1 || samples[0].Ahead.Abs() > time.Second {
		t.Errorf("clock: %v", samples)
	}
}

func TestBalancers(t *testing.T) {
	t.Parallel()
	var turn atomic.Int64
	inTurn := func(*http.Request) int { return int(turn.Add(1) % 2) }
	t.Run("takes turns", func(t *testing.T) {
		r, _ := examinePublic(t, proxy{choose: inTurn}.before(t, node(t, "one", nil), node(t, "two", nil)), nil)
		want(t, r, sectionPublic, "long-polling", Problem, `transports: ["websocket"]`, "sticky")
		want(t, r, sectionPublic, "websocket", OK)
	})
	t.Run("sticky by a cookie", func(t *testing.T) {
		p := proxy{
			choose: func(r *http.Request) int {
				n := inTurn(r)
				if cookie, err := r.Cookie("node"); err == nil {
					n = int(cookie.Value[0] - '0')
				}
				r.Header.Set("X-Chosen", fmt.Sprint(n)) // for the answer
				return n
			},
			change: func(r *httputil.ProxyRequest) { r.Out.Header.Set("X-Chosen", r.In.Header.Get("X-Chosen")) },
			answer: func(r *http.Response) { r.Header.Set("Set-Cookie", "node="+r.Request.Header.Get("X-Chosen")) },
		}
		r, _ := examinePublic(t, p.before(t, node(t, "one", nil), node(t, "two", nil)), nil)
		allWell(t, r, "client address")
		want(t, r, sectionPublic, "long-polling", OK, "the cookie node", "withCredentials")
		want(t, r, sectionPublic, "upgrade", OK)
	})
}

func TestProxiesThatChangeTooMuch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		proxy   proxy
		finding string
		says    string
	}{
		"no upgrade": {proxy{change: func(r *httputil.ProxyRequest) {
			r.Out.Header.Del("Upgrade")
			r.Out.Header.Del("Connection")
		}}, "websocket", "proxy_http_version"},
		"no host":     {proxy{change: func(r *httputil.ProxyRequest) { r.Out.Host = "backend" }}, "own origin", "Host"},
		"no origin":   {proxy{change: func(r *httputil.ProxyRequest) { r.Out.Header.Del("Origin") }}, "foreign origins", "Origin"},
		"other path":  {proxy{change: func(r *httputil.ProxyRequest) { r.Out.URL.Path = "/x" + r.Out.URL.Path }}, "reachable", "404"},
		"login first": {proxy{answer: func(r *http.Response) { r.StatusCode = http.StatusUnauthorized }}, "reachable", "401"},
		"redirection": {proxy{answer: func(r *http.Response) { r.StatusCode = http.StatusMovedPermanently }}, "reachable", "301"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := examinePublic(t, tc.proxy.before(t, node(t, "one", nil)), nil)
			want(t, r, sectionPublic, tc.finding, Problem, tc.says)
		})
	}
	t.Run("small bodies", func(t *testing.T) {
		t.Parallel()
		p := proxy{answer: func(r *http.Response) {
			if r.Request.ContentLength > 500_000 {
				r.StatusCode = http.StatusRequestEntityTooLarge
			}
		}}
		r, _ := examinePublic(t, p.before(t, node(t, "one", nil)), nil)
		want(t, r, sectionPublic, "large requests", Warning, "413", "client_max_body_size")
	})
	t.Run("no node", func(t *testing.T) {
		t.Parallel()
		gone := httptest.NewServer(http.NotFoundHandler())
		gone.Close()
		r, _ := examinePublic(t, proxy{}.before(t, gone), nil)
		want(t, r, sectionPublic, "reachable", Problem, "502", "/readyz")
	})
	t.Run("cuts what is silent", func(t *testing.T) {
		t.Parallel()
		slow := node(t, "one", func(o *socketio.Options) { o.PingInterval = 5 * time.Second })
		cut := proxy{change: func(r *httputil.ProxyRequest) {
			if r.In.URL.Query().Get("sid") != "" && r.In.Method == http.MethodGet || r.In.Header.Get("Upgrade") != "" {
				ctx, cancel := context.WithTimeout(r.Out.Context(), 500*time.Millisecond)
				t.Cleanup(cancel)
				r.Out = r.Out.WithContext(ctx)
			}
		}}
		r, _ := examinePublic(t, cut.before(t, slow), func(in *PublicInput) { in.WaitPing = true })
		want(t, r, sectionPublic, "idle", Problem, "proxy_read_timeout")
	})
}

func TestWhichAddressTheGatewaySees(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		proxy proxy
		node  func(*socketio.Options)
		level Level
		says  string
	}{
		"the proxy's, since it is not trusted": {proxy{change: func(r *httputil.ProxyRequest) {
			r.Out.Header.Set("X-Forwarded-For", "198.51.100.7")
		}}, nil, Warning, "--trusted-proxies 127.0.0.1"},
		"the client's": {proxy{change: func(r *httputil.ProxyRequest) {
			r.Out.Header.Set("X-Forwarded-For", "198.51.100.7")
		}}, trusting("127.0.0.1/32"), OK, "198.51.100.7, told by the proxy 127.0.0.1"},
		"what the client writes": {proxy{change: func(r *httputil.ProxyRequest) {
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
		}}, trusting("127.0.0.1/32"), Problem, "anybody can pass for anybody"},
		"too many are trusted": {proxy{change: func(r *httputil.ProxyRequest) {
			r.Out.Header.Set("X-Forwarded-For", strings.Join(append(r.In.Header["X-Forwarded-For"], "198.51.100.7"), ", "))
		}}, trusting("127.0.0.1/32", "198.51.100.0/24"), Warning, "198.51.100.7 count as proxies"},
		"all on one machine": {proxy{change: forwards}, trusting("127.0.0.1/32"), OK, "ask from another machine"},
		"all on one machine, and replaced": {proxy{change: func(r *httputil.ProxyRequest) {
			r.Out.Header.Set("X-Forwarded-For", "127.0.0.1")
		}}, trusting("127.0.0.1/32"), OK, "ask from another machine"},
		"no forwarding": {proxy{}, nil, OK, "No proxy adds X-Forwarded-For"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := examinePublic(t, tc.proxy.before(t, node(t, "one", tc.node)), nil)
			want(t, r, sectionPublic, "client address", tc.level, tc.says)
		})
	}
}

func TestSeenIsForHoldersOfTheKeyAlone(t *testing.T) {
	t.Parallel()
	gateway := node(t, "one", nil)
	withKey := func(key string) func(*PublicInput) { return func(in *PublicInput) { in.ServerKey = key } }
	r, _ := examinePublic(t, gateway.URL, withKey("another key of nobody"))
	want(t, r, sectionPublic, "client address", Warning, "--server-key")
	r, _ = examinePublic(t, gateway.URL, withKey(""))
	want(t, r, sectionPublic, "client address", OK, "not asked")

	now := time.Now()
	for name, tc := range map[string]struct {
		key, header string
		good        bool
	}{
		"right":             {serverKey, prove(serverKey, now), true},
		"a bit old":         {serverKey, prove(serverKey, now.Add(-4*time.Minute)), true},
		"old":               {serverKey, prove(serverKey, now.Add(-6*time.Minute)), false},
		"of the future":     {serverKey, prove(serverKey, now.Add(6*time.Minute)), false},
		"another key":       {serverKey, prove("other", now), false},
		"no key at all":     {"", prove("", now), false},
		"no proof":          {serverKey, "", false},
		"the key itself":    {serverKey, serverKey, false},
		"another version":   {serverKey, strings.Replace(prove(serverKey, now), "v1", "v2", 1), false},
		"another time":      {serverKey, strings.Replace(prove(serverKey, now), " 1", " 2", 1), false},
		"no hexadecimal":    {serverKey, "v1 1 zz", false},
		"more than is true": {serverKey, prove(serverKey, now) + " x", false},
	} {
		if proven(tc.key, tc.header, now) != tc.good {
			t.Errorf("%s: %q", name, tc.header)
		}
	}
	unknown, err := http.Get(gateway.URL + "/nothing")
	if err != nil {
		t.Fatal(err)
	}
	unknown.Body.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, gateway.URL+SeenPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+serverKey)
	refused, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	refused.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if refused.StatusCode != unknown.StatusCode {
		t.Errorf("without a proof: %s, an unknown path: %s", refused.Status, unknown.Status)
	}
	if strings.Contains(prove(serverKey, now), serverKey) {
		t.Error("the proof holds the key")
	}
}

func TestPublicURLsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"chat.example.org", "ftp://x", "https://", "https://u:p@host", "https://host?x=1"} {
		r, _ := examinePublic(t, address, nil)
		want(t, r, sectionPublic, "address", Problem, "https://chat.example.org")
	}
	r, _ := examinePublic(t, "http://"+closedPort(t), nil)
	want(t, r, sectionPublic, "reachable", Problem, "refused")
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	tls.Config.ErrorLog = log.New(t.Output(), "", 0)
	defer tls.Close()
	r, _ = examinePublic(t, tls.URL, nil)
	want(t, r, sectionPublic, "reachable", Problem, "certificate")
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			fmt.Fprint(w, "ok")
		} else if r.URL.Query().Get("sid") != "" {
			fmt.Fprint(w, `40{"sid":"x"}`)
		} else {
			fmt.Fprint(w, `0{"sid":"abc","upgrades":[]}`)
		}
	}))
	defer other.Close()
	r, _ = examinePublic(t, other.URL, nil)
	want(t, r, sectionPublic, "gateway", Problem, "does not answer as Xabar does")
}
