package socketio

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	"xabar/gateway/engineio"
)

// encoder writes the payload of events and acknowledgements: a JSON array, with the binaries
// beside it.
type encoder struct {
	buf  bytes.Buffer
	json *json.Encoder
	bin  [][]byte
	max  int // attachments

	packet Packet              // what the payload goes out in
	msgs   []*engineio.Message // its messages
}

var encoders = sync.Pool{New: func() any {
	e := new(encoder)
	e.json = json.NewEncoder(&e.buf)
	e.json.SetEscapeHTML(false) // as JSON.stringify
	return e
}}

// maxPooledBuffer is how large a buffer may be to be kept.
const maxPooledBuffer = 64 << 10

func getEncoder(maxAttachments int) *encoder {
	e := encoders.Get().(*encoder)
	e.max = maxAttachments
	return e
}

// release gives the encoder back: what it wrote is no longer valid.
func (e *encoder) release() {
	if e.buf.Cap() > maxPooledBuffer {
		return
	}
	e.buf.Reset()
	e.bin = nil
	e.packet = Packet{}
	clear(e.msgs)
	e.msgs = e.msgs[:0]
	encoders.Put(e)
}

// encodePayload writes an event's payload to memory of its own.
func encodePayload(event string, args []any, maxAttachments int) ([]byte, [][]byte, error) {
	e := getEncoder(maxAttachments)
	defer e.release()
	if err := e.event(event, args); err != nil {
		return nil, nil, err
	}
	for i := range e.bin {
		e.bin[i] = bytes.Clone(e.bin[i]) // the caller may go on using his
	}
	return bytes.Clone(e.buf.Bytes()), e.bin, nil
}

// encodeArgs writes values as a client's would be read.
func encodeArgs(args []any, maxAttachments int) (Args, error) {
	e := getEncoder(maxAttachments)
	defer e.release()
	if err := e.array(args); err != nil {
		return Args{}, err
	}
	items, err := splitArray(bytes.Clone(e.buf.Bytes()), nil, maxOwnDepth)
	return Args{list: items, bin: e.bin}, err
}

func marshalNoEscape(v any) ([]byte, error) {
	e := getEncoder(0)
	defer e.release()
	if err := e.json.Encode(v); err != nil {
		return nil, err
	}
	return bytes.Clone(bytes.TrimSuffix(e.buf.Bytes(), []byte("\n"))), nil
}

func (e *encoder) event(event string, args []any) error {
	e.buf.WriteByte('[')
	e.string(event)
	for _, a := range args {
		e.buf.WriteByte(',')
		if err := e.value(a); err != nil {
			return err
		}
	}
	e.buf.WriteByte(']')
	return nil
}

func (e *encoder) array(args []any) error {
	e.buf.WriteByte('[')
	for i, a := range args {
		if i > 0 {
			e.buf.WriteByte(',')
		}
		if err := e.value(a); err != nil {
			return err
		}
	}
	e.buf.WriteByte(']')
	return nil
}

func (e *encoder) value(v any) error {
	switch v := v.(type) {
	case nil:
		e.buf.WriteString("null")
	case string:
		e.string(v)
	case bool:
		e.buf.Write(strconv.AppendBool(e.buf.AvailableBuffer(), v))
	case int:
		e.buf.Write(strconv.AppendInt(e.buf.AvailableBuffer(), int64(v), 10))
	case int64:
		e.buf.Write(strconv.AppendInt(e.buf.AvailableBuffer(), v, 10))
	case json.RawMessage:
		e.raw(v)
	case []byte:
		return e.attach(v)
	case Binary:
		return e.attach(v)
	case Arg:
		return e.arg(v)
	case Args:
		return e.array(v.Values())
	case map[string]any, []any:
		return e.marshal(withBinaries(v))
	default:
		return e.marshal(v)
	}
	return nil
}

func (e *encoder) string(s string) {
	e.buf.Write(appendJSONString(e.buf.AvailableBuffer(), s))
}

func (e *encoder) raw(v json.RawMessage) {
	if len(v) == 0 {
		e.buf.WriteString("null")
		return
	}
	e.buf.Write(v)
}

func (e *encoder) attach(b []byte) error {
	if len(e.bin) >= e.max {
		return ErrTooManyAttachments
	}
	e.buf.Write(appendPlaceholder(e.buf.AvailableBuffer(), len(e.bin)))
	e.bin = append(e.bin, b)
	return nil
}

// arg writes an argument that came from a client, with its binaries numbered anew.
func (e *encoder) arg(a Arg) error {
	if len(a.bin) == 0 {
		e.raw(a.raw)
		return nil
	}
	raw, err := replacePlaceholders(a.Raw(), func(out []byte, num int) ([]byte, error) {
		if num >= len(a.bin) {
			return nil, ErrMalformed
		}
		if len(e.bin) >= e.max {
			return nil, ErrTooManyAttachments
		}
		e.bin = append(e.bin, a.bin[num])
		return appendPlaceholder(out, len(e.bin)-1), nil
	})
	if err == nil {
		e.buf.Write(raw)
	}
	return err
}

// marshal writes any value by encoding/json and takes the binaries out of the result.
func (e *encoder) marshal(v any) error {
	start := e.buf.Len()
	if err := e.json.Encode(v); err != nil {
		return err
	}
	e.buf.Truncate(e.buf.Len() - 1) // the newline that Encode adds
	out := e.buf.Bytes()[start:]
	if !bytes.Contains(out, []byte(binaryMark)) {
		return nil
	}
	rest := bytes.Clone(out)
	e.buf.Truncate(start)
	for {
		before, after, found := bytes.Cut(rest, []byte(binaryMark))
		e.buf.Write(before)
		if !found {
			return nil
		}
		text, tail, _ := bytes.Cut(after, []byte(`"}`))
		b, err := base64.StdEncoding.AppendDecode(nil, text)
		if err != nil {
			return err
		}
		if err := e.attach(b); err != nil {
			return err
		}
		rest = tail
	}
}

// withBinaries copies maps and slices that hold []byte so that these become Binary.
func withBinaries(v any) any {
	if !holdsBytes(v) {
		return v
	}
	switch v := v.(type) {
	case []byte:
		return Binary(v)
	case []any:
		c := slices.Clone(v)
		for i := range c {
			c[i] = withBinaries(c[i])
		}
		return c
	case map[string]any:
		c := make(map[string]any, len(v))
		for k, x := range v {
			c[k] = withBinaries(x)
		}
		return c
	}
	return v
}

func holdsBytes(v any) bool {
	switch v := v.(type) {
	case []byte:
		return true
	case []any:
		return slices.ContainsFunc(v, holdsBytes)
	case map[string]any:
		for _, x := range v {
			if holdsBytes(x) {
				return true
			}
		}
	}
	return false
}

const hexDigits = "0123456789abcdef"

// appendJSONString appends s as a JSON string; what is no UTF-8 becomes U+FFFD.
func appendJSONString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(b, s[start:i]...)
				b = append(b, "\uFFFD"...)
				start = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		b = appendEscape(b, c)
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
