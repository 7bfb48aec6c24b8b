package socketio

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// NewDecoder implements Parser.
func (MsgpackParser) NewDecoder(limits Limits) Decoder { return msgpackDecoder{limits} }

type msgpackDecoder struct{ limits Limits }

// Decode implements Decoder.
func (d msgpackDecoder) Decode(data []byte, binary bool, p *Packet) (bool, error) {
	if !binary {
		return false, fmt.Errorf("%w: text, where msgpack is spoken", ErrMalformed)
	}
	if err := UnmarshalMsgpack(data, d.limits, p); err != nil {
		return false, err
	}
	return true, d.check(p)
}

func (d msgpackDecoder) check(p *Packet) error {
	if p.Type > PacketConnectError || p.Namespace == "" || len(p.Namespace) > maxNamespaceName {
		return fmt.Errorf("%w: invalid packet type or namespace", ErrMalformed)
	}
	if p.Data == nil && p.Type != PacketConnect && p.Type != PacketDisconnect {
		return fmt.Errorf("%w: no payload", ErrMalformed)
	}
	p.Items = p.Items[:0]
	text := textDecoder{limits: d.limits}
	return text.payload(p.Data, p)
}

// UnmarshalMsgpack decodes what MarshalMsgpack wrote. It fills Items for arrays.
func UnmarshalMsgpack(data []byte, limits Limits, p *Packet) error {
	*p = Packet{Items: p.Items[:0]}
	src := bytes.NewReader(data)
	r := msgpackReader{dec: msgpack.NewDecoder(src), limits: limits, left: len(data)}
	n, err := r.dec.DecodeMapLen()
	if err != nil || n < 0 {
		return malformedMsgpack(err)
	}
	hasType := false
	for range n {
		name, err := r.text()
		if err != nil {
			return malformedMsgpack(err)
		}
		hasType = hasType || name == "type"
		if err := r.member(name, p); err != nil {
			return malformedMsgpack(err)
		}
	}
	if src.Len() > 0 || !hasType {
		return malformedMsgpack(nil)
	}
	p.Attachments = r.bin
	if len(p.Data) > 0 && p.Data[0] == '[' {
		p.Items, err = splitArray(p.Data, p.Items, maxOwnDepth)
	}
	return err
}

func malformedMsgpack(err error) error {
	if err == nil || errors.Is(err, ErrMalformed) {
		err = errors.Join(err, errors.New("no packet"))
	}
	if errors.Is(err, ErrTooManyAttachments) {
		return fmt.Errorf("%w: %w", ErrMalformed, ErrTooManyAttachments)
	}
	return fmt.Errorf("%w: msgpack: %w", ErrMalformed, err)
}

// msgpackReader turns msgpack into JSON with placeholders.
type msgpackReader struct {
	dec    *msgpack.Decoder
	limits Limits
	left   int // bytes of the input: no collection has more members
	out    []byte
	bin    [][]byte
}

func (r *msgpackReader) member(name string, p *Packet) error {
	switch name {
	case "type":
		t, err := r.dec.DecodeUint64()
		if err != nil || t > uint64(PacketConnectError) {
			return errors.Join(err, ErrMalformed)
		}
		p.Type = PacketType(t)
		return nil
	case "nsp":
		var err error
		p.Namespace, err = r.text()
		return err
	case "id":
		return r.id(p)
	case "data":
		return r.data(p)
	}
	return r.skip()
}

// skip reads a value that nobody wants. (The decoder's own Skip believes any length.)
func (r *msgpackReader) skip() error {
	other := msgpackReader{dec: r.dec, limits: r.limits, left: r.left}
	return other.value(r.limits.MaxDepth)
}

// bytes reads a string or a binary. The decoder's own methods would allocate whatever length the
// input claims.
func (r *msgpackReader) bytes() ([]byte, error) {
	n, err := r.dec.DecodeBytesLen()
	if err != nil || n < 0 || n > r.left {
		return nil, errors.Join(err, ErrMalformed)
	}
	b := make([]byte, n)
	return b, r.dec.ReadFull(b)
}

func (r *msgpackReader) text() (string, error) {
	code, err := r.dec.PeekCode()
	if err != nil || !msgpcode.IsString(code) {
		return "", errors.Join(err, ErrMalformed)
	}
	b, err := r.bytes()
	return string(b), err
}

func (r *msgpackReader) id(p *Packet) error {
	code, err := r.dec.PeekCode()
	if err != nil {
		return err
	}
	if code == msgpcode.Nil || msgpcode.IsExt(code) { // undefined
		return r.skip()
	}
	p.ID, err = r.dec.DecodeUint64()
	if err == nil && p.ID > MaxAckID {
		err = ErrMalformed
	}
	p.HasID = true
	return err
}

