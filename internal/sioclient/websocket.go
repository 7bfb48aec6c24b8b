package sioclient

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"

	"github.com/gobwas/ws"

	"xabar/internal/sockets"
)

// readSize is the buffer of a connection while nothing larger comes.
const readSize = 1024

// maxFrame bounds what a server can make a client keep.
const maxFrame = 64 << 20

type webSocket struct {
	conn net.Conn
	buf  []byte // read and not handled; its capacity is the buffer
	mask [4]byte
}

func dialWebSocket(ctx context.Context, o Options) (*webSocket, error) {
	url := "ws" + strings.TrimPrefix(strings.TrimSuffix(o.URL, "/"), "http") + o.Path + "?EIO=4&transport=websocket"
	conn, early, _, err := ws.Dialer{ReadBufferSize: 512, WriteBufferSize: 512}.Dial(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("open a WebSocket to %s: %w", o.URL, err)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a load test opens more connections than there are ports in a minute
	}
	w := &webSocket{conn: sockets.Quiet(conn), buf: make([]byte, 0, readSize)}
	binary.LittleEndian.PutUint32(w.mask[:], rand.Uint32())
	if early != nil {
		b, err := early.Peek(early.Buffered())
		if err != nil {
			_ = conn.Close()
			return nil, err
		}
		w.buf = append(w.buf, b...)
		ws.PutReader(early)
	}
	return w, nil
}

func (w *webSocket) append(out, packet []byte) []byte { return w.frame(out, ws.OpText, packet) }

// frame appends a client's frame.
func (w *webSocket) frame(out []byte, op ws.OpCode, payload []byte) []byte {
	out = append(out, 0x80|byte(op))
	switch n := len(payload); {
	case n < 126:
		out = append(out, 0x80|byte(n))
	case n <= 0xffff:
		out = binary.BigEndian.AppendUint16(append(out, 0x80|126), uint16(n))
	default:
		out = binary.BigEndian.AppendUint64(append(out, 0x80|127), uint64(n))
	}
	out = append(out, w.mask[:]...)
	start := len(out)
	out = append(out, payload...)
	ws.Cipher(out[start:], w.mask, 0)
	return out
}

func (w *webSocket) write(b []byte) error {
	_, err := w.conn.Write(b)
	return err
}

func (w *webSocket) close() error { return w.conn.Close() }

func (w *webSocket) read(handle func([]byte) error) error {
	for handled := false; ; {
		rest := w.buf
		for {
			payload, op, size, err := parseFrame(rest)
			if err != nil {
				return err
			}
			if size == 0 || size > len(rest) {
				w.keep(rest, size)
				break
			}
			if err := w.handleFrame(op, payload, handle); err != nil {
				return err
			}
			rest, handled = rest[size:], true
		}
		if handled {
			return nil
		}
		n, err := w.conn.Read(w.buf[len(w.buf):cap(w.buf)])
		if err != nil {
			return err
		}
		w.buf = w.buf[:len(w.buf)+n]
	}
}

func (w *webSocket) handleFrame(op ws.OpCode, payload []byte, handle func([]byte) error) error {
	switch op {
	case ws.OpText:
		return handle(payload)
	case ws.OpPing:
		return w.write(w.frame(nil, ws.OpPong, payload))
	case ws.OpPong:
		return nil
	case ws.OpClose:
		return io.EOF
	}
	return fmt.Errorf("sioclient: unexpected frame with opcode %d", op)
}

// keep moves what is not handled to the front of a buffer in which a frame of size
// bytes (0: not known yet) has room.
func (w *webSocket) keep(rest []byte, size int) {
	switch need := max(size, len(rest)+256, readSize); {
	case cap(w.buf) < need, cap(w.buf) > 4*readSize && need <= readSize:
		w.buf = append(make([]byte, 0, need), rest...)
	default:
		w.buf = append(w.buf[:0], rest...)
	}
}

// parseFrame finds the frame that b starts with. size is 0 if its head is not complete, more than len(b) if
// the rest is not.
func parseFrame(b []byte) (payload []byte, op ws.OpCode, size int, err error) {
	if len(b) < 2 {
		return nil, 0, 0, nil
	}
	if b[0]&0x80 == 0 || b[0]&0x70 != 0 || b[1]&0x80 != 0 {
		return nil, 0, 0, errors.New("sioclient: a frame that is fragmented, compressed or masked")
	}
	head, n := 2, uint64(b[1])
	switch {
	case n == 126 && len(b) >= 4:
		head, n = 4, uint64(binary.BigEndian.Uint16(b[2:]))
	case n == 127 && len(b) >= 10:
		head, n = 10, binary.BigEndian.Uint64(b[2:])
	case n >= 126:
		return nil, 0, 0, nil
	}
	if n > maxFrame {
		return nil, 0, 0, fmt.Errorf("sioclient: a frame of %d bytes", n)
	}
	size = head + int(n)
	if size <= len(b) {
		payload = b[head:size]
	}
	return payload, ws.OpCode(b[0] & 0x0f), size, nil
}
