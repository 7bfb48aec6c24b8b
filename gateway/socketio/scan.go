package socketio

import (
	"encoding/json"
	"fmt"
)

// maxItems bounds the arguments of a packet from a client: each costs 24 bytes for the two that
// the shortest has on the wire.
const maxItems = 4096

// maxOwnDepth bounds the nesting of what this server made itself, as encoding/json does.
const maxOwnDepth = 10_000

// scanner checks JSON (RFC 8259) without decoding it.
type scanner struct {
	data  []byte
	pos   int
	depth int // levels that may still be opened

	// onObject, if not nil, is called for each object with its span and, if it is a placeholder
	// of a binary, the raw value of its num.
	onObject func(start, end int, num []byte) error
}

// splitArray checks that data is one JSON array and nothing else, and appends the raw elements
// to items.
func splitArray(data []byte, items []json.RawMessage, depth int) ([]json.RawMessage, error) {
	sc := scanner{data: data, depth: depth}
	sc.space()
	if sc.peek() != '[' {
		return nil, sc.fail("an array")
	}
	sc.pos++
	sc.depth--
	sc.space()
	if sc.peek() == ']' {
		sc.pos++
		return items, sc.end()
	}
	for {
		sc.space()
		start := sc.pos
		if err := sc.value(); err != nil {
			return nil, err
		}
		if len(items) == maxItems {
			return nil, fmt.Errorf("%w: more than %d arguments", ErrMalformed, maxItems)
		}
		items = append(items, data[start:sc.pos:sc.pos])
		sc.space()
		switch sc.peek() {
		case ',':
			sc.pos++
		case ']':
			sc.pos++
			return items, sc.end()
		default:
			return nil, sc.fail("a comma or a bracket")
		}
	}
}

// checkValue checks that data is one JSON value and nothing else.
func checkValue(data []byte, depth int) error {
	sc := scanner{data: data, depth: depth}
	sc.space()
	if err := sc.value(); err != nil {
		return err
	}
	return sc.end()
}

func (sc *scanner) fail(want string) error {
	return fmt.Errorf("%w: JSON at byte %d: want %s", ErrMalformed, sc.pos, want)
}

func (sc *scanner) end() error {
	sc.space()
	if sc.pos != len(sc.data) {
		return sc.fail("the end")
	}
	return nil
}

// peek returns the next byte, 0 at the end: no JSON begins with it.
func (sc *scanner) peek() byte {
	if sc.pos < len(sc.data) {
		return sc.data[sc.pos]
	}
	return 0
}

func (sc *scanner) space() {
	for sc.pos < len(sc.data) {
		switch sc.data[sc.pos] {
		case ' ', '\t', '\n', '\r':
			sc.pos++
		default:
			return
		}
	}
}

func (sc *scanner) value() error {
	switch c := sc.peek(); {
	case c == '"':
		return sc.str()
	case c == '{':
		return sc.object()
	case c == '[':
		return sc.array()
	case c == 't':
		return sc.literal("true")
	case c == 'f':
		return sc.literal("false")
	case c == 'n':
		return sc.literal("null")
	case c == '-' || isDigit(c):
		return sc.number()
	}
	return sc.fail("a value")
}

func (sc *scanner) literal(word string) error {
	if len(sc.data)-sc.pos < len(word) || string(sc.data[sc.pos:sc.pos+len(word)]) != word {
		return sc.fail(word)
	}
	sc.pos += len(word)
	return nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (sc *scanner) digits() error {
	if !isDigit(sc.peek()) {
		return sc.fail("a digit")
	}
	for isDigit(sc.peek()) {
		sc.pos++
	}
	return nil
}

func (sc *scanner) number() error {
	if sc.peek() == '-' {
		sc.pos++
	}
	if sc.peek() == '0' {
		sc.pos++
	} else if err := sc.digits(); err != nil {
		return err
	}
	if sc.peek() == '.' {
		sc.pos++
		if err := sc.digits(); err != nil {
			return err
		}
	}
	if c := sc.peek(); c == 'e' || c == 'E' {
		sc.pos++
		if c = sc.peek(); c == '+' || c == '-' {
			sc.pos++
		}
		return sc.digits()
	}
	return nil
}

func (sc *scanner) str() error {
	for sc.pos++; sc.pos < len(sc.data); sc.pos++ {
		switch c := sc.data[sc.pos]; {
		case c == '"':
			sc.pos++
			return nil
		case c < ' ':
			return sc.fail("no control character")
		case c == '\\':
			sc.pos++
			if err := sc.escape(); err != nil {
				return err
			}
		}
	}
	return sc.fail("the end of a string")
}

// escape checks what follows a backslash and stops at its last byte.
func (sc *scanner) escape() error {
	switch sc.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return nil
	case 'u':
		for range 4 {
			sc.pos++
			if c := sc.peek(); !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
				return sc.fail("four hex digits")
			}
		}
		return nil
	}
	return sc.fail("an escape")
}

func (sc *scanner) open() error {
	if sc.depth--; sc.depth < 0 {
		return fmt.Errorf("%w: JSON is nested too deeply", ErrMalformed)
	}
	sc.pos++
	sc.space()
	return nil
}

func (sc *scanner) array() error {
	if err := sc.open(); err != nil {
		return err
	}
	if sc.peek() == ']' {
		sc.pos++
		sc.depth++
		return nil
	}
	for {
		sc.space()
		if err := sc.value(); err != nil {
			return err
		}
		sc.space()
		switch sc.peek() {
		case ',':
			sc.pos++
		case ']':
			sc.pos++
			sc.depth++
			return nil
		default:
			return sc.fail("a comma or a bracket")
		}
	}
}

func (sc *scanner) object() error {
	start := sc.pos
	if err := sc.open(); err != nil {
		return err
	}
	var ph placeholder
	if sc.peek() == '}' {
		return sc.closeObject(start, &ph)
	}
	for {
		sc.space()
		if err := sc.pair(&ph); err != nil {
			return err
		}
		sc.space()
		switch sc.peek() {
		case ',':
			sc.pos++
		case '}':
			return sc.closeObject(start, &ph)
		default:
			return sc.fail("a comma or a brace")
		}
	}
}

func (sc *scanner) pair(ph *placeholder) error {
	if sc.peek() != '"' {
		return sc.fail("a name")
	}
	start := sc.pos
	if err := sc.str(); err != nil {
		return err
	}
	name := sc.data[start:sc.pos]
	sc.space()
	if sc.peek() != ':' {
		return sc.fail("a colon")
	}
	sc.pos++
	sc.space()
	start = sc.pos
	if err := sc.value(); err != nil {
		return err
	}
	if sc.onObject != nil {
		ph.see(name, sc.data[start:sc.pos])
	}
	return nil
}

func (sc *scanner) closeObject(start int, ph *placeholder) error {
	sc.pos++
	sc.depth++
	if sc.onObject == nil || !ph.is {
		return nil
	}
	return sc.onObject(start, sc.pos, ph.num)
}
