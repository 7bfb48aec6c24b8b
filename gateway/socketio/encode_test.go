package socketio

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

type withFile struct {
	Name string `json:"name"`
	File Binary `json:"file"`
	Blob []byte `json:"blob,omitempty"`
}

func TestEncodePayload(t *testing.T) {
	var undecoded Args
	if items, err := splitArray([]byte(`[{"x":{"_placeholder":true,"num":1}},"\ud800"]`), nil, 9); err == nil {
		undecoded = Args{list: items, bin: [][]byte{{9}, {7}}}
	}
	tests := []struct {
		args []any
		want string
		bin  [][]byte
	}{
		{nil, `["e"]`, nil},
		{[]any{nil, true, false, 1, int64(-2), uint8(3), 1.5, "s"}, `["e",null,true,false,1,-2,3,1.5,"s"]`, nil},
		{[]any{"<a&b>", "\u2028", "q\"\\\n\r\t\x01"}, "[\"e\",\"<a&b>\",\"\u2028\",\"q\\\"\\\\\\n\\r\\t\\u0001\"]", nil},
		{[]any{"a\xffb"}, "[\"e\",\"a\uFFFDb\"]", nil},
		{[]any{map[string]string{"h": "<b>"}}, `["e",{"h":"<b>"}]`, nil},
		{[]any{json.RawMessage(`{"raw":1}`), json.RawMessage(nil)}, `["e",{"raw":1},null]`, nil},
		{[]any{[]byte{1, 2}}, `["e",{"_placeholder":true,"num":0}]`, [][]byte{{1, 2}}},
		{[]any{Binary{1}, []byte{2}}, `["e",{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]`, [][]byte{{1}, {2}}},
		{[]any{map[string]any{"f": []byte{3}, "n": []any{1, Binary{4}}}},
			`["e",{"f":{"_placeholder":true,"num":0},"n":[1,{"_placeholder":true,"num":1}]}]`, [][]byte{{3}, {4}}},
		{[]any{withFile{"n", Binary{5}, []byte{6}}}, `["e",{"name":"n","file":{"_placeholder":true,"num":0},"blob":"Bg=="}]`, [][]byte{{5}}},
		{[]any{&withFile{Name: "n"}}, `["e",{"name":"n","file":{"_placeholder":true,"num":0}}]`, [][]byte{{}}},
		{undecoded.Values(), `["e",{"x":{"_placeholder":true,"num":0}},"\ud800"]`, [][]byte{{7}}},
		{[]any{[]byte{1}, undecoded.Arg(0)}, `["e",{"_placeholder":true,"num":0},{"x":{"_placeholder":true,"num":1}}]`, [][]byte{{1}, {7}}},
		{[]any{undecoded.Arg(9)}, `["e",null]`, nil},
		{[]any{undecoded}, `["e",[{"x":{"_placeholder":true,"num":0}},"\ud800"]]`, [][]byte{{7}}},
	}
	for _, tt := range tests {
		data, bin, err := encodePayload("e", tt.args, 10)
		if err != nil || string(data) != tt.want || len(bin) != len(tt.bin) {
			t.Errorf("encode %v = %s, %v, %v; want %s, %v", tt.args, data, bin, err, tt.want, tt.bin)
			continue
		}
		for i := range bin {
			if string(bin[i]) != string(tt.bin[i]) {
				t.Errorf("encode %v: attachments %v, want %v", tt.args, bin, tt.bin)
			}
		}
	}
}

func TestEncodePayloadRefuses(t *testing.T) {
	tests := []struct {
		args []any
		want error
	}{
		{[]any{make(chan int)}, nil},
		{[]any{math.NaN()}, nil},
		{[]any{Binary{}, Binary{}, Binary{}}, ErrTooManyAttachments},
		{[]any{[]any{Binary{}, Binary{}, Binary{}}}, ErrTooManyAttachments},
		{[]any{Args{list: []json.RawMessage{[]byte(`{"_placeholder":true,"num":3}`)}, bin: [][]byte{{1}}}}, ErrMalformed},
	}
	for _, tt := range tests {
		if data, _, err := encodePayload("e", tt.args, 2); err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("encode %v = %s, %v; want error %v", tt.args, data, err, tt.want)
		}
	}
	// a failed encoder must not leave anything to the next one
	if data, bin, err := encodePayload("e", []any{1}, 2); string(data) != `["e",1]` || bin != nil || err != nil {
		t.Errorf("after failures: %s %v %v", data, bin, err)
	}
}

