package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"time"
)

// PublicInput is what Public needs.
type PublicInput struct {
	URL       string // that clients use: https://chat.example.org
	ServerKey string // "": what the gateway sees is not asked
	AnyOrigin bool   // --allowed-origins has *
	WaitPing  bool   // wait for a heartbeat, some 25 s
	Now       func() time.Time
}

const sectionPublic = "public URL"

// publicPatience bounds each request but those that wait for a heartbeat.
const publicPatience = 10 * time.Second

// Public takes the way that clients take, through whatever stands before the gateway. The samples
// are of the clock of the node that answered.
func Public(ctx context.Context, r *Report, in PublicInput) []ClockSample {
	s := r.Section(sectionPublic)
	base, err := url.Parse(strings.TrimSuffix(in.URL, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.RawQuery != "" || base.User != nil {
		s.Problem("address", "give it as --url https://chat.example.org", "--url is no address of a web server")
		return nil
	}
	p := &public{ctx: ctx, s: s, in: in, base: base}
	if !p.reachable() {
		return nil
	}
	sticky := p.sticky()
	p.webSocket()
	if sticky != nil {
		p.upgrade(*sticky)
		p.body(*sticky)
	}
	p.origins()
	p.adminHidden()
	samples := p.seen()
	if in.WaitPing {
		p.heartbeat(sticky)
	} else {
		s.OK("idle", "not tried: a proxy must keep connections that are silent for 25 s; --wait-ping tries it")
	}
	return samples
}

// public asks one URL.
type public struct {
	ctx  context.Context
	s    Section
	in   PublicInput
	base *url.URL
}

// browser makes requests as a browser does, but each on a connection of its own, so that a
// balancer that is not sticky shows. It keeps cookies if it has a jar.
type browser struct {
	client *http.Client
}

func newBrowser(cookies bool) browser {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	b := browser{&http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if cookies {
		b.client.Jar, _ = cookiejar.New(nil) // it fails never
	}
	return b
}

// answer is a response that was read.
type answer struct {
	status int
	header http.Header
	body   string
	tls    time.Time // when the certificate ends; zero without TLS
}

// do makes one request. header has pairs of names and values.
func (p *public) do(b browser, patience time.Duration, method, path, body string, header ...string) (answer, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, p.base.String()+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if body != "" {
		request.Header.Set("Content-Type", "text/plain;charset=UTF-8")
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := b.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(response.Body, most))
	a := answer{status: response.StatusCode, header: response.Header, body: string(text)}
	if response.TLS != nil && len(response.TLS.PeerCertificates) > 0 {
		a.tls = response.TLS.PeerCertificates[0].NotAfter
	}
	return a, err
}

const pollingPath = "/socket.io/?EIO=4&transport=polling"

// sessionID is of an answer that opens a session, else "".
func (a answer) sessionID() string {
	rest, ok := strings.CutPrefix(a.body, `0{"sid":"`)
	if a.status != http.StatusOK || !ok {
		return ""
	}
	sid, _, _ := strings.Cut(rest, `"`)
	return sid
}

// session is one long-polling session.
type session struct {
	browser browser
	sid     string
}

func (s session) path() string { return pollingPath + "&sid=" + url.QueryEscape(s.sid) }

func (p *public) open(cookies bool, header ...string) (session, answer, error) {
	b := newBrowser(cookies)
	a, err := p.do(b, publicPatience, http.MethodGet, pollingPath, "", header...)
	if err != nil {
		return session{}, a, err
	}
	return session{b, a.sessionID()}, a, nil
}

// leave ends a session; that it stays a while if that fails does no harm.
func (p *public) leave(s session) {
	_, _ = p.do(s.browser, publicPatience, http.MethodPost, s.path(), "1") //nolint:errcheck // see above
}

func (p *public) reachable() bool {
	start := time.Now()
	s, a, err := p.open(false)
	took := time.Since(start)
	switch {
	case err != nil && isCertificate(err):
		p.s.Problem("reachable", "renew or complete the certificate; clients refuse it too", "%s", short(err))
		return false
	case err != nil:
		p.s.Problem("reachable", "look at the name, the proxy and the firewall", "%s", short(err))
		return false
	case s.sid == "":
		do, found := explainStatus(a)
		p.s.Problem("reachable", do, "%s", found)
		return false
	}
	defer p.leave(s)
	p.s.OK("reachable", "a Socket.IO session over long-polling, in %s", rounded(took))
	p.tls(a)
	p.connect(s)
	return true
}

// explainStatus is about an answer that no gateway gives to a handshake.
func explainStatus(a answer) (do, found string) {
	found = fmt.Sprintf("the handshake is answered with %d %s", a.status, http.StatusText(a.status))
	if server := a.header.Get("Server"); server != "" {
		found += " by " + server
	}
	switch a.status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return "the proxy reaches no node that is ready: look at /readyz of the nodes, and at the proxy's addresses", found
	case http.StatusNotFound, http.StatusOK:
		return "pass /socket.io/ to the gateway, with its query and without changing the path", found
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return "give --url as it is after the redirection; clients do not follow one", found + " to " + a.header.Get("Location")
	case http.StatusUnauthorized, http.StatusForbidden:
		return "let requests to /socket.io/ pass without a login: the gateway checks tokens", found
	case http.StatusTooManyRequests:
		return "wait, or raise --limit-handshakes: with a proxy that is not in --trusted-proxies it counts all clients together", found
	}
	return "look at the log of the proxy", found
}

// tls looks at the certificate and at what goes without one.
func (p *public) tls(a answer) {
	switch left := a.tls.Sub(p.in.Now()); {
	case a.tls.IsZero():
		if host := p.base.Hostname(); host != "localhost" && !strings.HasPrefix(host, "127.") && host != "::1" {
			p.s.Warn("encryption", "serve https: browsers allow notifications and service workers there alone", "http: tokens and messages can be read on the way")
		}
	case left < 14*24*time.Hour:
		p.s.Warn("certificate", "renew it", "it ends on %s", a.tls.UTC().Format(time.DateOnly))
	default:
		p.s.OK("certificate", "valid until %s", a.tls.UTC().Format(time.DateOnly))
	}
}

// connect asks for the namespace without a token: the refusal is the gateway's own.
func (p *public) connect(s session) {
	if a, err := p.do(s.browser, publicPatience, http.MethodPost, s.path(), "40"); err != nil || a.status != http.StatusOK {
		return // what is wrong with following requests is told by sticky
	}
	a, err := p.do(s.browser, publicPatience, http.MethodGet, s.path(), "")
	switch {
	case err != nil || a.status != http.StatusOK:
	case strings.Contains(a.body, "unauthenticated"):
		p.s.OK("gateway", "Xabar answers, and lets nobody in without a token")
	case strings.HasPrefix(a.body, "44"), strings.HasPrefix(a.body, "40"):
		p.s.Problem("gateway", "look where the proxy sends /socket.io/", "a Socket.IO server answers, but it does not answer as Xabar does")
	}
}

// stickyRequests is how many requests of one session are made: with two nodes that take turns, or
// are drawn, some of them go wrong.
const stickyRequests = 12

// sticky makes requests of one session, each on a new connection. It returns a session that works,
// which the caller leaves.
func (p *public) sticky() *session {
	var cookie string
	var lost int
	for _, cookies := range []bool{false, true} {
		s, a, err := p.open(cookies)
		if err != nil || s.sid == "" {
			p.s.Problem("long-polling", "look at the log of the proxy", "a second session is refused: %d %v", a.status, err)
			return nil
		}
		if lost, err = p.lost(s); err != nil {
			p.s.Problem("long-polling", "look at the log of the proxy", "%s", short(err))
			return nil
		}
		if cookie, _, _ = strings.Cut(a.header.Get("Set-Cookie"), "="); lost == 0 {
			p.describeSticky(cookies, cookie)
			return &s
		}
		if cookie == "" {
			break // with cookies it can't be another
		}
	}
	p.s.Problem("long-polling", `make the balancer sticky (by a cookie or by address), or have clients use transports: ["websocket"] only`,
		"%d of %d requests of one session reached a node that does not know it", lost, stickyRequests)
	return nil
}

func (p *public) describeSticky(cookies bool, cookie string) {
	if cookies {
		p.s.OK("long-polling", "sticky by the cookie %s; pages of other origins need withCredentials: true", cookie)
		return
	}
	p.s.OK("long-polling", "%d requests of one session on connections of their own all reached its node", stickyRequests)
}

// lost counts requests that another node got.
func (p *public) lost(s session) (int, error) {
	lost := 0
	for range stickyRequests {
		a, err := p.do(s.browser, publicPatience, http.MethodPost, s.path(), "6") // a packet that says nothing
		switch {
		case err != nil:
			return 0, err
		case a.status == http.StatusOK:
		case strings.Contains(a.body, "Session ID unknown"):
			lost++
		default:
			return 0, fmt.Errorf("a request of a session is answered with %d %s", a.status, http.StatusText(a.status))
		}
	}
	return lost, nil
}

// largeBody is nearly what the gateway takes.
const largeBody = 990_000

// body sends as much as a client may.
func (p *public) body(s session) {
	defer p.leave(s)
	a, err := p.do(s.browser, publicPatience, http.MethodPost, s.path(), "6"+strings.Repeat("x", largeBody))
	switch {
	case err == nil && a.status == http.StatusOK:
		p.s.OK("large requests", "%d kB pass", largeBody/1000)
	case err == nil:
		p.s.Warn("large requests", "let bodies of 1 MB pass (nginx: client_max_body_size 1m)", "%d kB are answered with %d %s", largeBody/1000, a.status, http.StatusText(a.status))
	default:
		p.s.Warn("large requests", "let bodies of 1 MB pass (nginx: client_max_body_size 1m)", "%d kB do not pass: %s", largeBody/1000, short(err))
	}
}

// origins: pages of the URL itself may connect, foreign ones may not.
func (p *public) origins() {
	own := p.base.Scheme + "://" + p.base.Host
	s, a, err := p.open(true, "Origin", own)
	switch {
	case err != nil:
		p.s.Problem("own origin", "look at the log of the proxy", "%s", short(err))
		return
	case s.sid == "":
		p.s.Problem("own origin", "pass the Host header on (nginx: proxy_set_header Host $host), or X-Forwarded-Host from a proxy in --trusted-proxies, or name the origin in --allowed-origins",
			"a page of %s is refused with %d: the gateway does not know that this is its name", own, a.status)
		return
	}
	p.leave(s)
	p.s.OK("own origin", "pages of %s may connect", own)
	foreign, a, err := p.open(true, "Origin", "https://doctor.invalid")
	switch {
	case err != nil:
		p.s.Problem("foreign origins", "look at the log of the proxy", "%s", short(err))
	case foreign.sid == "" && a.status == http.StatusForbidden:
		p.s.OK("foreign origins", "refused")
	case foreign.sid == "":
		p.s.Warn("foreign origins", "look at the log of the proxy", "answered with %d", a.status)
	case p.in.AnyOrigin:
		p.leave(foreign)
		p.s.Warn("foreign origins", "name yours in --allowed-origins instead of *", "pages of everybody may connect")
	default:
		p.leave(foreign)
		p.s.Problem("foreign origins", "the proxy must pass Origin unchanged, and every node have the same --allowed-origins", "a page of https://doctor.invalid may connect")
	}
}

// adminHidden: /metrics is for the admin address.
func (p *public) adminHidden() {
	a, err := p.do(newBrowser(false), publicPatience, http.MethodGet, "/metrics", "")
	if err == nil && strings.Contains(a.body, "xabar_connections") {
		p.s.Problem("admin address", "pass only the public address to clients", "%s/metrics shows the metrics to everybody", p.base)
	}
}

var errNotSeen = errors.New("no gateway with this server key answers")
