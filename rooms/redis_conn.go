package rooms

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

func joinHostPort(host, port string) string { return net.JoinHostPort(host, port) }

// maxBulk is the largest payload that is read, in bytes: far above what any client may send,
// far below what would hurt.
const maxBulk = 64 << 20

// keptBody is up to which size a buffer for payloads is used again.
const keptBody = 64 << 10

// errProtocol: what came is no answer of a Redis in pub/sub.
var errProtocol = errors.New("rooms: unexpected answer from Redis")

// verb is one of the three kinds of subscription.
type verb uint8

const (
	classic verb = iota // SUBSCRIBE
	pattern             // PSUBSCRIBE
	sharded             // SSUBSCRIBE, Redis 7
	verbs
)

var (
	subscribeCommands   = [verbs]string{"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"}
	unsubscribeCommands = [verbs]string{"UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"}
)

// frameKind is what a pub/sub connection can receive.
type frameKind uint8

const (
	frameMessage frameKind = iota + 1
	frameSubscribed
	frameUnsubscribed
	framePong
	frameError
)

// frame is one thing received. What it holds is valid until the next read.
type frame struct {
	kind    frameKind
	verb    verb
	name    []byte // the subscribed channel or pattern
	payload []byte // of a message, or the text of an error
}

// pubsubConn is one connection for nothing but pub/sub, in RESP2. go-redis's own PubSub reconnects
// by itself inside a read and then sends all its subscriptions as one command; here the owner
// must know which connection a confirmation came on, and when one was lost. One goroutine
// reads; write is for any.
type pubsubConn struct {
	conn    net.Conn
	in      *bufio.Reader
	timeout time.Duration // of a write
	name    []byte        // reused by read
	body    []byte        // reused by read
	alive   *atomic.Int64 // if not nil, when anything came last, in Unix nanoseconds

	mu  sync.Mutex // guards out
	out *bufio.Writer
}

