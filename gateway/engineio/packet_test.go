package engineio

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestDecodeText(t *testing.T) {
	for _, c := range []struct {
		in     string
		v3     bool
		kind   byte
		data   string
		binary bool
		ok     bool
	}{
		{"4hello", false, packetMessage, "hello", false, true},
		{"4", false, packetMessage, "", false, true},
		{"2probe", false, packetPing, "probe", false, true},
		{"6", true, packetNoop, "", false, true},
		{"bAQIDBA==", false, packetMessage, "\x01\x02\x03\x04", true, true},
		{"b4AQIDBA==", true, packetMessage, "\x01\x02\x03\x04", true, true},
		{"b", false, packetMessage, "", true, true},
		{"b", true, packetNoop, "", false, true},
		{"b9AQID", true, packetNoop, "", false, true},
		{"", false, 0, "", false, false},
		{"", true, 0, "", false, false},
		{"7", false, 0, "", false, false},
		{"abc", false, 0, "", false, false},
		{"é", true, 0, "", false, false},
	} {
		p, ok := decodeText([]byte(c.in), c.v3)
		if ok != c.ok || ok && (p.kind != c.kind || string(p.data) != c.data || p.binary != c.binary) {
			t.Errorf("decodeText(%q, v3=%v) = %c %q %v, %v", c.in, c.v3, p.kind, p.data, p.binary, ok)
		}
	}
}

func TestDecodeBinary(t *testing.T) {
	for _, c := range []struct {
		in   string
		v3   bool
		kind byte
		data string
	}{
		{"\x01\x02", false, packetMessage, "\x01\x02"},
		{"", false, packetMessage, ""},
		{"\x04\x01\x02", true, packetMessage, "\x01\x02"},
		{"\x02", true, packetPing, ""},
		{"\x07x", true, packetNoop, ""},
		{"", true, packetNoop, ""},
	} {
		if p := decodeBinary([]byte(c.in), c.v3); p.kind != c.kind || string(p.data) != c.data {
			t.Errorf("decodeBinary(%q, v3=%v) = %c %q", c.in, c.v3, p.kind, p.data)
		}
	}
}

func TestDecodeBase64IsLenientLikeNode(t *testing.T) {
	for in, want := range map[string]string{
		"AQIDBA==":     "\x01\x02\x03\x04",
		"AQIDBA":       "\x01\x02\x03\x04",
		"AQ ID\nBA==":  "\x01\x02\x03\x04",
		"-_8=":         "\xfb\xff",
		"+/8":          "\xfb\xff",
		"A":            "",
		"AQIDB":        "\x01\x02\x03",
		"!!!":          "",
		"A!Q!I!D!B!A!": "\x01\x02\x03\x04",
	} {
		if got := decodeBase64([]byte(in)); string(got) != want {
			t.Errorf("decodeBase64(%q) = %q, want %q", in, got, want)
		}
	}
}

// The expected texts are what Node's Buffer.toString("utf8") makes of the bytes.
func TestValidText(t *testing.T) {
	const r = "\uFFFD"
	for in, want := range map[string]string{
		"plain é 😀":        "plain é 😀",
		"a\xffb":           "a" + r + "b",
		"\xe2\x82":         r,
		"\xe2\x82x":        r + "x",
		"\xf0\x9f\x98":     r,
		"\xf0\x9fé":        r + "é",
		"\xed\xa0\x80":     r + r + r, // a surrogate
		"\xc0\xaf":         r + r,
		"\xf5\x80":         r + r,
		"\xe0\x80":         r + r,
		"\xf4\x90":         r + r,
		"\x80\x80":         r + r,
		"\xe2\xe2\x82\xac": r + "€",
	} {
		if got := validText([]byte(in)); string(got) != want {
			t.Errorf("validText(%q) = %q, want %q", in, got, want)
		}
	}
}

// collect decodes a whole body into "kind:data" with a b before binary data.
func collect(decode func([]byte, int, func(packet) error) error, body string, max int) (out []string, err error) {
	err = decode([]byte(body), max, func(p packet) error {
		s := string(p.kind) + ":"
		if p.binary {
			s = "b" + s
		}
		out = append(out, s+string(p.data))
		return nil
	})
	return out, err
}

