package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"xabar/chat"
)

func TestDefuse(t *testing.T) {
	t.Parallel()
	positions := map[string]any{}
	for range chat.MaxSyncPositions {
		positions[chat.NewID().String()] = map[string]int64{"seq": 1<<63 - 1, "version": 1<<63 - 1}
	}
	largest, err := json.Marshal(map[string]any{"positions": positions})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		body string
		good bool
	}{
		"the largest sync":       {string(largest), true},
		"brackets in a text":     {fmt.Sprintf(`{"text": %q}`, strings.Repeat(`[{"\`, 10_000)), true},
		"digits in a text":       {`{"text": "` + strings.Repeat("9", 10_000) + `e999999"}`, true},
		"an escaped quote":       {`{"text": "\"", "seq": 1e9999}`, false},
		"an escaped backslash":   {`{"text": "\\", "seq": 1e9999}`, false},
		"32 levels":              {strings.Repeat("[", 32) + strings.Repeat("]", 32), true},
		"33 levels":              {strings.Repeat("[", 33), false},
		"many commas":            {"[" + strings.Repeat("1,", 1<<16) + "1]", false},
		"a long number":          {"[" + strings.Repeat("1", 33) + "]", false},
		"an exponent":            {"[1e999999999]", false},
		"a negative exponent":    {"[1E-999999999]", false},
		"an exponent with zeros": {"[1e0000000999999999]", false},
		"a small exponent":       {"[1.5e+300]", true},
		"no end of a string":     {`{"text": "\`, true}, // the parser says so
		"nothing":                {"", true},
	} {
		if err := defuse([]byte(test.body)); (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
