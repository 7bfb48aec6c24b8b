package socketio

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What notepack.io 2.2 (socket.io-msgpack-parser 3) makes of packets.
func TestMsgpackDecode(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"connect", "82 a474797065 00 a36e7370 a12f", `0 /`},
		{"connect with undefined data", "83 a474797065 00 a464617461 d40000 a36e7370 a12f", `0 /`},
		{"connect with auth", "83 a474797065 00 a464617461 81 a161 01 a36e7370 a22f61", `0 /a {"a":1}`},
		{"disconnect", "82 a474797065 01 a36e7370 a12f", `1 /`},
		{"event", "83 a474797065 02 a464617461 92 a161 a162 a36e7370 a12f", `2 / ["a","b"]`},
		{"ack id", "84 a474797065 02 a464617461 91 a161 a26964 0c a36e7370 a12f", `2 / #12 ["a"]`},
		{"undefined id", "84 a474797065 02 a464617461 91 a161 a26964 d40000 a36e7370 a12f", `2 / ["a"]`},
		{"binary", "83 a474797065 02 a464617461 92 a161 c403010203 a36e7370 a12f", `2 / ["a",{"_placeholder":true,"num":0}] <010203>`},
		{"nested binary", "83 a474797065 02 a464617461 92 a161 81 a166 c40109 a36e7370 a12f", `2 / ["a",{"f":{"_placeholder":true,"num":0}}] <09>`},
		{"numbers", "83 a474797065 02 a464617461 97 a161 ff d1ff00 cb3ff8000000000000 cf0020000000000000 d3ffffffffffffff00 ca3f000000 a36e7370 a12f", `2 / ["a",-1,-256,1.5,9007199254740992,-256,0.5]`},
		{"NaN, null, booleans, undefined", "83 a474797065 02 a464617461 96 a161 cb7ff8000000000000 c0 c3 c2 d40000 a36e7370 a12f", `2 / ["a",null,null,true,false,null]`},
		{"date", "83 a474797065 02 a464617461 92 a161 d7000000018bcfe56800 a36e7370 a12f", `2 / ["a","2023-11-14T22:13:20.000Z"]`},
		{"unknown member", "83 a474797065 01 a36e7370 a12f a178 92 01 02", `1 /`},
		{"ack", "84 a474797065 03 a464617461 90 a26964 07 a36e7370 a12f", `3 / #7 []`},
		{"connect error text", "83 a474797065 04 a464617461 a16d a36e7370 a12f", `4 / "m"`},
	}
	for _, tt := range tests {
		var p Packet
		ok, err := MsgpackParser{}.NewDecoder(testLimits).Decode(unhex(t, tt.in), true, &p)
		if err != nil || !ok || show(&p) != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, show(&p), err, tt.want)
		}
		if (p.Type == PacketEvent || p.Type == PacketAck) && len(p.Items) == 0 && tt.name != "ack" {
			t.Errorf("%s: no items", tt.name)
		}
	}
}

func TestMsgpackRefuses(t *testing.T) {
	deep := "83 a474797065 02 a36e7370 a12f a464617461 92 a161 " + strings.Repeat("91", 100) + "00"
	eleven := "83 a474797065 02 a36e7370 a12f a464617461 9c a161 " + strings.Repeat("c40101", 11)
	tests := []struct{ name, in string }{
		{"empty", ""}, {"no map", "90"}, {"nil", "c0"}, {"empty map", "80"},
		{"no type", "82 a464617461 91 a161 a36e7370 a12f"},
		{"no namespace", "82 a474797065 02 a464617461 91 a161"},
		{"type 5", "82 a474797065 05 a36e7370 a12f"},
		{"type text", "82 a474797065 a132 a36e7370 a12f"},
		{"namespace number", "82 a474797065 01 a36e7370 01"},
		{"event without payload", "82 a474797065 02 a36e7370 a12f"},
		{"event with an object", "83 a474797065 02 a464617461 80 a36e7370 a12f"},
		{"event without name", "83 a474797065 02 a464617461 90 a36e7370 a12f"},
		{"reserved event", "83 a474797065 02 a464617461 91 a7636f6e6e656374 a36e7370 a12f"},
		{"connect with an array", "83 a474797065 00 a464617461 90 a36e7370 a12f"},
		{"trailing bytes", "82 a474797065 01 a36e7370 a12f 00"},
		{"cut", "83 a474797065 02 a464617461 92 a161"},
		{"array of 4 billion", "83 a474797065 02 a36e7370 a12f a464617461 ddffffffff"},
		{"map of 4 billion", "83 a474797065 00 a36e7370 a12f a464617461 dfffffffff"},
		{"text of 4 GB", "83 a474797065 02 a36e7370 a12f a464617461 92 a161 dbffffffff"},
		{"binary of 4 GB", "83 a474797065 02 a36e7370 a12f a464617461 92 a161 c6ffffffff"},
		{"ext of 4 GB", "83 a474797065 02 a36e7370 a12f a464617461 92 a161 c9ffffffff00"},
		{"name of 4 GB", "82 dbffffffff a474797065"},
		{"namespace of 4 GB", "82 a474797065 01 a36e7370 dbffffffff"},
		{"unknown member of 4 GB", "83 a474797065 01 a36e7370 a12f a178 c6ffffffff"},
		{"unknown member of 4 billion", "83 a474797065 01 a36e7370 a12f a178 ddffffffff"},
		{"id of 4 GB", "83 a474797065 01 a36e7370 a12f a26964 c9ffffffff00"},
		{"deep unknown member", "83 a474797065 01 a36e7370 a12f a178" + strings.Repeat("91", 100) + "00"},
		{"negative id", "84 a474797065 02 a464617461 91 a161 a26964 ff a36e7370 a12f"},
		{"id 2^53", "84 a474797065 02 a464617461 91 a161 a26964 cf0020000000000000 a36e7370 a12f"},
		{"deep", deep}, {"eleven attachments", eleven},
	}
	for _, tt := range tests {
		var p Packet
		if ok, err := (MsgpackParser{}).NewDecoder(testLimits).Decode(unhex(t, tt.in), true, &p); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, %q, %v; want ErrMalformed", tt.name, ok, show(&p), err)
		}
	}
	// however long they claim to be, ten bytes are ten bytes
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, tt := range tests {
		var p Packet
		_, _ = MsgpackParser{}.NewDecoder(testLimits).Decode(unhex(t, tt.in), true, &p)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
		t.Errorf("all of them together allocate %d bytes", grown)
	}
	var p Packet
	if _, err := (MsgpackParser{}).NewDecoder(testLimits).Decode([]byte(`2["a"]`), false, &p); !errors.Is(err, ErrMalformed) {
		t.Errorf("text: %v, want ErrMalformed", err)
	}
	if err := UnmarshalMsgpack(unhex(t, eleven), testLimits, &p); !errors.Is(err, ErrTooManyAttachments) {
		t.Errorf("eleven attachments: %v, want ErrTooManyAttachments", err)
	}
}