func TestDecodePayloads(t *testing.T) {
	type decoder = func([]byte, int, func(packet) error) error
	for _, c := range []struct {
		name   string
		decode decoder
		body   string
		want   []string
		err    error
	}{
		{"v4", decodePayload, "4hello", []string{"4:hello"}, nil},
		{"v4 many", decodePayload, "4a\x1e2\x1ebAQID", []string{"4:a", "2:", "b4:\x01\x02\x03"}, nil},
		{"v4 empty", decodePayload, "", nil, errPayload},
		{"v4 empty packet", decodePayload, "4a\x1e", []string{"4:a"}, errPayload},
		{"v4 garbage", decodePayload, "4a\x1eabc\x1e4b", []string{"4:a"}, errPayload},
		{"v4 too many", decodePayload, "4a\x1e4b\x1e4c\x1e4d", []string{"4:a", "4:b", "4:c"}, errTooManyPackets},
		{"v3", decodePayloadV3, "6:4hello", []string{"4:hello"}, nil},
		{"v3 many", decodePayloadV3, "6:4hello10:b4AQIDBA==1:2", []string{"4:hello", "b4:\x01\x02\x03\x04", "2:"}, nil},
		{"v3 units", decodePayloadV3, "3:4😀2:4é", []string{"4:😀", "4:é"}, nil},
		{"v3 half a pair", decodePayloadV3, "2:4😀", nil, errPayload},
		{"v3 zero", decodePayloadV3, "0:2:4a", []string{"4:a"}, nil},
		{"v3 leading zero", decodePayloadV3, "02:4a", []string{"4:a"}, nil},
		{"v3 empty", decodePayloadV3, "", nil, errPayload},
		{"v3 short", decodePayloadV3, "9:4a", nil, errPayload},
		{"v3 no length", decodePayloadV3, ":4a", nil, errPayload},
		{"v3 no colon", decodePayloadV3, "12", nil, errPayload},
		{"v3 negative", decodePayloadV3, "-1:4a", nil, errPayload},
		{"v3 huge", decodePayloadV3, "99999999999999999999:4a", nil, errPayload},
		{"v3 bad packet", decodePayloadV3, "1:x", nil, errPayload},
		{"v3 too many", decodePayloadV3, "1:21:21:21:2", []string{"2:", "2:", "2:"}, errTooManyPackets},
		{"v3 binary", decodePayloadBinaryV3, "\x00\x06\xff4hello\x01\x05\xff\x04\x01\x02\x03\x04", []string{"4:hello", "b4:\x01\x02\x03\x04"}, nil},
		{"v3 binary two digits", decodePayloadBinaryV3, "\x00\x01\x00\xff4123456789", []string{"4:123456789"}, nil},
		{"v3 binary nothing", decodePayloadBinaryV3, "", nil, nil},
		{"v3 binary no end of length", decodePayloadBinaryV3, "\x00\x06", nil, errPayload},
		{"v3 binary short", decodePayloadBinaryV3, "\x01\x06\xff\x04", nil, errPayload},
		{"v3 binary bad text", decodePayloadBinaryV3, "\x00\x01\xffx", nil, errPayload},
		{"v3 binary not a digit", decodePayloadBinaryV3, "\x00\x0b\xff4hello", nil, errPayload},
	} {
		got, err := collect(c.decode, c.body, 3)
		if !slices.Equal(got, c.want) || err != c.err {
			t.Errorf("%s: got %q, %v; want %q, %v", c.name, got, err, c.want, c.err)
		}
	}
}

func TestDecodeStops(t *testing.T) {
	for name, body := range map[string]string{"v4": "4a\x1e4b", "v3": "2:4a2:4b", "v3 binary": "\x00\x02\xff4a\x00\x02\xff4b"} {
		decode := decodePayload
		switch name {
		case "v3":
			decode = decodePayloadV3
		case "v3 binary":
			decode = decodePayloadBinaryV3
		}
		n := 0
		err := decode([]byte(body), 10, func(packet) error { n++; return errStop })
		if err != errStop || n != 1 {
			t.Errorf("%s: %d packets, %v", name, n, err)
		}
	}
}

func TestEncodePayloads(t *testing.T) {
	msgs := []*Message{NewMessage([]byte("hello")), NewBinaryMessage([]byte{1, 2, 3, 4}), NewMessage([]byte("😀é"))}
	if got, want := string(encodePayload(nil, msgs)), "4hello\x1ebAQIDBA==\x1e4😀é"; got != want {
		t.Errorf("v4: %q, want %q", got, want)
	}
	body, binary := encodePayloadV3(nil, msgs, false)
	if want := "6:4hello10:b4AQIDBA==4:4😀é"; string(body) != want || binary {
		t.Errorf("v3: %q %v, want %q", body, binary, want)
	}
	body, binary = encodePayloadV3(nil, msgs[:2], true)
	if want := "\x00\x06\xff4hello\x01\x05\xff\x04\x01\x02\x03\x04"; string(body) != want || !binary {
		t.Errorf("v3 binary: %q %v, want %q", body, binary, want)
	}
	body, binary = encodePayloadV3(nil, msgs[:1], true)
	if want := "6:4hello"; string(body) != want || binary {
		t.Errorf("v3 text of a binary client: %q %v, want %q", body, binary, want)
	}
}

