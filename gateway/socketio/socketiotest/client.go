// Package socketiotest is a raw Socket.IO client for tests: it speaks Engine.IO over WebSocket,
// sends what it is told, character by character, and shows what comes.
package socketiotest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

// Wait is how long the client waits for what a test expects.
const Wait = 10 * time.Second

// Client is one connection. It answers heartbeats by itself.
type Client struct {
	// Open is the payload of the server's open packet.
	Open struct {
		SID          string
		PingInterval int
		PingTimeout  int
		MaxPayload   int
	}

	t      testing.TB
	conn   net.Conn
	in     chan string // messages: text as it came, binary behind "binary:"
	closed chan struct{}
	wg     sync.WaitGroup
	mu     sync.Mutex // serialises writes
}

// Options of Dial.
type Options struct {
	Protocol int         // Engine.IO revision; 4 if zero
	Path     string      // "/socket.io/" if empty
	Query    string      // appended to the URL, without "?" or "&"
	Header   http.Header // of the handshake
}

// Dial connects to the server at url (http://host:port) and reads the open packet. The
// connection is closed when the test ends.
func Dial(t testing.TB, url string, opts Options) *Client {
	t.Helper()
	c, err := dial(t, url, opts)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	return c
}

func dial(t testing.TB, url string, opts Options) (*Client, error) {
	if opts.Protocol == 0 {
		opts.Protocol = 4
	}
	if opts.Path == "" {
		opts.Path = "/socket.io/"
	}
	target := fmt.Sprintf("ws%s%s?EIO=%d&transport=websocket", strings.TrimPrefix(url, "http"), opts.Path, opts.Protocol)
	if opts.Query != "" {
		target += "&" + opts.Query
	}
	ctx, cancel := context.WithTimeout(t.Context(), Wait)
	defer cancel()
	dialer := ws.Dialer{Header: ws.HandshakeHeaderHTTP(opts.Header)}
	conn, br, _, err := dialer.Dial(ctx, target)
	if err != nil {
		return nil, err
	}
	c := &Client{t: t, conn: conn, in: make(chan string, 4096), closed: make(chan struct{})}
	var src io.Reader = conn
	if br != nil {
		src = br // what the server sent right behind its handshake
	}
	c.wg.Go(func() { c.read(src) })
	t.Cleanup(c.Close)
	open := c.Next()
	if !strings.HasPrefix(open, "0{") {
		return nil, fmt.Errorf("open packet is %q", open)
	}
	return c, json.Unmarshal([]byte(open[1:]), &c.Open)
}

type readWriter struct {
	io.Reader
	io.Writer
}

// Write implements io.Writer for the control frames that are answered while reading.
func (c *Client) write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn.Write(p)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func (c *Client) read(src io.Reader) {
	defer close(c.closed)
	rw := readWriter{src, writerFunc(c.write)}
	for {
		data, op, err := wsutil.ReadServerData(rw)
		if err != nil {
			return
		}
		switch {
		case op == ws.OpBinary:
			c.in <- "binary:" + string(data)
		case string(data) == "2":
			c.frame(ws.OpText, []byte("3"))
		case string(data) == "3": // the answer to a protocol 3 client's ping
		default:
			c.in <- string(data)
		}
	}
}

func (c *Client) frame(op ws.OpCode, data []byte) {
	var buf bytes.Buffer
	if err := wsutil.WriteClientMessage(&buf, op, data); err != nil {
		c.t.Errorf("write a frame: %v", err)
		return
	}
	_, _ = c.write(buf.Bytes()) // a connection that the server has closed is what some tests want
}

// Send sends one Socket.IO packet's text: the Engine.IO type in front is added.
func (c *Client) Send(packet string) { c.Raw("4" + packet) }

// Raw sends one Engine.IO packet.
func (c *Client) Raw(packet string) { c.frame(ws.OpText, []byte(packet)) }

// SendBinary sends one binary message: an attachment.
func (c *Client) SendBinary(b []byte) { c.frame(ws.OpBinary, b) }

