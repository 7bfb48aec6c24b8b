package engineio

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gobwas/ws"
)

func FuzzDecodePacket(f *testing.F) {
	for _, s := range []string{"", "4hello", "2probe", "b", "bAQIDBA==", "b4AQI", "b!A?", "7", "é", "4\xff"} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, v3 bool) {
		if p, ok := decodeText(b, v3); ok && (p.kind < packetOpen || p.kind > packetNoop || len(p.data) > len(b)) {
			t.Errorf("text %q: %c %q", b, p.kind, p.data)
		}
		if p := decodeBinary(b, v3); p.kind < packetOpen || p.kind > packetNoop || len(p.data) > len(b) {
			t.Errorf("binary %q: %c %q", b, p.kind, p.data)
		}
		text := validText(bytes.Clone(b))
		if !utf8.Valid(text) || utf8.Valid(b) && !bytes.Equal(text, b) {
			t.Errorf("validText(%q) = %q", b, text)
		}
	})
}

// fuzzPayload checks what a decoder hands over: at most max packets, of no more bytes than came.
func fuzzPayload(t *testing.T, body []byte, decode func([]byte, int, func(packet) error) error) {
	const max = 50
	packets, size := 0, 0
	err := decode(body, max, func(p packet) error {
		packets++
		size += len(p.data)
		return nil
	})
	if packets > max || size > 3*len(body) { // a byte that is no UTF-8 becomes three
		t.Errorf("%d packets of %d bytes out of %d", packets, size, len(body))
	}
	if err == errStop {
		t.Error("stopped by itself")
	}
}

func FuzzPayloadV4(f *testing.F) {
	for _, s := range []string{"4a", "4a\x1e4b", "\x1e", "4a\x1ebAQID\x1e2", strings.Repeat("6\x1e", 60)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzzPayload(t, validText(b), decodePayload)
		// Texts that a decoder takes come out of the encoder as they went in.
		var msgs []*Message
		plain := true
		err := decodePayload(validText(b), 50, func(p packet) error {
			plain = plain && p.kind == packetMessage && !p.binary
			msgs = append(msgs, NewMessage(p.data))
			return nil
		})
		if err == nil && plain {
			if got := encodePayload(nil, msgs); !bytes.Equal(got, validText(b)) {
				t.Errorf("%q became %q", b, got)
			}
		}
	})
}

func FuzzPayloadV3(f *testing.F) {
	for _, s := range []string{"6:4hello", "3:4😀1:2", "0:", "10:b4AQIDBA==", ":", "99:4", "\x00\x02\xff4a\x01\x02\xff\x04\x01", "\x00\xff", "\x01\x09\x09\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzzPayload(t, validText(b), decodePayloadV3)
		fuzzPayload(t, b, decodePayloadBinaryV3)
	})
}

func FuzzJSONP(f *testing.F) {
	for _, s := range []string{"d=4%3A4a%5Cnb", "d=", "x", "d=%"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if data, ok := unwrapJSONP(b); ok && len(data) > len(b) {
			t.Errorf("%q became %q", b, data)
		}
	})
}

// FuzzFrameReader feeds the same bytes in one piece and byte by byte: the outcome must be the same,
// and nothing may grow beyond the limit.
func FuzzFrameReader(f *testing.F) {
	for _, frames := range [][]byte{
		clientFrame(ws.OpText, []byte("4hello"), true),
		join(clientFrame(ws.OpText, []byte("4a"), false), clientFrame(ws.OpPing, nil, true), clientFrame(ws.OpContinuation, []byte("b"), true)),
		clientFrame(ws.OpBinary, make([]byte, 200), true),
		clientFrame(ws.OpClose, []byte("\x03\xe8bye"), true),
		deflatedFrame(ws.OpText, deflate([]byte(strings.Repeat("a", 200))), true),
		{0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4},
		{0x81, 0xfe, 0, 1, 1, 2, 3, 4, 5},
	} {
		f.Add(frames, false)
		f.Add(frames, true)
	}
	f.Fuzz(func(t *testing.T, stream []byte, deflated bool) {
		const max = 1000
		whole, err := decodeStream(bytes.Clone(stream), len(stream)+1, max, deflated)
		single, err1 := decodeStream(bytes.Clone(stream), 1, max, deflated)
		if strings.Join(whole, "|") != strings.Join(single, "|") || (err == nil) != (err1 == nil) {
			t.Errorf("%q: %q, %v and %q, %v", stream, whole, err, single, err1)
		}
		for _, m := range whole {
			if len(m) > max+2 {
				t.Errorf("a message of %d bytes", len(m)-2)
			}
		}
		_, _ = closeCode(stream)
	})
}
