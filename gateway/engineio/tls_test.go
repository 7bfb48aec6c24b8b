package engineio

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

// Over TLS there is no descriptor to write to: the connection is written by a goroutine while
// something is queued. Everything else is the same.
func TestTLS(t *testing.T) {
	f := newFixture(t, Options{SendBudget: 16 << 20}, echo)
	secure := httptest.NewTLSServer(f.server)
	t.Cleanup(secure.Close)
	dial := func() *wsClient {
		t.Helper()
		conn, err := tls.Dial("tcp", secure.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true}) // its own certificate
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		must(t, conn.SetDeadline(time.Now().Add(patience)))
		_, err = io.WriteString(conn, f.upgradeRequest("EIO=4&transport=websocket"))
		must(t, err)
		c := &wsClient{t: t, conn: conn, r: bufio.NewReader(conn)}
		c.resp, err = http.ReadResponse(c.r, &http.Request{Method: "GET"})
		must(t, err)
		parseOpen(t, c.text())
		return c
	}
	c := dial()
	s := f.session()
	if !s.socket.Handshake().Secure {
		t.Error("not secure")
	}
	pad := strings.Repeat("x", 5000)
	for range 500 {
		s.send(t, pad)
	}
	c.sendText("4echo")
	for range 500 {
		c.wantText("4" + pad)
	}
	c.wantText("4echo")
	s.socket.Close()
	c.wantClose(0)
	s.wantEnd(t, ReasonForcedClose)

	c = dial()
	s = f.session()
	c.write(clientFrame(ws.OpText, []byte("4\xff"), true))
	c.wantClose(1007)
	s.wantEnd(t, ReasonTransportError)

	c = dial()
	s = f.session()
	s.socket.CloseNow()
	c.wantClose(0)
	s.wantEnd(t, ReasonForcedClose)

	// A client that does not read is closed without anybody waiting for the alert.
	dial()
	s = f.session()
	for begin, err := time.Now(), error(nil); err == nil; {
		sendBegin := time.Now()
		_, err = s.socket.Send(false, NewMessage([]byte(pad)))
		if d := time.Since(sendBegin); d > 3*time.Second {
			t.Fatalf("Send took %v", d)
		}
		if time.Since(begin) > patience {
			t.Fatal("never slow")
		}
	}
	s.wantEnd(t, ReasonSlowConsumer)
}
