// Package sioclient is a small Socket.IO client (protocol 5 on Engine.IO 4) for
// programs that hold very many connections and count what each costs: load tests
// and benchmarks. It does not reconnect, knows no binary events and no namespaces
// but "/", and hands out what it reads as it stands in its buffer.
//
// A connection by WebSocket has one goroutine, a buffer of 1 kB, and no timer.
package sioclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
)

// Handler hears a client. Both methods are called on the goroutine that reads the
// connection; what a method emits leaves in one write after the packets that were
// read together.
type Handler interface {
	// Event is called for each event. args are the arguments behind the name, as JSON
	// separated by commas; name and args are valid until it returns. ack is what
	// Client.Ack wants, negative if no acknowledgement is asked for.
	Event(c *Client, name, args []byte, ack int64)
	// Closed is called once after Dial has succeeded, with nil after Close and else why
	// the connection ended. Acknowledgements that are missing then never come.
	Closed(c *Client, err error)
}

// Options say where to connect, and as whom.
type Options struct {
	URL     string // http://host:port or https://host:port
	Path    string // default /socket.io/
	Polling bool   // HTTP long-polling; default is WebSocket
	Auth    []byte // JSON, the payload of CONNECT; nil: none
	Handler Handler
}

// ConnectError is the server's refusal: Data is the packet's JSON.
type ConnectError struct{ Data json.RawMessage }

func (e *ConnectError) Error() string { return "connect_error " + string(e.Data) }

var (
	errClosed     = errors.New("sioclient: closed")
	errDisconnect = errors.New("sioclient: io server disconnect")
)

// Client is a connection. Safe for concurrent use.
type Client struct {
	handler Handler
	wire    wire
	done    chan struct{} // closed when the reader has ended

	mu      sync.Mutex // guards what follows
	out     *[]byte    // packets that have not been written, as the wire encodes them; nil if none
	corked  bool       // the reader will write
	closed  bool
	nextAck int64
	acks    map[int64]func(args []byte)
}

// wire is a transport.
type wire interface {
	// append encodes a packet.
	append(out, packet []byte) []byte
	// write sends what append has made. It must not keep b.
	write(b []byte) error
	// read returns when at least one packet was given to handle.
	read(handle func(packet []byte) error) error
	// close makes read and write return.
	close() error
}

// buffers are for packets on their way out, so that an idle connection has none.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}

const maxKeptBuffer = 64 << 10

// Dial connects and joins "/". ctx bounds the handshake alone. Errors: those of the
// network, *ConnectError.
func Dial(ctx context.Context, o Options) (*Client, error) {
	if o.Path == "" {
		o.Path = "/socket.io/"
	}
	c := &Client{handler: o.Handler, done: make(chan struct{})}
	var err error
	if o.Polling {
		c.wire, err = dialPolling(ctx, o)
	} else {
		c.wire, err = dialWebSocket(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.wire.close() })
	if err = c.join(o.Auth); err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		stop()
		_ = c.wire.close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("connect to %s: %w", o.URL, err)
	}
	go c.run()
	return c, nil
}

// join waits for the open packet, asks for "/" and waits for the answer. Events that
// come with the answer are handled here.
func (c *Client) join(auth []byte) error {
	joined := false
	handle := func(p []byte) error {
		switch {
		case !joined && len(p) > 0 && p[0] == '0':
			return c.send(append([]byte("40"), auth...))
		case !joined && len(p) > 1 && p[0] == '4' && p[1] == '0':
			joined = true
			return nil
		case !joined && len(p) > 1 && p[0] == '4' && p[1] == '4':
			return &ConnectError{Data: append(json.RawMessage(nil), p[2:]...)}
		}
		return c.handle(p)
	}
	for !joined {
		if err := c.wire.read(handle); err != nil {
			return err
		}
	}
	return nil
}

// run reads until the connection ends.
func (c *Client) run() {
	defer close(c.done)
	var err error
	for err == nil {
		err = c.wire.read(c.corkedHandle)
		if e := c.uncork(); err == nil {
			err = e
		}
	}
	c.mu.Lock()
	if c.closed {
		err = nil
	}
	c.closed = true
	c.mu.Unlock()
	_ = c.wire.close()
	c.handler.Closed(c, err)
}

func (c *Client) corkedHandle(p []byte) error {
	c.mu.Lock()
	c.corked = true
	c.mu.Unlock()
	return c.handle(p)
}

func (c *Client) uncork() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.corked = false
	return c.flushLocked()
}