// Next returns the next message with its Engine.IO type, and fails the test when none comes.
// Binary messages have "binary:" in front.
func (c *Client) Next() string {
	c.t.Helper()
	timer := time.NewTimer(Wait)
	defer timer.Stop()
	select {
	case m := <-c.in:
		return m
	case <-c.closed:
		select {
		case m := <-c.in:
			return m
		default:
			c.t.Fatal("the connection was closed, want a message")
		}
	case <-timer.C:
		c.t.Fatal("no message came")
	}
	return ""
}

// Expect checks that the next message is this Socket.IO packet.
func (c *Client) Expect(packet string) {
	c.t.Helper()
	if got := c.Next(); got != "4"+packet {
		c.t.Fatalf("got %q, want %q", got, "4"+packet)
	}
}

// ExpectBinary checks that the next message is this attachment.
func (c *Client) ExpectBinary(b []byte) {
	c.t.Helper()
	if got := c.Next(); got != "binary:"+string(b) {
		c.t.Fatalf("got %q, want the binary %q", got, b)
	}
}

// Connect joins a namespace ("/" or another name) with an auth payload ("" is none) and returns the
// socket's id.
func (c *Client) Connect(namespace, auth string) string {
	c.t.Helper()
	prefix := "0"
	if namespace != "/" {
		prefix += namespace + ","
	}
	c.Send(prefix + auth)
	got := c.Next()
	var payload struct{ SID string }
	if !strings.HasPrefix(got, "4"+prefix+"{") || json.Unmarshal([]byte(got[1+len(prefix):]), &payload) != nil {
		c.t.Fatalf("got %q, want CONNECT", got)
	}
	return payload.SID
}

// Sync makes sure that all packets sent before were handled and that nothing has come that
// the test has not seen. The server must answer the event "sync" with an acknowledgement: see Answer.
func (c *Client) Sync() {
	c.t.Helper()
	c.Send(`2999999["sync"]`)
	c.Expect(`3999999[]`)
}

// ExpectClose waits for the end of the connection; messages before it are dropped.
func (c *Client) ExpectClose() {
	c.t.Helper()
	timer := time.NewTimer(Wait)
	defer timer.Stop()
	for {
		select {
		case <-c.closed:
			return
		case <-c.in:
		case <-timer.C:
			c.t.Fatal("the connection was not closed")
		}
	}
}

// Rest returns all messages until the end of the connection.
func (c *Client) Rest() []string {
	c.t.Helper()
	var list []string
	timer := time.NewTimer(Wait)
	defer timer.Stop()
	for {
		select {
		case m := <-c.in:
			list = append(list, m)
		case <-c.closed:
			for {
				select {
				case m := <-c.in:
					list = append(list, m)
				default:
					return list
				}
			}
		case <-timer.C:
			c.t.Fatal("the connection was not closed")
		}
	}
}

// Drop cuts the connection without a word.
func (c *Client) Drop() {
	if err := c.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		c.t.Errorf("close: %v", err)
	}
}

// Close ends the connection and waits for the reader. It may be called more than once.
func (c *Client) Close() {
	c.Drop()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for {
			select {
			case <-c.in:
			case <-c.closed:
				return
			}
		}
	}()
	c.wg.Wait()
	<-drained
}

type buffered struct {
	net.Conn
	r io.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.r.Read(p) }

// DialStalled joins "/" and then never reads again, nor answers heartbeats. The connection is closed when the
// test ends.
func DialStalled(t testing.TB, url string) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Wait)
	defer cancel()
	conn, br, _, err := ws.Dialer{}.Dial(ctx, "ws"+strings.TrimPrefix(url, "http")+"/socket.io/?EIO=4&transport=websocket")
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	if br != nil {
		conn = buffered{conn, br} // what the server sent right behind its handshake
	}
	t.Cleanup(func() { _ = conn.Close() }) // the server may have cut it already
	if err := wsutil.WriteClientText(conn, []byte("40")); err != nil {
		t.Fatalf("join: %v", err)
	}
	return conn
}
