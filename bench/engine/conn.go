//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/gobwas/ws"
)

// conn is one WebSocket connection of the load. Its reader is the loop.
type conn struct {
	fd   int
	loop *loop
	rest []byte // start of a frame that is not complete

	last    int         // number of the last event `m`
	onReply func(*conn) // called on the loop when an acknowledgement comes; may be nil
}

// seqDigits is how many digits of a number a broadcast starts with.
const seqDigits = 9

// read handles what has come.
func (c *conn) read(buf []byte) error {
	n, err := syscall.Read(c.fd, buf)
	switch {
	case errors.Is(err, syscall.EINTR), errors.Is(err, syscall.EAGAIN):
		return nil
	case err != nil:
		return err
	case n == 0:
		return io.EOF
	}
	data := buf[:n]
	if len(c.rest) > 0 {
		data = append(c.rest, data...)
	}
	for {
		payload, size := frame(data)
		if size == 0 {
			break
		}
		if err := c.handle(payload); err != nil {
			return err
		}
		data = data[size:]
	}
	c.rest = append(c.rest[:0:0], data...) // nearly always nothing
	return nil
}

// frame returns the payload of the frame that b starts with, and its size; 0 if it is not complete.
// A server's frames have no mask.
func frame(b []byte) (payload []byte, size int) {
	if len(b) < 2 {
		return nil, 0
	}
	head, n := 2, int(b[1])
	switch {
	case n == 126 && len(b) >= 4:
		head, n = 4, int(binary.BigEndian.Uint16(b[2:]))
	case n == 127 && len(b) >= 10:
		head, n = 10, int(binary.BigEndian.Uint64(b[2:]))
	case n >= 126:
		return nil, 0
	}
	if len(b) < head+n {
		return nil, 0
	}
	return b[head : head+n], head + n
}

var (
	eventPrefix = []byte(`42["m","`)
	ackPrefix   = []byte("43")
	pong        = textFrame("3")
)

func (c *conn) handle(p []byte) error {
	switch {
	case bytes.HasPrefix(p, eventPrefix):
		c.loop.received.Add(1)
		seq := 0
		for _, digit := range p[len(eventPrefix):min(len(p), len(eventPrefix)+seqDigits)] {
			seq = 10*seq + int(digit-'0')
		}
		if seq < c.last {
			c.loop.disorder.Add(1)
		}
		c.last = seq
	case bytes.HasPrefix(p, ackPrefix):
		if c.onReply != nil {
			c.onReply(c)
		}
	case string(p) == "2":
		return c.write(pong)
	case string(p) == "6": // a noop of the upgrade
	default:
		return fmt.Errorf("unexpected packet %q", p)
	}
	return nil
}

// write sends all of b, waiting if it must.
func (c *conn) write(b []byte) error {
	for len(b) > 0 {
		n, err := syscall.Write(c.fd, b)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
		b = b[n:]
	}
	return nil
}

// cut ends the connection with a reset, so that no port is kept for it.
func (c *conn) cut() {
	_ = syscall.SetsockoptLinger(c.fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
	_ = syscall.Close(c.fd)
}

// textFrame is a client's frame.
func textFrame(text string) []byte {
	return ws.MustCompileFrame(ws.MaskFrameInPlace(ws.NewTextFrame([]byte(text))))
}
