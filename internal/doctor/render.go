package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// JSON writes the report for programs.
func (r *Report) JSON(w io.Writer, version string) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(struct {
		Version  string    `json:"version"`
		OK       bool      `json:"ok"`
		Problems int       `json:"problems"`
		Warnings int       `json:"warnings"`
		Findings []Finding `json:"findings"`
	}{version, r.Count(Problem) == 0, r.Count(Problem), r.Count(Warning), r.findings})
}

// Text writes the report for people: on a terminal under headings, in columns and colours, elsewhere
// one plain line for each finding.
func (r *Report) Text(w io.Writer, terminal, colour bool) error {
	var b strings.Builder
	if terminal {
		r.columns(&b, colour)
	} else {
		r.lines(&b)
	}
	fmt.Fprintf(&b, "\n%s\n", r.Summary())
	_, err := io.WriteString(w, b.String())
	return err
}

// Summary counts.
func (r *Report) Summary() string {
	count := func(n int, one string) string {
		if n == 1 {
			return "1 " + one
		}
		return fmt.Sprintf("%d %ss", n, one)
	}
	return fmt.Sprintf("%s, %s, %d ok.", count(r.Count(Problem), "problem"), count(r.Count(Warning), "warning"), r.Count(OK))
}

func (r *Report) lines(b *strings.Builder) {
	for _, f := range r.findings {
		fmt.Fprintf(b, "%-7s  %s, %s: %s", f.Level, f.Section, f.Name, f.Found)
		if f.Do != "" {
			fmt.Fprintf(b, " -> %s", f.Do)
		}
		b.WriteByte('\n')
	}
}

// The columns of a terminal.
const (
	levelWidth = 7
	textWidth  = 100 // of a whole line
)

var colours = map[Level]string{OK: "\x1b[32m", Warning: "\x1b[33m", Problem: "\x1b[1;31m"}

const (
	bold  = "\x1b[1m"
	plain = "\x1b[0m"
)

func (r *Report) columns(b *strings.Builder, colour bool) {
	paint := func(how, text string) string {
		if !colour || how == "" {
			return text
		}
		return how + text + plain
	}
	names := 0
	for _, f := range r.findings {
		names = max(names, utf8.RuneCountInString(f.Name))
	}
	indent := 2 + levelWidth + 2 + names + 2
	last := ""
	for _, f := range r.findings {
		if f.Section != last {
			fmt.Fprintf(b, "\n%s\n", paint(bold, capital(f.Section)))
			last = f.Section
		}
		fmt.Fprintf(b, "  %s  %s  ", paint(colours[f.Level], pad(string(f.Level), levelWidth)), pad(f.Name, names))
		wrap(b, f.Found, indent)
		if f.Do != "" {
			fmt.Fprintf(b, "%s", strings.Repeat(" ", indent))
			wrap(b, "→ "+f.Do, indent+2)
		}
	}
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

// wrap writes words; lines after the first one begin at indent.
func wrap(b *strings.Builder, text string, indent int) {
	at := indent
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+n > textWidth:
			fmt.Fprintf(b, "\n%s", strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	b.WriteByte('\n')
}
