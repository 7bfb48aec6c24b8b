package socketio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"xabar/gateway/engineio"
)

// TextParser is the default parser of Socket.IO: one text message per packet, and one binary
// message per attachment behind it (protocol 5, "Packet encoding").
type TextParser struct{}

// scratch is where packets are put together: a message copies them.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// Encode implements Parser.
func (TextParser) Encode(dst []*engineio.Message, p *Packet) ([]*engineio.Message, error) {
	text := scratch.Get().(*[]byte)
	*text = append(appendHeader((*text)[:0], p), p.Data...)
	dst = append(dst, engineio.NewMessage(*text))
	if cap(*text) <= maxPooledBuffer {
		scratch.Put(text)
	}
	for _, b := range p.Attachments {
		dst = append(dst, engineio.NewBinaryMessage(b))
	}
	return dst, nil
}

// appendHeader appends all of a packet's text but the payload.
func appendHeader(b []byte, p *Packet) []byte {
	t := p.Type
	if len(p.Attachments) > 0 {
		t += PacketBinaryEvent - PacketEvent
	}
	b = append(b, '0'+byte(t))
	if len(p.Attachments) > 0 {
		b = strconv.AppendInt(b, int64(len(p.Attachments)), 10)
		b = append(b, '-')
	}
	if p.Namespace != "/" {
		b = append(b, p.Namespace...)
		b = append(b, ',')
	}
	if p.HasID {
		b = strconv.AppendUint(b, p.ID, 10)
	}
	return b
}

// NewDecoder implements Parser.
func (TextParser) NewDecoder(limits Limits) Decoder { return &textDecoder{limits: limits} }

type textDecoder struct {
	limits    Limits
	namespace string         // the last one that was not "/", to make its string once
	pending   *pendingPacket // waits for attachments
}

type pendingPacket struct {
	packet Packet
	want   int
	bytes  int // of the attachments that are there
}

// Decode implements Decoder.
func (d *textDecoder) Decode(data []byte, binary bool, p *Packet) (bool, error) {
	if binary {
		return d.attachment(data, p)
	}
	if d.pending != nil {
		return false, fmt.Errorf("%w: text while attachments are missing", ErrMalformed)
	}
	if !utf8.Valid(data) {
		data = toValidUTF8(data)
	}
	want, err := d.text(data, p)
	if err != nil || want == 0 {
		return err == nil, err
	}
	// the attachments come in later messages, when data is gone
	kept := Packet{Type: p.Type, Namespace: p.Namespace, ID: p.ID, HasID: p.HasID, Data: bytes.Clone(p.Data)}
	if kept.Items, err = splitArray(kept.Data, nil, d.limits.MaxDepth); err != nil {
		return false, err
	}
	d.pending = &pendingPacket{packet: kept, want: want}
	return false, nil
}

// toValidUTF8 makes every byte that is no UTF-8 U+FFFD, as Node's Buffer does.
func toValidUTF8(data []byte) []byte {
	return []byte(string([]rune(string(data))))
}

func (d *textDecoder) attachment(data []byte, p *Packet) (bool, error) {
	if d.pending == nil {
		return false, fmt.Errorf("%w: a binary that no packet has announced", ErrMalformed)
	}
	w := d.pending
	if w.bytes += len(data); d.limits.MaxAttachmentBytes > 0 && w.bytes > d.limits.MaxAttachmentBytes {
		return false, fmt.Errorf("%w: %w", ErrMalformed, ErrAttachmentsTooLarge)
	}
	w.packet.Attachments = append(w.packet.Attachments, bytes.Clone(data))
	if len(w.packet.Attachments) < w.want {
		return false, nil
	}
	d.pending = nil
	if err := checkPlaceholders(w.packet.Data, w.want); err != nil {
		return false, err
	}
	*p = w.packet
	return true, nil
}

// text decodes a packet's text and returns how many attachments follow.
func (d *textDecoder) text(data []byte, p *Packet) (want int, err error) {
	if len(data) == 0 || data[0] < '0' || data[0] > '6' {
		return 0, fmt.Errorf("%w: unknown packet type", ErrMalformed)
	}
	*p = Packet{Type: PacketType(data[0] - '0'), Namespace: "/", Items: p.Items[:0]}
	data = data[1:]
	if p.Type == PacketBinaryEvent || p.Type == PacketBinaryAck {
		p.Type -= PacketBinaryEvent - PacketEvent
		if want, data, err = d.attachments(data); err != nil {
			return 0, err
		}
	}
	if data, err = d.nsp(data, p); err != nil {
		return 0, err
	}
	if data, err = ackID(data, p); err != nil {
		return 0, err
	}
	return want, d.payload(data, p)
}

