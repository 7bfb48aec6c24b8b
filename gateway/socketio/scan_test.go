package socketio

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestSplitArray(t *testing.T) {
	tests := []struct {
		in   string
		want string // elements joined by "|"; "!" for an error
	}{
		{`[]`, ``},
		{` [ ] `, ``},
		{`[1]`, `1`},
		{`["a",{"b":[1,2]}, null ,true,false]`, `"a"|{"b":[1,2]}|null|true|false`},
		{`[-0.5e+10,1E5,0,-0]`, `-0.5e+10|1E5|0|-0`},
		{`["\ud800\u00e9\\\"\/\b"]`, `"\ud800\u00e9\\\"\/\b"`},
		{"[\"\u2028 é\"]", "\"\u2028 é\""},
		{`{}`, `!`},
		{``, `!`},
		{`[`, `!`},
		{`[1`, `!`},
		{`[1,]`, `!`},
		{`[,1]`, `!`},
		{`[1 2]`, `!`},
		{`[01]`, `!`},
		{`[1.]`, `!`},
		{`[.5]`, `!`},
		{`[+1]`, `!`},
		{`[1e]`, `!`},
		{`[-]`, `!`},
		{`[NaN]`, `!`},
		{`[tru]`, `!`},
		{`[nul]`, `!`},
		{`['a']`, `!`},
		{`["a]`, `!`},
		{`["\x"]`, `!`},
		{`["\u12g4"]`, `!`},
		{`["\u12`, `!`},
		{"[\"\n\"]", `!`},
		{`[{"a"}]`, `!`},
		{`[{"a":}]`, `!`},
		{`[{"a":1,}]`, `!`},
		{`[{1:2}]`, `!`},
		{`[{"a":1]`, `!`},
		{`[] x`, `!`},
		{`[]]`, `!`},
		{"[]\x00", `!`},
		{"[\x00]", `!`},
	}
	for _, tt := range tests {
		items, err := splitArray([]byte(tt.in), nil, 16)
		var parts []string
		for _, it := range items {
			parts = append(parts, string(it))
		}
		got := strings.Join(parts, "|")
		if err != nil {
			got = "!"
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("splitArray(%q): error %v is not ErrMalformed", tt.in, err)
			}
		}
		if got != tt.want {
			t.Errorf("splitArray(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestSplitArrayDepth(t *testing.T) {
	nested := func(n int) []byte {
		return []byte(strings.Repeat("[", n) + strings.Repeat("]", n))
	}
	objects := []byte(`[` + strings.Repeat(`{"a":`, 15) + `1` + strings.Repeat(`}`, 15) + `]`)
	if _, err := splitArray(nested(16), nil, 16); err != nil {
		t.Errorf("16 levels: %v", err)
	}
	if _, err := splitArray(objects, nil, 16); err != nil {
		t.Errorf("16 levels of objects: %v", err)
	}
	if _, err := splitArray(nested(17), nil, 16); !errors.Is(err, ErrMalformed) {
		t.Errorf("17 levels: error %v, want ErrMalformed", err)
	}
	if _, err := splitArray(nested(1_000_000), nil, 256); !errors.Is(err, ErrMalformed) {
		t.Errorf("a million levels: error %v, want ErrMalformed", err)
	}
	wide := []byte(`[` + strings.Repeat(`[[]],`, 100) + `1]`)
	if _, err := splitArray(wide, nil, 3); err != nil {
		t.Errorf("levels beside each other: %v", err)
	}
}

// The scanner accepts exactly what encoding/json does, and cuts at the same places.
func FuzzSplitArray(f *testing.F) {
	for _, s := range []string{`[]`, `["a",{"b":[1,2]}]`, `[1,]`, `[01]`, `["\ud800"]`, `[{"a":1,"a":2}]`, ` [1 , 2] `, `[1]x`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		items, err := splitArray(data, nil, 5000)
		var want []json.RawMessage
		wantErr := json.Unmarshal(data, &want)
		if wantErr == nil && want == nil {
			return // null decodes into a nil slice
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: error %v, encoding/json says %v", data, err, wantErr)
		}
		if err != nil {
			return
		}
		if len(items) != len(want) {
			t.Fatalf("%q: %d elements, encoding/json has %d", data, len(items), len(want))
		}
		for i := range items {
			if string(items[i]) != string(want[i]) {
				t.Fatalf("%q: element %d is %q, encoding/json has %q", data, i, items[i], want[i])
			}
		}
	})
}
