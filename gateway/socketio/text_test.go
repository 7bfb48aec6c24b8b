package socketio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

var testLimits = Limits{MaxAttachments: 10, MaxDepth: 32}

// show prints a packet so that tables can name what they expect.
func show(p *Packet) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", p.Type, p.Namespace)
	if p.HasID {
		fmt.Fprintf(&b, " #%d", p.ID)
	}
	if p.Data != nil {
		fmt.Fprintf(&b, " %s", p.Data)
	}
	for _, a := range p.Attachments {
		fmt.Fprintf(&b, " <%x>", a)
	}
	return b.String()
}

// decodeAll feeds messages, binary ones behind "b:", and returns the last packet.
func decodeAll(d Decoder, messages ...string) (string, error) {
	var p Packet
	out := "incomplete"
	for _, m := range messages {
		data, binary := strings.CutPrefix(m, "b:")
		buf := []byte(data)
		complete, err := d.Decode(buf, binary, &p)
		if err != nil {
			return "", err
		}
		if complete {
			out = show(&p)
		}
		for i := range buf { // the read buffer is used again
			if !complete {
				buf[i] = 'X'
			}
		}
	}
	return out, nil
}

func TestTextDecode(t *testing.T) {
	tests := []struct {
		in   []string
		want string
	}{
		{[]string{`0`}, `0 /`},
		{[]string{`0{"token":"123"}`}, `0 / {"token":"123"}`},
		{[]string{`0/admin,`}, `0 /admin`},
		{[]string{`0/admin`}, `0 /admin`},
		{[]string{`0/admin,{"a":1}`}, `0 /admin {"a":1}`},
		{[]string{`0/admin?token=1&x=2,`}, `0 /admin?token=1&x=2`},
		{[]string{`0/,`}, `0 /`},
		{[]string{`1`}, `1 /`},
		{[]string{`1/admin,`}, `1 /admin`},
		{[]string{`2["foo"]`}, `2 / ["foo"]`},
		{[]string{`2/admin,["bar"]`}, `2 /admin ["bar"]`},
		{[]string{`212["foo"]`}, `2 / #12 ["foo"]`},
		{[]string{`2/admin,456["a",{"b":[1]}]`}, `2 /admin #456 ["a",{"b":[1]}]`},
		{[]string{`2[5,"a"]`}, `2 / [5,"a"]`},
		{[]string{`20["zero"]`}, `2 / #0 ["zero"]`},
		{[]string{`29007199254740991["max"]`}, `2 / #9007199254740991 ["max"]`},
		{[]string{`2 [ "a" ] `}, `2 /  [ "a" ] `},
		{[]string{`2`}, `2 /`},
		{[]string{`212`}, `2 / #12`},
		{[]string{`312`}, `3 / #12`},
		{[]string{`3`}, `3 /`},
		{[]string{`313[]`}, `3 / #13 []`},
		{[]string{`3/admin,456["x"]`}, `3 /admin #456 ["x"]`},
		{[]string{`4{"message":"m"}`}, `4 / {"message":"m"}`},
		{[]string{`4"m"`}, `4 / "m"`},
		{[]string{`51-["a",{"_placeholder":true,"num":0}]`, "b:\x01\x02"}, `2 / ["a",{"_placeholder":true,"num":0}] <0102>`},
		{[]string{`52-/admin,7["a",{"num":1,"_placeholder":true},{"_placeholder":true,"num":0}]`, "b:\x01", "b:\x02"},
			`2 /admin #7 ["a",{"num":1,"_placeholder":true},{"_placeholder":true,"num":0}] <01> <02>`},
		{[]string{`61-13[{"_placeholder":true,"num":0}]`, "b:"}, `3 / #13 [{"_placeholder":true,"num":0}] <>`},
		{[]string{`51-["never referred to"]`, "b:\x01"}, `2 / ["never referred to"] <01>`},
		{[]string{`51-["a",{"_placeholder":false,"num":7}]`, "b:\x01"}, `2 / ["a",{"_placeholder":false,"num":7}] <01>`},
		{[]string{`51-["a",{"_placeholder":true,"num":0}]`}, `incomplete`},
		{[]string{`2["a",{"_placeholder":true,"num":7}]`}, `2 / ["a",{"_placeholder":true,"num":7}]`},
		{[]string{"2[\"a\xff\xfe\"]"}, "2 / [\"a\uFFFD\uFFFD\"]"},
		{[]string{`2["connecting"]`}, `2 / ["connecting"]`},
	}
	for _, tt := range tests {
		got, err := decodeAll(TextParser{}.NewDecoder(testLimits), tt.in...)
		if err != nil || got != tt.want {
			t.Errorf("decode %q = %q, %v; want %q", tt.in, got, err, tt.want)
		}
	}
}

