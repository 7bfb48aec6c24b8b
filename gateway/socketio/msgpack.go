package socketio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/vmihailenco/msgpack/v5"

	"xabar/gateway/engineio"
)

// MsgpackParser is the parser of the npm package socket.io-msgpack-parser: each packet is one
// binary message. Clients must be given the same parser.
type MsgpackParser struct{}

// Encode implements Parser.
func (MsgpackParser) Encode(dst []*engineio.Message, p *Packet) ([]*engineio.Message, error) {
	b, err := MarshalMsgpack(p)
	if err != nil {
		return dst, err
	}
	return append(dst, engineio.NewBinaryMessage(b)), nil
}

// MarshalMsgpack encodes a packet as {type, data, id, nsp} with binaries in their places, as
// MsgpackParser sends it and as Node's Redis adapter does.
func MarshalMsgpack(p *Packet) ([]byte, error) {
	var buf bytes.Buffer
	w := &msgpackWriter{enc: msgpack.NewEncoder(&buf), bin: p.Attachments}
	w.enc.UseCompactInts(true)
	n := 2
	if p.Data != nil {
		n++
	}
	if p.HasID {
		n++
	}
	err := errors.Join(
		w.enc.EncodeMapLen(n),
		w.enc.EncodeString("type"), w.enc.EncodeUint(uint64(p.Type)),
		w.enc.EncodeString("nsp"), w.enc.EncodeString(p.Namespace))
	if p.HasID {
		err = errors.Join(err, w.enc.EncodeString("id"), w.enc.EncodeUint(p.ID))
	}
	if p.Data != nil {
		err = errors.Join(err, w.enc.EncodeString("data"), w.json(p.Data))
	}
	if err != nil {
		return nil, fmt.Errorf("socketio: encode msgpack: %w", err)
	}
	return buf.Bytes(), nil
}

// MarshalMsgpackValue encodes JSON with placeholders as one msgpack value.
func MarshalMsgpackValue(raw json.RawMessage, attachments [][]byte) ([]byte, error) {
	var buf bytes.Buffer
	w := &msgpackWriter{enc: msgpack.NewEncoder(&buf), bin: attachments}
	w.enc.UseCompactInts(true)
	err := w.json(raw)
	return buf.Bytes(), err
}

type msgpackWriter struct {
	enc *msgpack.Encoder
	bin [][]byte
}

func (w *msgpackWriter) json(raw json.RawMessage) error {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return w.enc.EncodeNil()
	}
	switch raw[0] {
	case '[':
		return w.array(raw)
	case '{':
		return w.object(raw)
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		return w.enc.EncodeString(s)
	case 't', 'f':
		return w.enc.EncodeBool(raw[0] == 't')
	case 'n':
		return w.enc.EncodeNil()
	}
	return w.number(string(raw))
}

func (w *msgpackWriter) array(raw json.RawMessage) error {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return err
	}
	if err := w.enc.EncodeArrayLen(len(items)); err != nil {
		return err
	}
	for _, item := range items {
		if err := w.json(item); err != nil {
			return err
		}
	}
	return nil
}

func (w *msgpackWriter) object(raw json.RawMessage) error {
	if len(w.bin) > 0 {
		if num, ok := placeholderNum(bytes.TrimRight(raw, " \t\r\n")); ok && num < len(w.bin) {
			return w.enc.EncodeBytes(w.bin[num])
		}
	}
	// a decoder, as a map would lose the order of the members
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return err
	}
	var names []string
	var values []json.RawMessage
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return err
		}
		names, values = append(names, name.(string)), append(values, v)
	}
	if err := w.enc.EncodeMapLen(len(names)); err != nil {
		return err
	}
	for i, name := range names {
		if err := errors.Join(w.enc.EncodeString(name), w.json(values[i])); err != nil {
			return err
		}
	}
	return nil
}

func (w *msgpackWriter) number(s string) error {
	s = strings.TrimRight(s, " \t\r\n")
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return w.enc.EncodeInt(i)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return err
	}
	return w.enc.EncodeFloat64(f)
}