// dialPubsub connects and authenticates.
func dialPubsub(ctx context.Context, o redis.Options, addr string) (*pubsubConn, error) {
	network := o.Network
	if network == "" {
		network = "tcp"
	}
	conn, err := dialer(o)(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &pubsubConn{conn: conn, timeout: o.WriteTimeout, out: bufio.NewWriterSize(conn, 16<<10)}
	c.in = bufio.NewReaderSize(c, 64<<10)
	if err := c.authenticate(&o); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

func (c *pubsubConn) authenticate(o *redis.Options) error {
	if o.Password == "" {
		return nil
	}
	args := []string{"AUTH", o.Password}
	if o.Username != "" {
		args = []string{"AUTH", o.Username, o.Password}
	}
	if err := c.conn.SetReadDeadline(time.Now().Add(o.DialTimeout)); err != nil {
		return err
	}
	if err := c.command(args...); err != nil {
		return err
	}
	line, err := c.line()
	if err != nil {
		return err
	}
	if line[0] != '+' {
		return fmt.Errorf("rooms: Redis refused the credentials: %s", line[1:])
	}
	return c.conn.SetReadDeadline(time.Time{})
}

// Read implements io.Reader, for in.
func (c *pubsubConn) Read(b []byte) (int, error) {
	n, err := c.conn.Read(b)
	if n > 0 && c.alive != nil {
		c.alive.Store(time.Now().UnixNano())
	}
	return n, err
}

// close ends a read that is under way.
func (c *pubsubConn) close() { _ = c.conn.Close() } // the error that matters is the one it is closed for

// command writes one command at once.
func (c *pubsubConn) command(args ...string) error {
	return c.write(func(out *bufio.Writer) { appendCommand(out, args[0], args[1:]) })
}

// write has f write commands and sends them, in one write if they fit a buffer.
func (c *pubsubConn) write(f func(out *bufio.Writer)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return err
	}
	f(c.out) // its errors stick, and Flush returns them
	return c.out.Flush()
}

func appendCommand(out *bufio.Writer, name string, args []string) {
	appendHeader(out, '*', len(args)+1)
	appendBulk(out, name)
	for _, arg := range args {
		appendBulk(out, arg)
	}
}

func appendHeader(out *bufio.Writer, kind byte, n int) {
	b := append(out.AvailableBuffer(), kind)
	b = strconv.AppendInt(b, int64(n), 10)
	_, _ = out.Write(append(b, '\r', '\n')) // Flush returns the error
}

func appendBulk(out *bufio.Writer, s string) {
	appendHeader(out, '$', len(s))
	_, _ = out.WriteString(s) // Flush returns the error
	_, _ = out.WriteString("\r\n")
}

// usualHead is how nearly everything begins that comes.
const usualHead = "*3\r\n$7\r\nmessage\r\n"

// read waits for the next frame.
func (c *pubsubConn) read(f *frame) error {
	if c.in.Buffered() >= len(usualHead) {
		if head, err := c.in.Peek(len(usualHead)); err == nil && string(head) == usualHead {
			if _, err := c.in.Discard(len(usualHead)); err != nil {
				return err
			}
			return c.message(f, classic, true)
		}
	}
	line, err := c.line()
	if err != nil {
		return err
	}
	switch line[0] {
	case '+':
		f.kind = framePong // to a PING before the first subscription; nothing else answers so
		return nil
	case '-':
		f.kind, f.payload = frameError, append([]byte(nil), line[1:]...)
		return nil
	case '*':
		n, err := number(line[1:])
		if err != nil {
			return err
		}
		return c.push(f, n)
	}
	return fmt.Errorf("%w: %.40q", errProtocol, line)
}

// push reads what follows the length of an array.
func (c *pubsubConn) push(f *frame, n int) error {
	kind, err := c.bulk(&c.name)
	if err != nil {
		return err
	}
	switch string(kind) {
	case "message":
		return c.message(f, classic, n == 3)
	case "smessage":
		return c.message(f, sharded, n == 3)
	case "pmessage":
		if n != 4 {
			return errProtocol
		}
		if err := c.named(f, pattern); err != nil {
			return err
		}
		var channel []byte // the pattern says whose it is, the payload says the rest
		if _, err := c.bulk(&channel); err != nil {
			return err
		}
		return c.payload(f)
	case "subscribe":
		return c.confirmation(f, frameSubscribed, classic)
	case "psubscribe":
		return c.confirmation(f, frameSubscribed, pattern)
	case "ssubscribe":
		return c.confirmation(f, frameSubscribed, sharded)
	case "unsubscribe":
		return c.confirmation(f, frameUnsubscribed, classic)
	case "punsubscribe":
		return c.confirmation(f, frameUnsubscribed, pattern)
	case "sunsubscribe":
		return c.confirmation(f, frameUnsubscribed, sharded)
	case "pong":
		f.kind = framePong
		_, err := c.bulk(&c.name)
		return err
	}
	return fmt.Errorf("%w: %.40q", errProtocol, kind)
}

func (c *pubsubConn) named(f *frame, v verb) error {
	name, err := c.bulk(&c.name)
	f.name, f.verb = name, v
	return err
}

func (c *pubsubConn) message(f *frame, v verb, valid bool) error {
	if !valid {
		return errProtocol
	}
	if err := c.named(f, v); err != nil {
		return err
	}
	return c.payload(f)
}

func (c *pubsubConn) payload(f *frame) error {
	f.kind = frameMessage
	if cap(c.body) > keptBody {
		c.body = nil
	}
	payload, err := c.bulk(&c.body)
	f.payload = payload
	return err
}

func (c *pubsubConn) confirmation(f *frame, kind frameKind, v verb) error {
	f.kind = kind
	if err := c.named(f, v); err != nil {
		return err
	}
	line, err := c.line() // how many subscriptions there are now
	if err == nil && line[0] != ':' {
		err = errProtocol
	}
	return err
}

// line reads up to the end of line, which it leaves out. It has at least one byte.
func (c *pubsubConn) line() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, errProtocol
	}
	return line[:len(line)-2], nil
}

func number(text []byte) (int, error) {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 0 {
		return 0, errProtocol
	}
	return n, nil
}

// bulk reads a bulk string into buf, which it makes larger if it must.
func (c *pubsubConn) bulk(buf *[]byte) ([]byte, error) {
	line, err := c.line()
	if err != nil {
		return nil, err
	}
	if string(line) == "$-1" { // "unsubscribe" without anything left
		return nil, nil
	}
	if line[0] != '$' {
		return nil, errProtocol
	}
	n, err := number(line[1:])
	if err != nil || n > maxBulk {
		return nil, errProtocol
	}
	if cap(*buf) < n {
		*buf = make([]byte, n)
	}
	*buf = (*buf)[:n]
	if _, err := io.ReadFull(c.in, *buf); err != nil {
		return nil, err
	}
	if _, err := c.in.Discard(2); err != nil {
		return nil, err
	}
	return *buf, nil
}