// What one side encodes the other decodes.
func TestPayloadRoundTrip(t *testing.T) {
	texts := []string{"", "a", "😀", strings.Repeat("é", 300), "1:2", "4"}
	var msgs []*Message
	for _, s := range texts {
		msgs = append(msgs, NewMessage([]byte(s)))
	}
	v3, _ := encodePayloadV3(nil, msgs, true)
	for name, out := range map[string]func() ([]string, error){
		"v4": func() ([]string, error) { return collect(decodePayload, string(encodePayload(nil, msgs)), 10) },
		"v3": func() ([]string, error) { return collect(decodePayloadV3, string(v3), 10) },
		"v3 binary": func() ([]string, error) {
			return collect(decodePayloadBinaryV3, string(encodePayloadBinaryV3(nil, msgs)), 10)
		},
	} {
		got, err := out()
		if err != nil || len(got) != len(texts) {
			t.Fatalf("%s: %q, %v", name, got, err)
		}
		for i, s := range texts {
			if got[i] != "4:"+s {
				t.Errorf("%s: packet %d is %q, want %q", name, i, got[i], s)
			}
		}
	}
}

func TestJSONP(t *testing.T) {
	if got, want := string(wrapJSONP(jsonpHead("1a2"), []byte("2:4\"\u2028<"))), `___eio[12]("2:4\"\u2028\u003c");`; got != want {
		t.Errorf("wrap: %q, want %q", got, want)
	}
	for in, want := range map[string]string{
		`d=6%3A4hello`:     "6:4hello",
		`d=4%3A4a%5Cnb`:    "4:4a\nb", // \n is a newline
		`d=5%3A4a%5C%5Cnb`: `5:4a\nb`, // \\n is \n
	} {
		if got, ok := unwrapJSONP([]byte(in)); !ok || string(got) != want {
			t.Errorf("unwrap(%q) = %q, %v, want %q", in, got, ok, want)
		}
	}
	for _, in := range []string{"", "x=1", "d=%zz"} {
		if got, ok := unwrapJSONP([]byte(in)); ok {
			t.Errorf("unwrap(%q) = %q", in, got)
		}
	}
}

func TestMessageForms(t *testing.T) {
	long := strings.Repeat("x", 126)
	huge := strings.Repeat("y", 65536)
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"text", NewMessage([]byte("hi")).wire(0, 0), "\x81\x034hi"},
		{"text v3", NewMessage([]byte("hi")).wire(formV3|formBase64, 0), "\x81\x034hi"},
		{"text of 127", NewMessage([]byte(long)).wire(0, 0), "\x81\x7e\x00\x7f4" + long},
		{"text of 65537", NewMessage([]byte(huge)).wire(0, 0), "\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x014" + huge},
		{"binary", NewBinaryMessage([]byte{1, 2}).wire(0, 0), "\x82\x02\x01\x02"},
		{"binary v3", NewBinaryMessage([]byte{1, 2}).wire(formV3, 0), "\x82\x03\x04\x01\x02"},
		{"binary as base64", NewBinaryMessage([]byte{1, 2}).wire(formBase64, 0), "\x81\x05bAQI="},
		{"binary as base64 v3", NewBinaryMessage([]byte{1, 2}).wire(formV3|formBase64, 0), "\x81\x06b4AQI="},
		{"ping", pingPacket.wire(0, 0), "\x81\x012"},
		{"probe", probePacket.wire(0, 0), "\x81\x063probe"},
		{"close", closeFrame(0).frame, "\x88\x00"},
		{"close with a code", closeFrame(1001).frame, "\x88\x02\x03\xe9"},
	} {
		if string(c.got) != c.want {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
	m := NewBinaryMessage([]byte{1, 2})
	if first, again := m.wire(formV3, 0), m.wire(formV3, 0); &first[0] != &again[0] {
		t.Error("a form was made twice")
	}
	if text := m.base64Text(true); !bytes.Equal(text, []byte("b4AQI=")) {
		t.Errorf("base64Text: %q", text)
	}
	if NewMessage(nil).Size() != 3+messageOverhead {
		t.Error("size of an empty message")
	}
}
