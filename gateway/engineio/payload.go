package engineio

import (
	"bytes"
	"errors"
	"strconv"
	"unicode/utf8"
)

// separator stands between the packets of a polling body in protocol 4.
const separator = '\x1e'

// errPayload: a polling body could not be decoded.
var errPayload = errors.New("engineio: parser error")

// errTooManyPackets: a polling body holds more packets than Options.MaxPackets.
var errTooManyPackets = errors.New("engineio: too many packets in a payload")

// errStop is returned by the function given to a decoder to end it.
var errStop = errors.New("stop")

// decodePayload calls f for each packet of a text body of protocol 4, in order, until f fails
// or max packets were handed over.
func decodePayload(body []byte, max int, f func(packet) error) error {
	for n := 0; ; n++ {
		if n == max {
			return errTooManyPackets
		}
		part, rest, more := bytes.Cut(body, []byte{separator})
		p, ok := decodeText(part, false)
		if !ok {
			return errPayload
		}
		if err := f(p); err != nil || !more {
			return err
		}
		body = rest
	}
}

// decodePayloadV3 does the same for a text body of protocol 3: packets behind their length in
// UTF-16 code units and a colon.
func decodePayloadV3(body []byte, max int, f func(packet) error) error {
	if len(body) == 0 {
		return errPayload
	}
	for n := 0; len(body) > 0; n++ {
		if n == max {
			return errTooManyPackets
		}
		digits, rest, found := bytes.Cut(body, []byte{':'})
		units, ok := parseLength(digits)
		if !found || !ok {
			return errPayload
		}
		size, ok := utf16Prefix(rest, units)
		if !ok {
			return errPayload
		}
		if size > 0 {
			p, ok := decodeText(rest[:size], true)
			if !ok {
				return errPayload
			}
			if err := f(p); err != nil {
				return err
			}
		}
		body = rest[size:]
	}
	return nil
}

// decodePayloadBinaryV3 does the same for a binary body of protocol 3: a byte for text or
// binary, the decimal digits of the length as bytes 0 to 9, 255, the packet.
func decodePayloadBinaryV3(body []byte, max int, f func(packet) error) error {
	for n := 0; len(body) > 0; n++ {
		if n == max {
			return errTooManyPackets
		}
		isText := body[0] == 0
		head, rest, found := bytes.Cut(body[1:], []byte{255})
		size, ok := parseLengthBytes(head)
		if !found || !ok || size > len(rest) {
			return errPayload
		}
		p, ok := decodeEither(isText, rest[:size])
		if !ok {
			return errPayload
		}
		if err := f(p); err != nil {
			return err
		}
		body = rest[size:]
	}
	return nil
}

func decodeEither(isText bool, data []byte) (packet, bool) {
	if isText {
		return decodeText(validText(data), true)
	}
	return decodeBinary(data, true), true
}

// maxDigits of a length: more than any body may have.
const maxDigits = 10

func parseLength(digits []byte) (int, bool) {
	if len(digits) == 0 || len(digits) > maxDigits {
		return 0, false
	}
	n := 0
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

func parseLengthBytes(digits []byte) (int, bool) {
	if len(digits) == 0 || len(digits) > maxDigits {
		return 0, false
	}
	n := 0
	for _, c := range digits {
		if c > 9 {
			return 0, false
		}
		n = n*10 + int(c)
	}
	return n, true
}

// utf16Prefix returns how many bytes of the valid UTF-8 text b hold its first n UTF-16 code units.
func utf16Prefix(b []byte, n int) (int, bool) {
	size := 0
	for n > 0 {
		if size == len(b) {
			return 0, false
		}
		if b[size] < utf8.RuneSelf {
			size++
			n--
			continue
		}
		r, l := utf8.DecodeRune(b[size:])
		size += l
		n--
		if r > 0xffff {
			n--
		}
	}
	return size, n == 0
}

func utf16Len(b []byte) int {
	n := 0
	for len(b) > 0 {
		r, l := utf8.DecodeRune(b)
		b = b[l:]
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

// encodePayload makes a polling body of protocol 4.
func encodePayload(dst []byte, msgs []*Message) []byte {
	for i, m := range msgs {
		if i > 0 {
			dst = append(dst, separator)
		}
		if m.binary {
			dst = append(dst, m.base64Text(false)...)
		} else {
			dst = append(dst, m.payload()...)
		}
	}
	return dst
}

// encodePayloadV3 makes a polling body of protocol 3; binary tells that it is to be sent as
// bytes, which it is if the client takes them and there are any.
func encodePayloadV3(dst []byte, msgs []*Message, supportsBinary bool) (body []byte, binary bool) {
	if supportsBinary {
		for _, m := range msgs {
			if m.binary {
				return encodePayloadBinaryV3(dst, msgs), true
			}
		}
	}
	for _, m := range msgs {
		text := m.payload()
		if m.binary {
			text = m.base64Text(true)
		}
		dst = strconv.AppendInt(dst, int64(utf16Len(text)), 10)
		dst = append(dst, ':')
		dst = append(dst, text...)
	}
	return dst, false
}

func encodePayloadBinaryV3(dst []byte, msgs []*Message) []byte {
	for _, m := range msgs {
		data := m.payload()
		size := len(data)
		if m.binary {
			dst = append(dst, 1)
			size++
		} else {
			dst = append(dst, 0)
		}
		for _, c := range strconv.Itoa(size) {
			dst = append(dst, byte(c-'0'))
		}
		dst = append(dst, 255)
		if m.binary {
			dst = append(dst, packetMessage-'0')
		}
		dst = append(dst, data...)
	}
	return dst
}