// handle handles an Engine.IO packet.
func (c *Client) handle(p []byte) error {
	if len(p) == 0 {
		return errors.New("sioclient: an empty packet")
	}
	switch p[0] {
	case '2':
		return c.send(append([]byte{'3'}, p[1:]...))
	case '1':
		return errClosed
	case '6':
		return nil
	case '4':
		return c.message(p[1:])
	}
	return fmt.Errorf("sioclient: unexpected packet %.60q", p)
}

// message handles a Socket.IO packet.
func (c *Client) message(p []byte) error {
	if len(p) == 0 {
		return errors.New("sioclient: an empty message")
	}
	id, rest := int64(-1), p[1:]
	for i, digit := range rest {
		if digit < '0' || digit > '9' {
			rest = rest[i:]
			break
		}
		id = max(id, 0)*10 + int64(digit-'0')
	}
	switch p[0] {
	case '2':
		name, args, ok := cutName(rest)
		if !ok {
			return fmt.Errorf("sioclient: unexpected event %.60q", p)
		}
		c.handler.Event(c, name, args, id)
		return nil
	case '3':
		c.mu.Lock()
		onAck := c.acks[id]
		delete(c.acks, id)
		c.mu.Unlock()
		if onAck != nil && len(rest) >= 2 {
			onAck(rest[1 : len(rest)-1])
		}
		return nil
	case '1':
		return errDisconnect
	}
	return fmt.Errorf("sioclient: unexpected message %.60q", p)
}

// cutName takes ["name",args] apart. Names have no escapes in what we measure.
func cutName(p []byte) (name, args []byte, ok bool) {
	if len(p) < 4 || p[0] != '[' || p[1] != '"' || p[len(p)-1] != ']' {
		return nil, nil, false
	}
	for i := 2; i < len(p); i++ {
		if p[i] != '"' {
			continue
		}
		args = p[i+1 : len(p)-1]
		if len(args) > 0 && args[0] == ',' {
			args = args[1:]
		}
		return p[2:i], args, true
	}
	return nil, nil, false
}

// Emit sends an event with one argument, JSON. onAck, if not nil, is called with the
// answer's arguments, valid until it returns, on the goroutine that reads.
func (c *Client) Emit(event string, payload []byte, onAck func(args []byte)) error {
	scratch := buffers.Get().(*[]byte)
	defer release(scratch)
	c.mu.Lock()
	defer c.mu.Unlock()
	p := append((*scratch)[:0], "42"...)
	if onAck != nil {
		if c.acks == nil {
			c.acks = map[int64]func([]byte){}
		}
		c.acks[c.nextAck] = onAck
		p = strconv.AppendInt(p, c.nextAck, 10)
		c.nextAck++
	}
	p = append(append(append(p, `["`...), event...), `",`...)
	p = append(append(p, payload...), ']')
	*scratch = p
	return c.sendLocked(p)
}

// Ack answers an event with args: JSON, separated by commas.
func (c *Client) Ack(id int64, args []byte) error {
	var buf [64]byte
	p := append(strconv.AppendInt(append(buf[:0], "43"...), id, 10), '[')
	return c.send(append(append(p, args...), ']'))
}

func (c *Client) send(packet []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sendLocked(packet)
}

func (c *Client) sendLocked(packet []byte) error {
	if c.closed {
		return errClosed
	}
	if c.out == nil {
		c.out = buffers.Get().(*[]byte)
	}
	*c.out = c.wire.append(*c.out, packet)
	if c.corked {
		return nil
	}
	return c.flushLocked()
}

func (c *Client) flushLocked() error {
	if c.out == nil {
		return nil
	}
	err := c.wire.write(*c.out)
	release(c.out)
	c.out = nil
	return err
}

func release(b *[]byte) {
	if cap(*b) > maxKeptBuffer {
		return
	}
	*b = (*b)[:0]
	buffers.Put(b)
}

// Goodbye asks the server to close the connection, as a page does that is left. The
// connection ends when the server has heard it; the caller still calls Close.
func (c *Client) Goodbye() error { return c.send([]byte{'1'}) }

// Close ends the connection without a goodbye and waits for the reader. It must not
// be called by a Handler.
func (c *Client) Close() {
	c.Cut()
	<-c.done
}

// Cut is Close without the wait.
func (c *Client) Cut() {
	// Whoever holds mu may wait for the network: it is released first.
	_ = c.wire.close()
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
}