func TestMsgpackEncode(t *testing.T) {
	p := &Packet{Type: PacketEvent, Namespace: "/", ID: 7, HasID: true,
		Data:        json.RawMessage(`["a", {"z":1,"a":[-1.5,null,true]} ,{"_placeholder":true,"num":0},"é",12345678901234567890]`),
		Attachments: [][]byte{{1, 2}}}
	got, err := MarshalMsgpack(p)
	want := unhex(t, "84 a474797065 02 a36e7370 a12f a26964 07 a464617461 95 a161 82 a17a 01 a161 93 cbbff8000000000000 c0 c3 c4020102 a2c3a9 cb43e56a95319d63e1")
	if err != nil || string(got) != string(want) {
		t.Errorf("got  %x, %v\nwant %x", got, err, want)
	}
}

func TestMsgpackValue(t *testing.T) {
	raw := json.RawMessage(`["uid",{"a":[1,{"_placeholder":true,"num":0}],"b":"\u00e9"},null]`)
	b, err := MarshalMsgpackValue(raw, [][]byte{{7}})
	if err != nil {
		t.Fatal(err)
	}
	got, bin, err := UnmarshalMsgpackValue(b, testLimits)
	if err != nil || string(got) != `["uid",{"a":[1,{"_placeholder":true,"num":0}],"b":"é"},null]` || len(bin) != 1 || string(bin[0]) != "\x07" {
		t.Errorf("got %s, %v, %v", got, bin, err)
	}
	for _, bad := range [][]byte{{}, {0xc1}, {1, 2}, {0x92, 1}} {
		if got, _, err := UnmarshalMsgpackValue(bad, testLimits); !errors.Is(err, ErrMalformed) {
			t.Errorf("%x: %s, %v; want ErrMalformed", bad, got, err)
		}
	}
}

func FuzzMsgpackDecoder(f *testing.F) {
	f.Add(unhex(f, "83 a474797065 02 a464617461 92 a161 c403010203 a36e7370 a12f"))
	f.Add(unhex(f, "84 a474797065 03 a464617461 90 a26964 07 a36e7370 a12f"))
	f.Add(unhex(f, "83 a474797065 02 a464617461 92 a161 d7000000018bcfe56800 a36e7370 a12f"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var p, again Packet
		complete, err := MsgpackParser{}.NewDecoder(testLimits).Decode(data, true, &p)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("error %v is not ErrMalformed", err)
			}
			return
		}
		if !complete {
			t.Fatal("incomplete")
		}
		checkPacket(t, &p)
		b, err := MarshalMsgpack(&p)
		if err != nil {
			t.Fatalf("%s: %v", show(&p), err)
		}
		if _, err := (MsgpackParser{}).NewDecoder(testLimits).Decode(b, true, &again); err != nil {
			t.Fatalf("%s encoded and decoded again: %v", show(&p), err)
		}
		if len(again.Attachments) < len(p.Attachments) || again.Namespace != p.Namespace || again.ID != p.ID {
			t.Fatalf("%s became %s", show(&p), show(&again))
		}
	})
}
