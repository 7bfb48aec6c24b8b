package engineio

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gobwas/ws"
)

// decodeStream feeds a client's bytes in pieces of size step and returns what comes out.
func decodeStream(stream []byte, step, max int, deflated bool) (out []string, err error) {
	f := frameReader{max: max, deflate: deflated}
	for len(stream) > 0 {
		n := copy(f.space(), stream[:min(step, len(stream))])
		f.w += n
		stream = stream[n:]
		for {
			op, payload, ok, err := f.next()
			if err != nil {
				return out, err
			}
			if !ok {
				break
			}
			out = append(out, fmt.Sprintf("%x:%s", byte(op), payload))
		}
	}
	return out, nil
}

func join(frames ...[]byte) []byte { return bytes.Join(frames, nil) }

func TestFrameReader(t *testing.T) {
	long := bytes.Repeat([]byte("l"), 300)
	huge := bytes.Repeat([]byte("h"), 70000)
	stream := join(
		clientFrame(ws.OpText, []byte("4one"), true),
		clientFrame(ws.OpText, nil, true),
		clientFrame(ws.OpText, []byte("4é"[:2]), false), // a rune split between frames
		clientFrame(ws.OpPing, []byte("between"), true),
		clientFrame(ws.OpContinuation, nil, false),
		clientFrame(ws.OpContinuation, []byte("4é"[2:]), true),
		clientFrame(ws.OpBinary, long, true),
		clientFrame(ws.OpBinary, huge, true),
		clientFrame(ws.OpPong, nil, true),
		clientFrame(ws.OpClose, []byte("\x03\xe8bye"), true),
	)
	want := []string{"1:4one", "1:", "9:between", "1:4é", "2:" + string(long), "2:" + string(huge), "a:", "8:\x03\xe8bye"}
	for _, step := range []int{1, 2, 7, 100, 4096, len(stream)} {
		got, err := decodeStream(stream, step, 1<<20, false)
		if err != nil || strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("step %d: %d messages, %v", step, len(got), err)
		}
	}
}

func TestFrameReaderErrors(t *testing.T) {
	header := func(b ...byte) []byte { return b }
	text := clientFrame(ws.OpText, []byte("4x"), true)
	with := func(i int, bits byte) []byte { b := bytes.Clone(text); b[i] |= bits; return b }
	for _, c := range []struct {
		name   string
		stream []byte
		code   ws.StatusCode
	}{
		{"unmasked", ws.MustCompileFrame(ws.NewTextFrame([]byte("4x"))), 1002},
		{"rsv1", with(0, 0x40), 1002},
		{"rsv2", with(0, 0x20), 1002},
		{"rsv3", with(0, 0x10), 1002},
		{"reserved opcode", header(0x83, 0x80, 0, 0, 0, 0), 1002},
		{"reserved control", header(0x8b, 0x80, 0, 0, 0, 0), 1002},
		{"fragmented ping", clientFrame(ws.OpPing, nil, false), 1002},
		{"long ping", clientFrame(ws.OpPing, make([]byte, 126), true), 1002},
		{"continuation of nothing", clientFrame(ws.OpContinuation, []byte("x"), true), 1002},
		{"text inside a message", join(clientFrame(ws.OpText, []byte("4"), false), text), 1002},
		{"negative length", header(0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4), 1002},
		{"too big, header only", header(0x81, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4), 1009},
		{"one byte too big", clientFrame(ws.OpText, make([]byte, 101), true), 1009},
		{"too big in parts", join(clientFrame(ws.OpText, make([]byte, 60), false), clientFrame(ws.OpContinuation, make([]byte, 41), true)), 1009},
		{"bad text", clientFrame(ws.OpText, []byte("4\xff"), true), 1007},
		{"bad text in parts", join(clientFrame(ws.OpText, []byte("4\xc3"), false), clientFrame(ws.OpContinuation, []byte("x"), true)), 1007},
	} {
		for _, step := range []int{1, 1000} {
			_, err := decodeStream(c.stream, step, 100, false)
			var f *frameError
			if !errors.As(err, &f) || f.code != c.code {
				t.Errorf("%s, step %d: %v, want code %d", c.name, step, err, c.code)
			}
		}
	}
	if _, err := decodeStream(clientFrame(ws.OpText, make([]byte, 100), true), 1000, 100, false); err != nil {
		t.Errorf("a message of just the limit: %v", err)
	}
}

// deflatedFrame is a compressed frame of a client.
func deflatedFrame(op ws.OpCode, payload []byte, fin bool) []byte {
	f := clientFrame(op, payload, fin)
	f[0] |= rsv1
	return f
}

func TestFrameReaderDeflate(t *testing.T) {
	text := strings.Repeat("compress me ", 50)
	body := deflate([]byte(text))
	got, err := decodeStream(join(
		deflatedFrame(ws.OpText, body, true),
		clientFrame(ws.OpText, []byte("plain"), true),
		deflatedFrame(ws.OpText, body[:5], false), clientFrame(ws.OpContinuation, body[5:], true),
		deflatedFrame(ws.OpText, deflate(nil), true),
	), 1000, 1000, true)
	if want := "1:" + text + "|1:plain|1:" + text + "|1:"; err != nil || strings.Join(got, "|") != want {
		t.Errorf("got %q, %v", got, err)
	}
	for _, c := range []struct {
		name   string
		stream []byte
		code   ws.StatusCode
	}{
		{"bomb", deflatedFrame(ws.OpBinary, deflate(make([]byte, 1001)), true), 1009},
		{"garbage", deflatedFrame(ws.OpBinary, []byte{0xff, 0xff, 0xff}, true), 1007},
		{"compressed continuation", join(deflatedFrame(ws.OpText, body[:5], false), deflatedFrame(ws.OpContinuation, body[5:], true)), 1002},
		{"compressed ping", deflatedFrame(ws.OpPing, nil, true), 1002},
		{"bad text", deflatedFrame(ws.OpText, deflate([]byte("\xff")), true), 1007},
	} {
		_, err := decodeStream(c.stream, 1000, 1000, true)
		var f *frameError
		if !errors.As(err, &f) || f.code != c.code {
			t.Errorf("%s: %v, want code %d", c.name, err, c.code)
		}
	}
}

func TestCloseCode(t *testing.T) {
	for in, want := range map[string]int{
		"": 0, "\x03\xe8": 1000, "\x03\xe9bye": 1001, "\x0f\xa0": 4000,
		"\x03": -1002, "\x03\xed": -1002, "\x03\xee": -1002, "\x03\xf7": -1002, "\x00\x00": -1002, "\x13\x88": -1002, "\x03\xe8\xff": -1007,
	} {
		code, err := closeCode([]byte(in))
		var f *frameError
		if want < 0 && (!errors.As(err, &f) || int(f.code) != -want) || want >= 0 && (err != nil || int(code) != want) {
			t.Errorf("%q: %d, %v, want %d", in, code, err, want)
		}
	}
}

// The buffer follows what has arrived, not what a header announces.
func TestFrameReaderMemory(t *testing.T) {
	f := frameReader{max: 1 << 30}
	head := []byte{0x81, 0xff, 0, 0, 0, 0, 0x3f, 0, 0, 0, 1, 2, 3, 4}
	f.w += copy(f.space(), head)
	if _, _, ok, err := f.next(); ok || err != nil {
		t.Fatal(ok, err)
	}
	if f.space(); len(f.buf) > 4096 {
		t.Errorf("%d bytes for a header", len(f.buf))
	}
}
