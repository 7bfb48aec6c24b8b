package httpapi

import (
	"bytes"

	"xabar/chat"
)

// What no honest body has, and what would cost far more to parse than to send: the
// largest description has four levels, the longest list of positions 10,000 entries
// of two numbers, and the longest number 19 digits.
const (
	maxDepth        = 32
	maxSeparators   = 1 << 16 // brackets, commas and colons
	maxNumberLength = 32
	maxExponent     = 3 // digits
)

// defuse looks through a body, without parsing it, for what parsers choke on. It
// finds no errors of JSON; they are the parser's to find.
func defuse(body []byte) error {
	depth, separators := 0, 0
	for i := 0; i < len(body); i++ {
		switch c := body[i]; c {
		case '"':
			i = endOfString(body, i)
		case '{', '[':
			depth++
			separators++
		case '}', ']':
			depth--
		case ',', ':':
			separators++
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			end := endOfNumber(body, i)
			if !smallNumber(body[i:end]) {
				return chat.Errorf(chat.CodeInvalidArgument, "the body has a number that is too long")
			}
			i = end - 1
		}
		if depth > maxDepth || separators > maxSeparators {
			return chat.Errorf(chat.CodeInvalidArgument, "the body has too many parts, or they are nested too deep")
		}
	}
	return nil
}

// endOfString is the index of the closing quote.
func endOfString(body []byte, start int) int {
	for i := start + 1; i < len(body); i++ {
		switch body[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(body)
}

func endOfNumber(body []byte, start int) int {
	for i := start; i < len(body); i++ {
		if !bytes.ContainsRune([]byte("+-.0123456789eE"), rune(body[i])) {
			return i
		}
	}
	return len(body)
}

func smallNumber(number []byte) bool {
	_, exponent, _ := bytes.Cut(bytes.ToLower(number), []byte("e"))
	return len(number) <= maxNumberLength && len(bytes.TrimLeft(exponent, "+-0")) <= maxExponent
}
