package engineio

import (
	"encoding/base64"
	"unicode/utf8"
)

// Packet types of both protocols, as they stand on the wire.
const (
	packetOpen    = '0'
	packetClose   = '1'
	packetPing    = '2'
	packetPong    = '3'
	packetMessage = '4'
	packetUpgrade = '5'
	packetNoop    = '6'
)

// Packets without data that are sent again and again.
var (
	pingPacket  = packetOf(packetPing, "")
	pongPacket  = packetOf(packetPong, "")
	probePacket = packetOf(packetPong, "probe")
	noopPacket  = packetOf(packetNoop, "")
	closePacket = packetOf(packetClose, "")
)

// packet is one decoded packet of a client.
type packet struct {
	kind   byte
	binary bool
	data   []byte
}

// decodeText decodes a packet that came as text. ok is false for what Node's parser calls an
// error packet. A base64 packet of protocol 3 with an unknown type is a noop, as in Node.
func decodeText(b []byte, v3 bool) (p packet, ok bool) {
	if len(b) == 0 {
		return p, false
	}
	switch kind := b[0]; {
	case kind >= packetOpen && kind <= packetNoop:
		return packet{kind: kind, data: b[1:]}, true
	case kind != 'b':
		return p, false
	case !v3:
		return packet{kind: packetMessage, binary: true, data: decodeBase64(b[1:])}, true
	case len(b) < 2 || b[1] < packetOpen || b[1] > packetNoop:
		return packet{kind: packetNoop}, true
	default:
		return packet{kind: b[1], binary: true, data: decodeBase64(b[2:])}, true
	}
}

// decodeBinary decodes a packet that came as bytes: in protocol 4 always a message, in
// protocol 3 behind a type byte. An unknown type is a noop, as in Node.
func decodeBinary(b []byte, v3 bool) packet {
	if !v3 {
		return packet{kind: packetMessage, binary: true, data: b}
	}
	if len(b) == 0 || b[0] > packetNoop-'0' {
		return packet{kind: packetNoop}
	}
	return packet{kind: b[0] + '0', binary: true, data: b[1:]}
}

// decodeBase64 is as lenient as Node's Buffer: it accepts both alphabets and ignores anything else.
func decodeBase64(src []byte) []byte {
	dst := make([]byte, len(src)) // more than enough; the decoder wants room for padding that is not there
	if n, err := base64.StdEncoding.Decode(dst, src); err == nil {
		return dst[:n]
	}
	clean := make([]byte, 0, len(src))
	for _, c := range src {
		switch {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/':
			clean = append(clean, c)
		case c == '-':
			clean = append(clean, '+')
		case c == '_':
			clean = append(clean, '/')
		}
	}
	if len(clean)%4 == 1 { // six bits are no byte
		clean = clean[:len(clean)-1]
	}
	n, err := base64.RawStdEncoding.Decode(dst, clean)
	if err != nil { // cannot be: only characters of the alphabet are left
		return nil
	}
	return dst[:n]
}

// validText returns b as valid UTF-8, with U+FFFD in place of each maximal part of an invalid
// sequence, as Node's decoder does.
func validText(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	out := make([]byte, 0, len(b)+8)
	for len(b) > 0 {
		_, n := utf8.DecodeRune(b)
		if n > 1 || b[0] < utf8.RuneSelf {
			out = append(out, b[:n]...)
		} else {
			out = utf8.AppendRune(out, utf8.RuneError)
			n = invalidLen(b)
		}
		b = b[n:]
	}
	return out
}

// invalidLen returns the length of the invalid sequence at the start of b: the longest prefix of
// a well-formed one, at least one byte (Unicode, section 3.9, U+FFFD substitution of
// maximal subparts).
func invalidLen(b []byte) int {
	need, lo, hi := 0, byte(0x80), byte(0xbf)
	switch c := b[0]; {
	case c >= 0xc2 && c <= 0xdf:
		need = 1
	case c >= 0xe0 && c <= 0xef:
		need = 2
		if c == 0xe0 {
			lo = 0xa0
		} else if c == 0xed {
			hi = 0x9f
		}
	case c >= 0xf0 && c <= 0xf4:
		need = 3
		if c == 0xf0 {
			lo = 0x90
		} else if c == 0xf4 {
			hi = 0x8f
		}
	}
	n := 1
	for ; n <= need && n < len(b); n++ {
		if b[n] < lo || b[n] > hi {
			break
		}
		lo, hi = 0x80, 0xbf
	}
	return n
}
