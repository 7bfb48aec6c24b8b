// Package lightclient is a Socket.IO client that costs little, for tests and benchmarks
// with thousands of connections: WebSocket only, one namespace, JSON, one goroutine a
// connection. What official clients do is shown with official clients.
package lightclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gobwas/ws"
)

// Options of Dial.
type Options struct {
	URL  string // http://host:port
	Auth any    // payload of the handshake
	// Event hears every event, on the goroutine that reads: its name and its arguments as
	// JSON without the brackets, good until it returns. acknowledge is nil where none is
	// asked for, and only to be called before Event returns. Without Event everything is
	// acknowledged.
	Event func(name string, args []byte, acknowledge func())
}

// Refused is a connect_error.
type Refused struct{ Payload string }

func (r *Refused) Error() string { return "lightclient: refused: " + r.Payload }

// Client is one connection. Emit may be called from any goroutine.
type Client struct {
	opts Options
	conn net.Conn
	in   *bufio.Reader
	buf  []byte // of the frame that is read
	done chan struct{}
	err  error // why it ended, after done

	mu      sync.Mutex // guards what follows, and writing
	next    int
	answers map[int]func([]byte)
}

// maxFrame bounds what is read at once.
const maxFrame = 4 << 20

// Dial connects and joins "/". Errors: *Refused, and those of the network. The caller
// closes the client.
func Dial(ctx context.Context, opts Options) (*Client, error) {
	auth, err := json.Marshal(opts.Auth)
	if err != nil {
		return nil, err
	}
	target := "ws" + strings.TrimPrefix(opts.URL, "http") + "/socket.io/?EIO=4&transport=websocket"
	conn, in, _, err := ws.Dial(ctx, target)
	if err != nil {
		return nil, err
	}
	if in == nil {
		in = bufio.NewReaderSize(conn, 1024)
	}
	c := &Client{opts: opts, conn: conn, in: in, done: make(chan struct{}), answers: map[int]func([]byte){}}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	err = c.join(string(auth))
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	go c.run()
	return c, nil
}

// join is the handshake up to the answer to CONNECT.
func (c *Client) join(auth string) error {
	if auth == "null" {
		auth = ""
	}
	if err := c.write("40" + auth); err != nil {
		return err
	}
	for {
		packet, err := c.read()
		switch {
		case err != nil:
			return err
		case bytes.HasPrefix(packet, []byte("40")):
			return nil
		case bytes.HasPrefix(packet, []byte("44")):
			return &Refused{string(packet[2:])}
		case packet[0] != '0':
			return fmt.Errorf("lightclient: %.100q before the connection stands", packet)
		}
	}
}

// run reads until the connection ends.
func (c *Client) run() {
	for {
		packet, err := c.read()
		if err == nil {
			err = c.handle(packet)
		}
		if err != nil {
			c.err = errors.Join(err, c.conn.Close())
			c.mu.Lock()
			c.answers = nil
			c.mu.Unlock()
			close(c.done)
			return
		}
	}
}

// read returns the next text message. It answers no control frames: the server's
// heartbeat is Engine.IO's.
func (c *Client) read() ([]byte, error) {
	for {
		header, err := ws.ReadHeader(c.in)
		if err != nil {
			return nil, err
		}
		if header.Length > maxFrame {
			return nil, fmt.Errorf("lightclient: a frame of %d bytes", header.Length)
		}
		if int64(cap(c.buf)) < header.Length {
			c.buf = make([]byte, header.Length)
		}
		c.buf = c.buf[:header.Length]
		if _, err := io.ReadFull(c.in, c.buf); err != nil {
			return nil, err
		}
		switch {
		case header.OpCode == ws.OpClose:
			return nil, io.EOF
		case header.OpCode == ws.OpText && header.Fin && header.Length > 0:
			return c.buf, nil
		}
	}
}

var errServerDisconnect = errors.New("lightclient: io server disconnect")

func (c *Client) handle(packet []byte) error {
	switch {
	case packet[0] == '2':
		return c.write("3")
	case bytes.HasPrefix(packet, []byte("42")):
		return c.event(packet[2:])
	case bytes.HasPrefix(packet, []byte("43")):
		id, args := split(packet[2:])
		c.mu.Lock()
		answer := c.answers[id]
		delete(c.answers, id)
		c.mu.Unlock()
		if answer != nil {
			answer(args)
		}
	case bytes.HasPrefix(packet, []byte("41")):
		return errServerDisconnect
	}
	return nil
}

func (c *Client) event(packet []byte) error {
	id, args := split(packet)
	var acknowledge func()
	var failed error
	if id >= 0 {
		acknowledge = func() { failed = c.write("43" + strconv.Itoa(id) + "[]") }
	}
	if c.opts.Event == nil {
		if acknowledge != nil {
			acknowledge()
		}
		return failed
	}
	name, rest, _ := bytes.Cut(bytes.TrimPrefix(args, []byte(`"`)), []byte(`"`))
	c.opts.Event(string(name), bytes.TrimPrefix(rest, []byte(",")), acknowledge)
	return failed
}

// split takes a packet's id, -1 if it has none, and what stands between the brackets.
func split(packet []byte) (id int, args []byte) {
	start := bytes.IndexByte(packet, '[')
	if start < 0 {
		return -1, nil
	}
	id = -1
	if n, err := strconv.Atoi(string(packet[:start])); err == nil {
		id = n
	}
	return id, bytes.TrimSuffix(packet[start+1:], []byte("]"))
}

// Emit sends an event. answer, if not nil, hears the arguments of the acknowledgement as
// JSON without the brackets, on the goroutine that reads, or never if the connection ends
// before.
func (c *Client) Emit(event string, payload any, answer func(args []byte)) error {
	body, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	id := ""
	if answer != nil {
		c.mu.Lock()
		if c.answers == nil {
			c.mu.Unlock()
			return net.ErrClosed
		}
		id = strconv.Itoa(c.next)
		c.answers[c.next] = answer
		c.next++
		c.mu.Unlock()
	}
	return c.write(fmt.Sprintf(`42%s[%q,%s]`, id, event, body))
}

// Ask is Emit that waits for the answer and decodes its first argument.
func (c *Client) Ask(ctx context.Context, event string, payload, into any) error {
	answered := make(chan error, 1)
	if err := c.Emit(event, payload, func(args []byte) { answered <- json.Unmarshal(args, into) }); err != nil {
		return err
	}
	select {
	case err := <-answered:
		return err
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Client) write(packet string) error {
	frame, err := ws.CompileFrame(ws.MaskFrameInPlace(ws.NewTextFrame([]byte(packet))))
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.conn.Write(frame)
	return err
}

// Done is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err is why the connection has ended, after Done.
func (c *Client) Err() error { return c.err }

// Close cuts the connection and returns when its goroutine has ended. It must not be
// called from Event or an answer.
func (c *Client) Close() {
	_ = c.conn.Close() // the other end may have been first
	<-c.done
}