func (d *textDecoder) attachments(data []byte) (int, []byte, error) {
	digits, rest, found := bytes.Cut(data, []byte("-"))
	n, err := strconv.ParseUint(string(digits[:min(len(digits), 20)]), 10, 32)
	switch {
	case !found || err == nil && n == 0: // no encoder announces none
		return 0, nil, fmt.Errorf("%w: illegal attachments", ErrMalformed)
	case err != nil && isNumber(digits), err == nil && n > uint64(d.limits.MaxAttachments):
		return 0, nil, fmt.Errorf("%w: %w", ErrMalformed, ErrTooManyAttachments)
	case err != nil:
		return 0, nil, fmt.Errorf("%w: illegal attachments", ErrMalformed)
	}
	return int(n), rest, nil
}

func isNumber(digits []byte) bool {
	for _, c := range digits {
		if !isDigit(c) {
			return false
		}
	}
	return len(digits) > 0
}

func (d *textDecoder) nsp(data []byte, p *Packet) ([]byte, error) {
	if len(data) == 0 || data[0] != '/' {
		return data, nil
	}
	name, rest, _ := bytes.Cut(data, []byte(","))
	if len(name) > maxNamespaceName {
		return nil, fmt.Errorf("%w: namespace name of %d bytes", ErrMalformed, len(name))
	}
	if len(name) == 1 {
		return rest, nil
	}
	if string(name) != d.namespace {
		d.namespace = string(name)
	}
	p.Namespace = d.namespace
	return rest, nil
}

func ackID(data []byte, p *Packet) ([]byte, error) {
	n := 0
	for n < len(data) && isDigit(data[n]) {
		n++
	}
	if n == 0 {
		return data, nil
	}
	id, err := strconv.ParseUint(string(data[:min(n, 32)]), 10, 64)
	if err != nil || id > MaxAckID {
		return nil, fmt.Errorf("%w: acknowledgement id out of range", ErrMalformed)
	}
	p.ID, p.HasID = id, true
	return data[n:], nil
}

func (d *textDecoder) payload(data []byte, p *Packet) (err error) {
	if len(data) == 0 {
		return nil // as in Node, which does not miss it: an event without payload is nobody's
	}
	p.Data = data
	switch p.Type {
	case PacketEvent:
		if p.Items, err = splitArray(data, p.Items, d.limits.MaxDepth); err == nil {
			err = checkEventName(p.Items)
		}
		return err
	case PacketAck:
		p.Items, err = splitArray(data, p.Items, d.limits.MaxDepth)
		return err
	case PacketConnect:
		return d.startsWith(data, "{")
	case PacketConnectError:
		return d.startsWith(data, "{\"")
	}
	return fmt.Errorf("%w: payload in a DISCONNECT", ErrMalformed)
}

// startsWith checks that data is JSON whose first byte is one of first.
func (d *textDecoder) startsWith(data []byte, first string) error {
	if err := checkValue(data, d.limits.MaxDepth); err != nil {
		return err
	}
	if !strings.Contains(first, string(bytes.TrimLeft(data, " \t\r\n")[:1])) {
		return fmt.Errorf("%w: payload of the wrong type", ErrMalformed)
	}
	return nil
}

func checkEventName(items []json.RawMessage) error {
	if len(items) == 0 {
		return fmt.Errorf("%w: event without name", ErrMalformed)
	}
	switch raw := items[0]; {
	case raw[0] == '-' || isDigit(raw[0]):
		return nil
	case raw[0] != '"':
		return fmt.Errorf("%w: event name is no string", ErrMalformed)
	case isReservedName(raw):
		return fmt.Errorf("%w: reserved event name", ErrMalformed)
	}
	return nil
}

// isReservedName is isReservedEvent for a JSON string.
func isReservedName(raw []byte) bool {
	if bytes.IndexByte(raw, '\\') >= 0 {
		return isReservedEvent(plainString(raw))
	}
	if len(raw) > 32 {
		return false // longer than any of them, and not worth a string
	}
	return isReservedEvent(string(raw[1 : len(raw)-1]))
}

// eventName is the text of an event's name.
func eventName(raw []byte) string {
	if raw[0] != '"' {
		return string(raw)
	}
	return plainString(raw)
}

// isReservedEvent says that a name is one of the protocol's own.
func isReservedEvent(name string) bool {
	switch name {
	case "connect", "connect_error", "disconnect", "disconnecting", "newListener", "removeListener":
		return true
	}
	return false
}
