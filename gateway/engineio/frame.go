package engineio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/gobwas/ws"
)

// Bits of a frame's first byte, RFC 6455 section 5.2.
const (
	finBit  = 0x80
	rsvBits = 0x70
	rsv1    = 0x40
)

// appendFrame appends an unmasked, final frame whose payload is prefix and payload. It returns
// the length of the header too.
func appendFrame(dst []byte, op ws.OpCode, rsv byte, prefix, payload []byte) ([]byte, uint8) {
	n := len(prefix) + len(payload)
	if dst == nil {
		dst = make([]byte, 0, n+headSize(n))
	}
	start := len(dst)
	dst = append(dst, finBit|rsv|byte(op))
	switch {
	case n < 126:
		dst = append(dst, byte(n))
	case n <= 0xffff:
		dst = append(dst, 126)
		dst = binary.BigEndian.AppendUint16(dst, uint16(n))
	default:
		dst = append(dst, 127)
		dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	}
	head := uint8(len(dst) - start)
	return append(append(dst, prefix...), payload...), head
}

func headSize(n int) int {
	switch {
	case n < 126:
		return 2
	case n <= 0xffff:
		return 4
	default:
		return 10
	}
}

// frameHead returns the length of the header of an unmasked frame.
func frameHead(f []byte) int {
	switch f[1] & 0x7f {
	case 126:
		return 4
	case 127:
		return 10
	default:
		return 2
	}
}

// A frameError fails the connection with a close code, as RFC 6455 section 7.1.7 asks.
type frameError struct {
	code ws.StatusCode
	msg  string
}

func (e *frameError) Error() string { return fmt.Sprintf("websocket: %s (%d)", e.msg, e.code) }

func protocolError(msg string) error { return &frameError{ws.StatusProtocolError, msg} }

var (
	errTooBig  error = &frameError{ws.StatusMessageTooBig, "max payload size exceeded"}
	errBadUTF8 error = &frameError{ws.StatusInvalidFramePayloadData, "invalid UTF-8 sequence"}
	errInflate error = &frameError{ws.StatusInvalidFramePayloadData, "invalid compressed data"}
)

// errShort: the header is not complete.
var errShort = errors.New("websocket: short header")

// parseHeader reads a frame header from the start of b and returns its length.
func parseHeader(b []byte) (h ws.Header, n int, err error) {
	if len(b) < 2 {
		return h, 0, errShort
	}
	h.Fin = b[0]&finBit != 0
	h.Rsv = (b[0] & rsvBits) >> 4
	h.OpCode = ws.OpCode(b[0] & 0x0f)
	h.Masked = b[1]&0x80 != 0
	n = 2
	switch l := b[1] & 0x7f; l {
	case 126:
		if len(b) < 4 {
			return h, 0, errShort
		}
		h.Length, n = int64(binary.BigEndian.Uint16(b[2:])), 4
	case 127:
		if len(b) < 10 {
			return h, 0, errShort
		}
		v := binary.BigEndian.Uint64(b[2:])
		if v>>63 != 0 {
			return h, 0, protocolError("payload length has its highest bit set")
		}
		h.Length, n = int64(v), 10
	default:
		h.Length = int64(l)
	}
	if h.Masked {
		if len(b) < n+4 {
			return h, 0, errShort
		}
		copy(h.Mask[:], b[n:])
		n += 4
	}
	return h, n, nil
}

// frameReader turns the bytes of a client into messages and control frames. It keeps what is
// incomplete; its buffer grows with what has arrived, never with what a header announces.
type frameReader struct {
	buf  []byte // bytes [r:w] wait to be decoded
	r, w int

	max     int  // bytes of a message
	deflate bool // permessage-deflate was negotiated

	parts      []byte // payload of a fragmented message so far
	op         ws.OpCode
	fragmented bool
	compressed bool
}

// idle reports whether nothing is kept, so that the buffer may be given away.
func (f *frameReader) idle() bool { return f.r == f.w }

// space returns room for at least one more byte behind what is kept.
func (f *frameReader) space() []byte {
	if f.r == f.w {
		f.r, f.w = 0, 0
	}
	if f.w == len(f.buf) {
		if f.r > 0 {
			f.w = copy(f.buf, f.buf[f.r:f.w])
			f.r = 0
		} else {
			grown := make([]byte, 2*len(f.buf)+512)
			copy(grown, f.buf[:f.w])
			f.buf = grown
		}
	}
	return f.buf[f.w:]
}

// next decodes one message or control frame. ok is false when more bytes are needed.
// payload is valid until the next call of next or space.
func (f *frameReader) next() (op ws.OpCode, payload []byte, ok bool, err error) {
	for {
		h, n, err := parseHeader(f.buf[f.r:f.w])
		if err == errShort {
			return 0, nil, false, nil
		}
		if err == nil {
			err = f.check(h)
		}
		if err != nil {
			return 0, nil, false, err
		}
		if int64(f.w-f.r-n) < h.Length {
			return 0, nil, false, nil
		}
		start := f.r + n
		end := start + int(h.Length)
		f.r = end
		payload = f.buf[start:end:end]
		ws.Cipher(payload, h.Mask, 0)
		if h.OpCode.IsControl() {
			return h.OpCode, payload, true, nil
		}
		if op, payload, ok, err = f.join(h, payload); ok || err != nil {
			return op, payload, ok, err
		}
	}
}

// check applies the rules that a header alone can break.
func (f *frameReader) check(h ws.Header) error {
	state := ws.StateServerSide | ws.StateExtended
	if f.fragmented {
		state |= ws.StateFragmented
	}
	if err := ws.CheckHeader(h, state); err != nil {
		return protocolError(err.Error())
	}
	allowed := byte(0)
	if f.deflate && (h.OpCode == ws.OpText || h.OpCode == ws.OpBinary) {
		allowed = rsv1 >> 4
	}
	if h.Rsv&^allowed != 0 {
		return protocolError("reserved bits are set")
	}
	if h.OpCode.IsData() && h.Length > int64(f.max-len(f.parts)) {
		return errTooBig
	}
	return nil
}

// join puts fragments together; ok is true when the message is complete.
func (f *frameReader) join(h ws.Header, payload []byte) (ws.OpCode, []byte, bool, error) {
	if h.OpCode != ws.OpContinuation {
		f.op = h.OpCode
		f.compressed = h.Rsv != 0
	}
	if !h.Fin {
		f.fragmented = true
		f.parts = append(f.parts, payload...)
		return 0, nil, false, nil
	}
	if f.fragmented {
		payload = append(f.parts, payload...)
		f.parts, f.fragmented = nil, false
	}
	if f.compressed {
		var err error
		if payload, err = inflate(payload, f.max); err != nil {
			return 0, nil, false, err
		}
	}
	if f.op == ws.OpText && !utf8.Valid(payload) {
		return 0, nil, false, errBadUTF8
	}
	return f.op, payload, true, nil
}

// closeCode checks the payload of a close frame and returns the code to answer with, 0 for none.
func closeCode(payload []byte) (ws.StatusCode, error) {
	if len(payload) == 0 {
		return 0, nil
	}
	if len(payload) == 1 {
		return 0, protocolError("invalid close payload length")
	}
	code, reason := ws.ParseCloseFrameDataUnsafe(payload)
	if !validCloseCode(code) {
		return 0, protocolError("invalid close code")
	}
	if !utf8.ValidString(reason) {
		return 0, errBadUTF8
	}
	return code, nil
}

func validCloseCode(c ws.StatusCode) bool {
	return c >= 1000 && c <= 1014 && c != 1004 && c != 1005 && c != 1006 || c >= 3000 && c <= 4999
}
