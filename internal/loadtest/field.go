package loadtest

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// field returns the JSON value of the first field of that name, nil if there is none.
// It reads strings and numbers; it does not parse what stands before, which costs too
// much for each message, so a text must not contain `"name":`. Ours don't.
func field(json []byte, name string) []byte {
	for rest := json; ; {
		i := bytes.Index(rest, []byte(name))
		if i < 0 {
			return nil
		}
		end := i + len(name)
		quoted := i > 0 && rest[i-1] == '"' && end+1 < len(rest) && rest[end] == '"' && rest[end+1] == ':'
		if !quoted {
			rest = rest[end:]
			continue
		}
		value := bytes.TrimLeft(rest[end+2:], " ")
		if len(value) > 0 && value[0] == '"' {
			if n := bytes.IndexByte(value[1:], '"'); n >= 0 {
				return value[:n+2]
			}
			return nil
		}
		if n := bytes.IndexAny(value, ",}]"); n >= 0 {
			return value[:n]
		}
		return value
	}
}

func number(json []byte, name string) (int64, bool) {
	n, err := strconv.ParseInt(string(field(json, name)), 10, 64)
	return n, err == nil
}

// marker is what the start of a text says.
type marker struct {
	stream int
	n      int64         // the stream's messages are numbered from 0
	due    time.Duration // since the run's start
}

// text is a JSON string: run, stream, number and moment, filled up to size bytes.
func (m marker) text(run string, size int) string {
	b := make([]byte, 0, max(size, 40)+2)
	b = append(append(b, '"'), run...)
	for _, n := range []int64{int64(m.stream), m.n, int64(m.due)} {
		b = strconv.AppendInt(append(b, ' '), n, 10)
	}
	b = append(b, ' ')
	for len(b) < size+1 {
		b = append(b, filling[:min(len(filling), size+1-len(b))]...)
	}
	return string(append(b, '"'))
}

const filling = "the quick brown fox jumps over the lazy dog; "

// parseMarker reads a text as it stands in JSON. ok is false for texts of others.
func parseMarker(value []byte, run string) (m marker, ok bool) {
	text := strings.TrimPrefix(string(value), `"`)
	rest, ok := strings.CutPrefix(text, run+" ")
	if !ok {
		return m, false
	}
	var numbers [3]int64
	for i := range numbers {
		var digits string
		var err error
		if digits, rest, ok = strings.Cut(rest, " "); !ok {
			return m, false
		}
		if numbers[i], err = strconv.ParseInt(digits, 10, 64); err != nil {
			return m, false
		}
	}
	return marker{int(numbers[0]), numbers[1], time.Duration(numbers[2])}, true
}
