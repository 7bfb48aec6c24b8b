package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

const ellipsis = "…"

// plain puts s on one line: each run of white space is one space, other control
// characters go.
func plain(s string) string {
	words := strings.FieldsFunc(s, unicode.IsSpace)
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.Join(words, " "))
}

// cut shortens s to at most limit code points, the ellipsis that then ends it
// included. It never cuts inside of what people see as one character; of one that is
// longer than the limit by itself nothing is left.
func cut(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	room := limit - utf8.RuneCountInString(ellipsis)
	end, state := 0, -1
	for rest := s; rest != ""; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if room -= utf8.RuneCountInString(cluster); room < 0 {
			break
		}
		end += len(cluster)
	}
	return strings.TrimRight(s[:end], " ") + ellipsis
}
