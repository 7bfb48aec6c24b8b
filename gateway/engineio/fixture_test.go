package engineio

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

type received struct {
	data   string
	binary bool
}

type ended struct {
	reason Reason
	err    error
}

// testSession records what the server hands over, and does what the test says on a message.
type testSession struct {
	socket    *Socket
	messages  chan received
	ended     chan ended
	onMessage func(s *testSession, data []byte, binary bool)
}

func (s *testSession) OnMessage(data []byte, binary bool) {
	if s.onMessage != nil {
		s.onMessage(s, data, binary)
		return
	}
	s.messages <- received{string(data), binary}
}

func (s *testSession) OnClose(reason Reason, err error) { s.ended <- ended{reason, err} }

// echo answers every message with itself.
func echo(s *testSession, data []byte, binary bool) {
	data = append([]byte(nil), data...)
	if binary {
		_, _ = s.socket.Send(false, NewBinaryMessage(data))
	} else {
		_, _ = s.socket.Send(false, NewMessage(data))
	}
}

// fixture is a server with a listener.
type fixture struct {
	t        *testing.T
	server   *Server
	http     *httptest.Server
	client   *http.Client
	sessions chan *testSession
}

func newFixture(t *testing.T, opts Options, onMessage func(*testSession, []byte, bool)) *fixture {
	t.Helper()
	f := &fixture{t: t, sessions: make(chan *testSession, 64)}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.CloseTimeout == 0 {
		opts.CloseTimeout = time.Second
	}
	f.server = NewServer(opts, func(s *Socket) Session {
		session := &testSession{
			socket: s, messages: make(chan received, 4096), ended: make(chan ended, 2), onMessage: onMessage,
		}
		f.sessions <- session
		return session
	})
	f.http = httptest.NewServer(f.server)
	f.client = &http.Client{Transport: &http.Transport{}, Timeout: patience}
	t.Cleanup(func() {
		f.client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := f.server.Shutdown(ctx); err != nil && err != ErrServerClosed {
			t.Errorf("shutdown: %v", err)
		}
		f.http.Close()
		if n := f.server.Sockets(); n != 0 {
			t.Errorf("%d sockets are left", n)
		}
	})
	return f
}

func (f *fixture) session() *testSession {
	f.t.Helper()
	return take(f.t, f.sessions)
}

// take waits for a value.
func take[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("timeout")
		panic("unreachable")
	}
}

// eventually waits for a condition that no channel tells.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("timeout: " + what)
		}
	}
}

func (s *testSession) wantEnd(t *testing.T, reason Reason) ended {
	t.Helper()
	e := take(t, s.ended)
	if e.reason != reason {
		t.Fatalf("closed with %q (%v), want %q", e.reason, e.err, reason)
	}
	select {
	case again := <-s.ended:
		t.Fatalf("closed twice: %v", again)
	default:
	}
	return e
}

func (s *testSession) wantMessage(t *testing.T, data string, binary bool) {
	t.Helper()
	if m := take(t, s.messages); m != (received{data, binary}) {
		t.Fatalf("got message %q (binary %v), want %q", m.data, m.binary, data)
	}
}

func (s *testSession) send(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if _, err := s.socket.Send(false, NewMessage([]byte(text))); err != nil {
			t.Fatalf("send: %v", err)
		}
	}
}

// answer of an HTTP request.
type answer struct {
	status int
	body   string
	header http.Header
}

// request does an HTTP request below the server's path. query is appended as it is.
func (f *fixture) request(method, query, body string, header ...string) answer {
	f.t.Helper()
	a, err := f.try(method, query, body, header...)
	if err != nil {
		f.t.Fatalf("%s %s: %v", method, query, err)
	}
	return a
}

