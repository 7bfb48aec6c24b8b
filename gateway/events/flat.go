package events

import (
	"strconv"
	"unicode/utf8"
)

// flatRequest is a request that knows how to read its usual form: an object of strings and whole
// numbers, each name as documented. That is what comes with every message, and needs none of what
// encoding/json can do beyond it.
type flatRequest interface {
	// set takes a field. It returns false for a field that it does not know, or not with
	// this kind of value: then encoding/json decides about the whole payload.
	set(name string, value flatValue) bool
}

// flatValue is a string without escapes, or a number that fits an int64.
type flatValue struct {
	raw    string // the value as it stands there
	text   string // what is between the quotes
	number int64
}

// isText says whether it is a string.
func (v *flatValue) isText() bool { return v.raw[0] == '"' }

// decodeFlat reads raw into req and says whether it could. If not, req may have been changed.
func decodeFlat(raw []byte, req flatRequest) bool {
	f := flatReader{b: string(raw)} // the one copy: fields are parts of it
	if !f.take('{') {
		return false
	}
	if f.take('}') {
		return f.end()
	}
	for {
		name, ok := f.quoted()
		if !ok || !f.take(':') {
			return false
		}
		value, ok := f.value()
		if !ok || !req.set(name, value) {
			return false
		}
		if f.take('}') {
			return f.end()
		}
		if !f.take(',') {
			return false
		}
	}
}

// flatReader reads the subset of JSON that decodeFlat knows. Whatever it returns false for may be
// valid all the same.
type flatReader struct {
	b   string
	pos int
}

func (f *flatReader) space() {
	for f.pos < len(f.b) {
		switch f.b[f.pos] {
		case ' ', '\t', '\n', '\r':
			f.pos++
		default:
			return
		}
	}
}

// take skips spaces and the byte c, if it comes next.
func (f *flatReader) take(c byte) bool {
	f.space()
	if f.pos == len(f.b) || f.b[f.pos] != c {
		return false
	}
	f.pos++
	return true
}

func (f *flatReader) end() bool {
	f.space()
	return f.pos == len(f.b)
}

// quoted reads a string without escapes.
func (f *flatReader) quoted() (string, bool) {
	if !f.take('"') {
		return "", false
	}
	start, ascii := f.pos, true
	for ; f.pos < len(f.b); f.pos++ {
		switch c := f.b[f.pos]; {
		case c == '"':
			text := f.b[start:f.pos]
			f.pos++
			return text, ascii || utf8.ValidString(text)
		case c < ' ' || c == '\\':
			return "", false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", false
}

func (f *flatReader) value() (v flatValue, ok bool) {
	f.space()
	start := f.pos
	if start < len(f.b) && f.b[start] == '"' {
		if v.text, ok = f.quoted(); !ok {
			return v, false
		}
	} else if v.number, ok = f.number(); !ok {
		return v, false
	}
	v.raw = f.b[start:f.pos]
	return v, true
}

// number reads a whole number of at most 18 digits.
func (f *flatReader) number() (int64, bool) {
	start := f.pos
	if f.pos < len(f.b) && f.b[f.pos] == '-' {
		f.pos++
	}
	digits := f.pos
	for f.pos < len(f.b) && f.b[f.pos] >= '0' && f.b[f.pos] <= '9' {
		f.pos++
	}
	if n := f.pos - digits; n == 0 || n > 18 || n > 1 && f.b[digits] == '0' {
		return 0, false
	}
	if f.pos < len(f.b) {
		switch f.b[f.pos] {
		case '.', 'e', 'E':
			return 0, false
		}
	}
	n, err := strconv.ParseInt(f.b[start:f.pos], 10, 64)
	return n, err == nil
}
