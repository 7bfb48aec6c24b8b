package text

import (
	"strings"

	"golang.org/x/text/unicode/bidi"
)

// First Strong Isolate and its end (UAX #9, 2.4).
const (
	fsi = "\u2068"
	pdi = "\u2069"
)

// Isolate makes s safe to stand beside other text whatever directions it has: an
// override inside of it ends with it, and its own direction does not reorder its
// neighbours. Text that runs from left to right alone is returned as it is. An
// isolate's end that s did not begin is left out, since it would end the one around s.
func Isolate(s string) string {
	if !turns(s) {
		return s
	}
	var b strings.Builder
	b.WriteString(fsi)
	open := 0
	for _, r := range s {
		switch class(r) {
		case bidi.LRI, bidi.RLI, bidi.FSI:
			open++
		case bidi.PDI:
			if open == 0 {
				continue
			}
			open--
		}
		b.WriteRune(r)
	}
	b.WriteString(strings.Repeat(pdi, open+1))
	return b.String()
}

// turns says whether s has anything that is not written from left to right.
func turns(s string) bool {
	for _, r := range s {
		switch class(r) {
		case bidi.R, bidi.AL, bidi.LRE, bidi.RLE, bidi.LRO, bidi.RLO, bidi.PDF, bidi.LRI, bidi.RLI, bidi.FSI, bidi.PDI:
			return true
		}
	}
	return false
}

func class(r rune) bidi.Class {
	const firstRightToLeft = 0x590
	if r < firstRightToLeft {
		return bidi.L
	}
	properties, _ := bidi.LookupRune(r)
	return properties.Class()
}
