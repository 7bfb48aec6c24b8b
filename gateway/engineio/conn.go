package engineio

import (
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/gobwas/ws"

	"xabar/internal/sockets"
)

// readSize is the size of the pooled read buffers. A connection holds one only while bytes of it
// wait to be handled.
const readSize = 8 << 10

// batchSize is how many bytes of waiting frames go out in one write.
const batchSize = 64 << 10

var (
	readBuffers  = sync.Pool{New: func() any { return new([readSize]byte) }}
	batchBuffers = sync.Pool{New: func() any { return new([batchSize]byte) }}
)

// conn is one WebSocket connection. One goroutine reads; one at a time writes, as Socket.writing
// says.
type conn struct {
	// What a write needs comes first: see Socket.
	raw       syscall.RawConn // nil: only blocking calls are possible
	form      wireForm
	outBlocks bool // wait for room in the kernel's buffer
	writeFn   func(fd uintptr) bool
	out       []byte
	outN      int
	outE      error

	net    net.Conn
	frames frameReader
	pooled *[readSize]byte // frames.buf if it is from the pool
	readFn func(fd uintptr) bool
	readN  int
	readE  error
	beat   bool // a heartbeat came with the frames that are handled now; the reader's, as spoke
	spoke  bool // and something else
}

func newConn(nc net.Conn, form wireForm, opts *Options) *conn {
	c := &conn{net: nc, form: form, raw: sockets.Raw(nc)}
	c.frames.max = opts.MaxPayload
	c.frames.deflate = form&formDeflate != 0
	if c.raw != nil {
		c.readFn, c.writeFn = c.onReadable, c.onWritable
	}
	return c
}

// fill waits for bytes and adds them to the frames. While a connection that can be polled waits
// with nothing kept, it holds no buffer.
func (c *conn) fill() error {
	if c.raw == nil {
		n, err := c.net.Read(c.space())
		c.frames.w += n
		if n > 0 {
			return nil
		}
		return err
	}
	if err := c.raw.Read(c.readFn); err != nil {
		return err
	}
	c.frames.w += c.readN
	return c.readE
}

func (c *conn) onReadable(fd uintptr) bool {
	c.readN, c.readE = sockets.Read(fd, c.space())
	if c.readE == sockets.ErrAgain {
		c.readE = nil
		if c.frames.idle() {
			c.release()
		}
		return false
	}
	return true
}

func (c *conn) space() []byte {
	if c.frames.buf == nil {
		c.pooled = readBuffers.Get().(*[readSize]byte)
		c.frames.buf = c.pooled[:]
		c.frames.r, c.frames.w = 0, 0
	}
	b := c.frames.space()
	if c.pooled != nil && &c.frames.buf[0] != &c.pooled[0] { // it has grown out of the pool's
		readBuffers.Put(c.pooled)
		c.pooled = nil
	}
	return b
}

// release gives the buffer back.
func (c *conn) release() {
	if c.pooled != nil {
		readBuffers.Put(c.pooled)
		c.pooled = nil
	}
	c.frames.buf, c.frames.r, c.frames.w = nil, 0, 0
}

// write sends b without waiting, or waiting if blocks. It returns sockets.ErrAgain with what was
// written when the kernel's buffer is full.
func (c *conn) write(b []byte, blocks bool) (int, error) {
	if c.raw == nil {
		return c.net.Write(b)
	}
	c.out, c.outN, c.outE, c.outBlocks = b, 0, nil, blocks
	err := c.raw.Write(c.writeFn)
	c.out = nil
	if err == nil {
		err = c.outE
	}
	return c.outN, err
}

func (c *conn) onWritable(fd uintptr) bool {
	for c.outN < len(c.out) {
		n, err := sockets.Write(fd, c.out[c.outN:])
		c.outN += n
		if err == sockets.ErrAgain && c.outBlocks {
			return false
		}
		if err != nil {
			c.outE = err
			return true
		}
	}
	return true
}

// writeMessages sends the start of msgs, of which the first off bytes are sent already, in one
// write. It returns how many bytes went out.
func (c *conn) writeMessages(msgs []*Message, off int, blocks bool, threshold int) (int, error) {
	first := msgs[0].wire(c.form, threshold)[off:]
	if len(msgs) == 1 || len(first) >= batchSize/4 {
		return c.write(first, blocks)
	}
	scratch := batchBuffers.Get().(*[batchSize]byte)
	defer batchBuffers.Put(scratch)
	b := append(scratch[:0], first...)
	for _, m := range msgs[1:] {
		f := m.wire(c.form, threshold)
		if len(b)+len(f) > batchSize {
			break
		}
		b = append(b, f...)
	}
	return c.write(b, blocks)
}

// closeFrame is a close frame with code, empty if code is 0.
func closeFrame(code ws.StatusCode) *Message {
	if code == 0 {
		return controlOf(ws.OpClose, nil)
	}
	return controlOf(ws.OpClose, ws.NewCloseFrameBody(code, ""))
}

// lingerTime is how long a connection whose close frame is sent may take to answer it. Closing
// at once would make the kernel reset the connection and lose what is under way.
const lingerTime = 2 * time.Second

// linger lets the reader go on, to discard what comes, until the peer closes or the time is over.
func (c *conn) linger() {
	err := c.net.SetReadDeadline(time.Now().Add(lingerTime))
	if half, ok := c.net.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite()
	}
	if err != nil {
		c.close()
	}
}

// close cuts the connection. The error does not matter: it is closed either way.
func (c *conn) close() { _ = c.net.Close() }