func (f *fixture) try(method, query, body string, header ...string) (answer, error) {
	req, err := http.NewRequest(method, f.http.URL+"/engine.io/?"+query, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if req.Header.Get("Accept-Encoding") == "" {
		req.Header.Set("Accept-Encoding", "identity")
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, string(data), resp.Header}, err
}

// goRequest does a request meanwhile.
func (f *fixture) goRequest(method, query, body string) <-chan answer {
	c := make(chan answer, 1)
	go func() {
		a, err := f.try(method, query, body)
		if err != nil {
			a.body = err.Error()
		}
		c <- a
	}()
	return c
}

func (a answer) want(t *testing.T, status int, body string) {
	t.Helper()
	if a.status != status || a.body != body {
		t.Fatalf("got %d %q, want %d %q", a.status, a.body, status, body)
	}
}

// poller is a polling session of protocol 4, seen from the client.
type poller struct {
	f     *fixture
	sid   string
	query string
}

type openData struct {
	SID          string
	Upgrades     []string
	PingInterval int
	PingTimeout  int
	MaxPayload   int
}

func parseOpen(t *testing.T, text string) (o openData) {
	t.Helper()
	if !strings.HasPrefix(text, "0{") {
		t.Fatalf("not an open packet: %q", text)
	}
	if err := json.Unmarshal([]byte(text[1:]), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func (f *fixture) openPolling() *poller {
	f.t.Helper()
	a := f.request("GET", "EIO=4&transport=polling", "")
	if a.status != 200 {
		f.t.Fatalf("handshake: %d %s", a.status, a.body)
	}
	sid := parseOpen(f.t, a.body).SID
	return &poller{f, sid, "EIO=4&transport=polling&sid=" + sid}
}

func (p *poller) get() answer             { p.f.t.Helper(); return p.f.request("GET", p.query, "") }
func (p *poller) post(body string) answer { p.f.t.Helper(); return p.f.request("POST", p.query, body) }

// waitPoll waits until a GET has arrived at the server.
func (p *poller) waitPoll() {
	p.f.t.Helper()
	s := p.f.server.Socket(p.sid)
	eventually(p.f.t, "a waiting GET", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.polling != nil && s.polling.get != nil
	})
}

// wsClient is a WebSocket client that hides nothing.
type wsClient struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
	resp *http.Response
}

// upgrade sends the request and reads the answer's head.
func (f *fixture) upgrade(query string, header ...string) *wsClient {
	f.t.Helper()
	return f.upgradeRaw(f.dial(), f.upgradeRequest(query, header...))
}

func (f *fixture) dial() net.Conn {
	f.t.Helper()
	conn, err := net.Dial("tcp", f.http.Listener.Addr().String())
	must(f.t, err)
	f.t.Cleanup(func() { _ = conn.Close() })
	must(f.t, conn.SetReadDeadline(time.Now().Add(patience)))
	return conn
}

func (f *fixture) upgradeRequest(query string, header ...string) string {
	req := "GET /engine.io/?" + query + " HTTP/1.1\r\nHost: " + f.http.Listener.Addr().String() +
		"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	for i := 0; i < len(header); i += 2 {
		req += header[i] + ": " + header[i+1] + "\r\n"
	}
	return req + "\r\n"
}

func (f *fixture) upgradeRaw(conn net.Conn, request string) *wsClient {
	f.t.Helper()
	_, err := io.WriteString(conn, request)
	must(f.t, err)
	c := &wsClient{t: f.t, conn: conn, r: bufio.NewReader(conn)}
	c.resp, err = http.ReadResponse(c.r, &http.Request{Method: "GET"})
	must(f.t, err)
	return c
}

// openWS opens a session over WebSocket.
func (f *fixture) openWS(header ...string) (*wsClient, openData) {
	f.t.Helper()
	c := f.upgrade("EIO=4&transport=websocket", header...)
	if c.resp.StatusCode != 101 {
		f.t.Fatalf("upgrade: %s", c.resp.Status)
	}
	return c, parseOpen(f.t, c.text())
}

func (c *wsClient) frame() ws.Frame {
	c.t.Helper()
	h, err := ws.ReadHeader(c.r)
	if err != nil {
		c.t.Fatalf("read frame: %v", err)
	}
	payload := make([]byte, h.Length) // our own server's: as long as a test makes it
	if _, err := io.ReadFull(c.r, payload); err != nil {
		c.t.Fatalf("read a payload of %d bytes: %v", h.Length, err)
	}
	return ws.Frame{Header: h, Payload: payload}
}

func (c *wsClient) text() string {
	c.t.Helper()
	f := c.frame()
	if f.Header.OpCode != ws.OpText || f.Header.Rsv != 0 || !f.Header.Fin || f.Header.Masked {
		c.t.Fatalf("not a plain text frame: %+v %q", f.Header, f.Payload)
	}
	return string(f.Payload)
}

func (c *wsClient) wantText(want string) {
	c.t.Helper()
	if got := c.text(); got != want {
		c.t.Fatalf("got %q, want %q", got, want)
	}
}

// wantClose reads the close frame and then the end of the stream.
func (c *wsClient) wantClose(code ws.StatusCode) {
	c.t.Helper()
	f := c.frame()
	got := ws.StatusCode(0)
	if len(f.Payload) >= 2 {
		got = ws.StatusCode(binary.BigEndian.Uint16(f.Payload))
	}
	if f.Header.OpCode != ws.OpClose || got != code {
		c.t.Fatalf("got %v %q, want close %d", f.Header.OpCode, f.Payload, code)
	}
	c.wantEOF()
}

func (c *wsClient) wantEOF() {
	c.t.Helper()
	if b, err := c.r.ReadByte(); err == nil {
		c.t.Fatalf("got byte %#x, want the end", b)
	}
	_ = c.conn.Close()
}

func (c *wsClient) write(frames ...[]byte) {
	c.t.Helper()
	for _, f := range frames {
		if _, err := c.conn.Write(f); err != nil {
			c.t.Fatalf("write: %v", err)
		}
	}
}

func (c *wsClient) sendText(texts ...string) {
	c.t.Helper()
	for _, text := range texts {
		c.write(clientFrame(ws.OpText, []byte(text), true))
	}
}

// clientFrame makes a masked frame.
func clientFrame(op ws.OpCode, payload []byte, fin bool) []byte {
	f := ws.MaskFrameWith(ws.NewFrame(op, fin, payload), [4]byte{1, 2, 3, 4})
	return ws.MustCompileFrame(f)
}