func TestTextDecodeRefuses(t *testing.T) {
	long := strings.Repeat("x", 10<<10)
	tests := [][]string{
		{``}, {`a`}, {`abc`}, {`7`}, {`9[]`}, {` 2["a"]`},
		{`2{}`}, {`2[]`}, {`2["a"`}, {`2["a"] x`}, {`2["a"]]`}, {`2["a",]`}, {`2abc["a"]`}, {`2null`}, {`2"a"`},
		{`2[null]`}, {`2[{}]`}, {`2[["a"]]`}, {`2[true]`},
		{`2["connect"]`}, {`2["connect_error"]`}, {`2["disconnect"]`}, {`2["disconnecting"]`},
		{`2["newListener"]`}, {`2["removeListener"]`}, {`2["\u0063onnect"]`},
		{`3{}`}, {`3"a"`}, {`312{"a":1}`},
		{`0[]`}, {`0"a"`}, {`0{`}, {`0null`}, {`0 `}, {`0 x`},
		{`1{}`}, {`1[]`}, {`1"x"`},
		{`4[]`}, {`4true`}, {`4` + "\t"},
		{`29007199254740992["id"]`}, {`2` + strings.Repeat("9", 400) + `["id"]`},
		{`5["a"]`}, {`5-["a"]`}, {`50-["a"]`}, {`5x-["a"]`}, {`51["a"]`}, {`5-1-["a"]`}, {`51.5-["a"]`}, {`5 1-["a"]`},
		{`511-["a"]`}, {`51000000-["a"]`}, {`5` + strings.Repeat("9", 400) + `-["a"]`}, {`5` + long + `-[]`},
		{`6x-[]`}, {`611-[]`},
		{`2/` + long + `,["a"]`}, {`0/` + long},
		{`51-["a"]`, `2["b"]`},
		{`51-["a",{"_placeholder":true,"num":1}]`, "b:\x01"},
		{`51-["a",{"_placeholder":true,"num":-1}]`, "b:\x01"},
		{`51-["a",{"_placeholder":true,"num":0.5}]`, "b:\x01"},
		{`51-["a",{"_placeholder":true,"num":"0"}]`, "b:\x01"},
		{`51-["a",{"_placeholder":true}]`, "b:\x01"},
		{`51-["a",{"\u005fplaceholder":true,"num":9}]`, "b:\x01"},
		{`51-["a",[[{"b":{"_placeholder":true,"num":1e99}}]]]`, "b:\x01"},
		{"b:\x01"},
		{`51-["a",{"_placeholder":true,"num":0}]`, "b:\x01", "b:\x02"},
		{`2["a",` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `]`},
		{`0{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`},
	}
	for _, in := range tests {
		got, err := decodeAll(TextParser{}.NewDecoder(testLimits), in...)
		if !errors.Is(err, ErrMalformed) {
			t.Errorf("decode %.60q = %q, %v; want ErrMalformed", in, got, err)
		}
	}
	_, err := decodeAll(TextParser{}.NewDecoder(testLimits), `51000000-["a"]`)
	if !errors.Is(err, ErrTooManyAttachments) {
		t.Errorf("a million attachments: %v, want ErrTooManyAttachments", err)
	}
}

func TestTextHeader(t *testing.T) {
	tests := []struct {
		p    Packet
		want string
	}{
		{Packet{Type: PacketConnect, Namespace: "/"}, `0`},
		{Packet{Type: PacketConnect, Namespace: "/admin"}, `0/admin,`},
		{Packet{Type: PacketEvent, Namespace: "/", ID: 0, HasID: true}, `20`},
		{Packet{Type: PacketEvent, Namespace: "/admin", ID: 456, HasID: true}, `2/admin,456`},
		{Packet{Type: PacketEvent, Namespace: "/", Attachments: make([][]byte, 2)}, `52-`},
		{Packet{Type: PacketAck, Namespace: "/a", ID: 7, HasID: true, Attachments: make([][]byte, 1)}, `61-/a,7`},
		{Packet{Type: PacketConnectError, Namespace: "/"}, `4`},
	}
	for _, tt := range tests {
		if got := string(appendHeader(nil, &tt.p)); got != tt.want {
			t.Errorf("appendHeader(%s) = %q, want %q", show(&tt.p), got, tt.want)
		}
	}
}

// Whatever the decoder accepts is encoded to something that it decodes to the same.
func FuzzTextDecoder(f *testing.F) {
	for _, s := range []string{`0{"a":1}`, `2/admin,456["a",{"b":[1]}]`, `51-["a",{"_placeholder":true,"num":0}]`, `61-13[{"_placeholder":true,"num":0}]`, `313[]`, `4"x"`, `1/a,`, `2[1]`} {
		f.Add([]byte(s), []byte{1, 2})
	}
	f.Fuzz(func(t *testing.T, text, attachment []byte) {
		var p, again Packet
		d := TextParser{}.NewDecoder(testLimits)
		complete, err := d.Decode(text, false, &p)
		for n := 0; err == nil && !complete; n++ {
			if n > testLimits.MaxAttachments {
				t.Fatal("the decoder wants more attachments than allowed")
			}
			complete, err = d.Decode(attachment, true, &p)
		}
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("error %v is not ErrMalformed", err)
			}
			return
		}
		checkPacket(t, &p)
		line := append(appendHeader(nil, &p), p.Data...)
		d = TextParser{}.NewDecoder(testLimits)
		complete, err = d.Decode(line, false, &again)
		for i := 0; err == nil && !complete; i++ {
			complete, err = d.Decode(p.Attachments[i], true, &again)
		}
		if err != nil || show(&p) != show(&again) {
			t.Fatalf("%q: decoded %q, and again %q, %v", text, show(&p), show(&again), err)
		}
	})
}

func checkPacket(t *testing.T, p *Packet) {
	if p.Type > PacketConnectError || p.ID > MaxAckID || len(p.Attachments) > testLimits.MaxAttachments {
		t.Fatalf("packet out of bounds: %s", show(p))
	}
	if p.Data == nil {
		return
	}
	var v any
	if err := json.Unmarshal(p.Data, &v); err != nil {
		t.Fatalf("payload is no JSON: %v", err)
	}
	args := Args{list: p.Items, bin: p.Attachments}
	for i := range args.Len() {
		if err := args.Arg(i).Decode(&v); err != nil {
			t.Fatalf("argument %d of %s: %v", i, show(p), err)
		}
	}
}

func TestToValidUTF8(t *testing.T) {
	if got := toValidUTF8([]byte("a\xffé\xed\xa0\x80")); !bytes.Equal(got, []byte("a\uFFFDé\uFFFD\uFFFD\uFFFD")) {
		t.Errorf("got %q", got)
	}
}