// A client can't make attachments out of text that looks like the encoder's own mark.
func TestBinaryMarkIsNotForgeable(t *testing.T) {
	forged := map[string]string{"text": binaryMark + `AQ=="}`}
	data, bin, err := encodePayload("e", []any{forged}, 10)
	if err != nil || len(bin) != 0 {
		t.Fatalf("attachments %v, %v", bin, err)
	}
	var got []any
	if err := json.Unmarshal(data, &got); err != nil || got[1].(map[string]any)["text"] != forged["text"] {
		t.Errorf("got %s, %v", data, err)
	}
}

func TestArgDecode(t *testing.T) {
	items, err := splitArray([]byte(`["a\ud800b",{"name":"n","file":{"_placeholder":true,"num":1},"blob":{"_placeholder":true,"num":0}},{"_placeholder":true,"num":0},null]`), nil, 9)
	if err != nil {
		t.Fatal(err)
	}
	args := Args{list: items, bin: [][]byte{{1}, {2, 3}}}
	var s string
	if err := args.Arg(0).Decode(&s); err != nil || s != "a\uFFFDb" {
		t.Errorf("lone surrogate: %q, %v", s, err)
	}
	var f withFile
	want := withFile{"n", Binary{2, 3}, []byte{1}}
	if err := args.Arg(1).Decode(&f); err != nil || !reflect.DeepEqual(f, want) {
		t.Errorf("struct: %v, %v; want %v", f, err, want)
	}
	var b []byte
	if err := args.Arg(2).Decode(&b); err != nil || string(b) != "\x01" {
		t.Errorf("[]byte: %v, %v", b, err)
	}
	if b, ok := args.Arg(2).Binary(); !ok || string(b) != "\x01" {
		t.Errorf("Binary() = %v, %v", b, ok)
	}
	for _, i := range []int{0, 1, 3, 4, -1} {
		if b, ok := args.Arg(i).Binary(); ok {
			t.Errorf("argument %d is a binary: %v", i, b)
		}
	}
	if !args.Arg(3).IsNull() || !args.Arg(4).IsNull() || args.Arg(0).IsNull() {
		t.Error("IsNull is wrong")
	}
	if err := args.Arg(0).Decode(new(int)); err == nil {
		t.Error("a string decoded into an int")
	}
	p := &struct{ A int }{7}
	if err := args.Arg(9).Decode(&p); err != nil || p != nil {
		t.Errorf("missing argument: %v, %v; want null", p, err)
	}
}

func TestArgsClone(t *testing.T) {
	buf := []byte(`["abc",12]`)
	items, err := splitArray(buf, nil, 9)
	if err != nil {
		t.Fatal(err)
	}
	c := Args{list: items}.Clone()
	for i := range buf {
		buf[i] = 'X'
	}
	if string(c.Arg(0).Raw()) != `"abc"` || string(c.Arg(1).Raw()) != `12` || c.Len() != 2 {
		t.Errorf("the clone changed: %s %s", c.Arg(0).Raw(), c.Arg(1).Raw())
	}
}

func FuzzAppendJSONString(f *testing.F) {
	for _, s := range []string{"", "a", "\x00\x1f\"\\", "é\u2028\U0001F600", "\xff\xed\xa0\x80", "\x7f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		b := appendJSONString(nil, s)
		if err := json.Unmarshal(b, &got); err != nil || got != strings.ToValidUTF8(string([]rune(s)), "") {
			t.Fatalf("%q: %s decodes to %q, %v", s, b, got, err)
		}
	})
}