func (r *msgpackReader) data(p *Packet) error {
	code, err := r.dec.PeekCode()
	if err != nil {
		return err
	}
	r.out = r.out[:0]
	if err := r.value(r.limits.MaxDepth); err != nil {
		return err
	}
	if code == msgpcode.Nil || msgpcode.IsExt(code) {
		return nil // undefined
	}
	p.Data = r.out
	return nil
}

func (r *msgpackReader) value(depth int) error {
	code, err := r.dec.PeekCode()
	if err != nil {
		return err
	}
	switch {
	case code == msgpcode.Nil:
		r.out = append(r.out, "null"...)
		return r.dec.DecodeNil()
	case code == msgpcode.True || code == msgpcode.False:
		v, err := r.dec.DecodeBool()
		r.out = strconv.AppendBool(r.out, v)
		return err
	case msgpcode.IsString(code):
		s, err := r.text()
		r.out = appendJSONString(r.out, s)
		return err
	case msgpcode.IsBin(code):
		return r.binary()
	case msgpcode.IsFixedArray(code), code == msgpcode.Array16, code == msgpcode.Array32:
		return r.array(depth - 1)
	case msgpcode.IsFixedMap(code), code == msgpcode.Map16, code == msgpcode.Map32:
		return r.object(depth - 1)
	case msgpcode.IsExt(code):
		return r.ext()
	}
	return r.number(code)
}

func (r *msgpackReader) number(code byte) error {
	switch code {
	case msgpcode.Float, msgpcode.Double:
		f, err := r.dec.DecodeFloat64()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			r.out = append(r.out, "null"...) // as JSON.stringify
			return err
		}
		r.out = strconv.AppendFloat(r.out, f, 'g', -1, 64)
		return err
	case msgpcode.Uint64:
		u, err := r.dec.DecodeUint64()
		r.out = strconv.AppendUint(r.out, u, 10)
		return err
	}
	i, err := r.dec.DecodeInt64() // an unknown code is its error
	r.out = strconv.AppendInt(r.out, i, 10)
	return err
}

func (r *msgpackReader) binary() error {
	if len(r.bin) >= r.limits.MaxAttachments {
		return ErrTooManyAttachments
	}
	b, err := r.bytes()
	r.out = appendPlaceholder(r.out, len(r.bin))
	r.bin = append(r.bin, b)
	return err
}

func (r *msgpackReader) array(depth int) error {
	n, err := r.dec.DecodeArrayLen()
	if err != nil || depth < 0 || n > r.left {
		return errors.Join(err, ErrMalformed)
	}
	r.out = append(r.out, '[')
	for i := range n {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		if err := r.value(depth); err != nil {
			return err
		}
	}
	r.out = append(r.out, ']')
	return nil
}

func (r *msgpackReader) object(depth int) error {
	n, err := r.dec.DecodeMapLen()
	if err != nil || depth < 0 || n > r.left {
		return errors.Join(err, ErrMalformed)
	}
	r.out = append(r.out, '{')
	for i := range n {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		name, err := r.text()
		if err != nil {
			return err
		}
		r.out = append(appendJSONString(r.out, name), ':')
		if err := r.value(depth); err != nil {
			return err
		}
	}
	r.out = append(r.out, '}')
	return nil
}

// ext reads what notepack.io makes of undefined (one byte) and Date (milliseconds, type 0), and
// msgpack's own timestamps; anything else is null.
func (r *msgpackReader) ext() error {
	id, n, err := r.dec.DecodeExtHeader()
	if err != nil {
		return err
	}
	if n < 0 || n > r.left {
		return ErrMalformed
	}
	b := make([]byte, n)
	if err := r.dec.ReadFull(b); err != nil {
		return err
	}
	switch {
	case id == 0 && n == 8:
		var ms int64
		for _, c := range b {
			ms = ms<<8 | int64(c)
		}
		r.date(time.UnixMilli(ms))
	case id == -1 && n == 4:
		r.date(time.Unix(int64(b[0])<<24|int64(b[1])<<16|int64(b[2])<<8|int64(b[3]), 0))
	default:
		r.out = append(r.out, "null"...)
	}
	return nil
}

func (r *msgpackReader) date(t time.Time) {
	r.out = append(r.out, '"')
	r.out = t.UTC().AppendFormat(r.out, "2006-01-02T15:04:05.000Z")
	r.out = append(r.out, '"')
}
