package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

const webSocketPath = "/socket.io/?EIO=4&transport=websocket"

// webSocketAdvice is what a proxy needs to be told.
const webSocketAdvice = "the proxy must pass the upgrade (nginx: proxy_http_version 1.1 and the Upgrade and Connection headers; see docs/guides)"

// dial opens a WebSocket. header has the cookies that balancers want.
func (p *public) dial(path string, header http.Header) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(p.ctx, publicPatience)
	defer cancel()
	dialer := ws.Dialer{Header: ws.HandshakeHeaderHTTP(header), Timeout: publicPatience}
	conn, early, _, err := dialer.Dial(ctx, "ws"+strings.TrimPrefix(p.base.String(), "http")+path)
	var status ws.StatusError
	if errors.As(err, &status) {
		return nil, fmt.Errorf("it is answered with %d %s", int(status), http.StatusText(int(status)))
	}
	if err != nil {
		return nil, err
	}
	if early != nil { // what came with the answer is read first
		conn = &earlyConn{Conn: conn, early: early}
	}
	return conn, nil
}

// earlyConn reads first what was read already.
type earlyConn struct {
	net.Conn
	early interface {
		Read([]byte) (int, error)
		Buffered() int
	}
}

func (c *earlyConn) Read(b []byte) (int, error) {
	if c.early.Buffered() > 0 {
		return c.early.Read(b)
	}
	return c.Conn.Read(b)
}

// receive reads one text within a time.
func receive(conn net.Conn, patience time.Duration) (string, error) {
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	text, err := wsutil.ReadServerText(conn)
	return string(text), err
}

// webSocket opens a session without long-polling.
func (p *public) webSocket() {
	start := time.Now()
	conn, err := p.dial(webSocketPath, nil)
	if err != nil {
		p.s.Problem("websocket", webSocketAdvice, "no connection: %s", short(err))
		return
	}
	defer conn.Close()
	text, err := receive(conn, publicPatience)
	if err != nil || !strings.HasPrefix(text, `0{"sid"`) {
		p.s.Problem("websocket", webSocketAdvice, "it opens, but nothing comes through: %v", err)
		return
	}
	p.s.OK("websocket", "opens, in %s", rounded(time.Since(start)))
}

// upgrade moves a long-polling session to a WebSocket, as clients do by default.
func (p *public) upgrade(s session) {
	conn, err := p.dial(webSocketPath+"&sid="+s.sid, s.cookies(p))
	if err != nil {
		p.s.Problem("upgrade", webSocketAdvice, "the WebSocket of a long-polling session is refused: %s", short(err))
		return
	}
	defer conn.Close()
	if err := wsutil.WriteClientText(conn, []byte("2probe")); err != nil {
		p.s.Problem("upgrade", webSocketAdvice, "%s", short(err))
		return
	}
	text, err := receive(conn, publicPatience)
	if err != nil || text != "3probe" {
		p.s.Problem("upgrade", "WebSockets must reach the node of the session: be sticky for them too", "the probe is not answered: %q %v", text, err)
		return
	}
	p.s.OK("upgrade", "a long-polling session moves to a WebSocket")
}

// cookies are those that the balancer gave.
func (s session) cookies(p *public) http.Header {
	header := http.Header{}
	if s.browser.client.Jar == nil {
		return header
	}
	for _, cookie := range s.browser.client.Jar.Cookies(p.base) {
		header.Add("Cookie", cookie.Name+"="+cookie.Value)
	}
	return header
}

// pingPatience is more than the 25 s after which the gateway sends a heartbeat.
const pingPatience = 35 * time.Second

// heartbeat waits on a silent WebSocket and on a silent long-polling request, at the same time.
func (p *public) heartbeat(sticky *session) {
	conn, err := p.dial(webSocketPath, nil)
	if err != nil {
		return // told before
	}
	defer conn.Close()
	type result struct {
		text string
		err  error
	}
	polled := make(chan result, 1)
	if sticky == nil {
		polled <- result{text: "2"}
	} else {
		go func() { // it ends with its request, at the latest after pingPatience
			s, _, err := p.open(true)
			if err != nil || s.sid == "" {
				polled <- result{err: errors.New("the session is refused")}
				return
			}
			a, err := p.do(s.browser, pingPatience, http.MethodGet, s.path(), "")
			p.leave(s)
			polled <- result{a.body, err}
		}()
	}
	var text string
	for range 2 { // the open packet, the heartbeat
		if text, err = receive(conn, pingPatience); err != nil {
			break
		}
	}
	poll := <-polled
	do := "let idle connections live for a minute or more (nginx: proxy_read_timeout and proxy_send_timeout, HAProxy: timeout client, server and tunnel)"
	switch {
	case err != nil || text != "2":
		p.s.Problem("idle", do, "a WebSocket that is silent until the first heartbeat is cut: %v", err)
	case poll.err != nil || poll.text != "2":
		p.s.Problem("idle", do, "a long-polling request that is silent until the first heartbeat is cut: %v", poll.err)
	default:
		p.s.OK("idle", "connections live until the first heartbeat, after 25 s")
	}
}
