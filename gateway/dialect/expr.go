package dialect

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"xabar/chat"
)

// expr is `source | conversion | conversion:argument`. The source is a path of names
// (xat.matn), a 'text', or new-id.
type expr struct {
	path     []string // nil for a constant
	constant any      // or newID
	convert  []conversion
}

type conversion struct {
	name string
	arg  any // what stands behind the colon, as the conversion wants it
	do   func(v any, c *conversion, d *Dialect) (any, error)
}

// newID is a source and an argument of `or`: a new id at each evaluation.
type newID struct{}

// parseExpr reads an expression; what it means is checked by whoever knows its names.
func parseExpr(text string) (*expr, error) {
	parts := splitOutside(text, '|')
	e := &expr{}
	source := strings.TrimSpace(parts[0])
	switch literal, ok := parseLiteral(source); {
	case source == "":
		return nil, fmt.Errorf("%q begins with nothing", text)
	case ok && (source[0] == '\'' || source == "new-id"):
		e.constant = literal
	default:
		e.path = strings.Split(source, ".")
		for _, name := range e.path {
			if name == "" || strings.ContainsAny(name, " '\t:") {
				return nil, fmt.Errorf("%q is no name, nor names joined by dots", source)
			}
		}
	}
	for _, part := range parts[1:] {
		c, err := parseConversion(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		e.convert = append(e.convert, c)
	}
	return e, nil
}

// splitOutside splits at a separator that stands in no quotes.
func splitOutside(text string, separator byte) []string {
	var parts []string
	quoted, from := false, 0
	for i := range len(text) {
		switch text[i] {
		case '\'':
			quoted = !quoted
		case separator:
			if !quoted {
				parts = append(parts, text[from:i])
				from = i + 1
			}
		}
	}
	return append(parts, text[from:])
}

// parseLiteral reads 'text', a number, true, false, null, [] or new-id.
func parseLiteral(text string) (any, bool) {
	switch {
	case text == "true":
		return true, true
	case text == "false":
		return false, true
	case text == "null":
		return nil, true
	case text == "[]":
		return []any{}, true
	case text == "new-id":
		return newID{}, true
	case len(text) >= 2 && text[0] == '\'' && text[len(text)-1] == '\'':
		return text[1 : len(text)-1], true
	}
	if json.Valid([]byte(text)) && text[0] != '"' && text[0] != '{' && text[0] != '[' {
		return json.Number(text), true
	}
	return nil, false
}

func parseConversion(text string) (conversion, error) {
	name, arg, has := strings.Cut(text, ":")
	known, ok := conversions[name]
	if !ok {
		return conversion{}, fmt.Errorf("there is no conversion %q (there are %s)", name, conversionNames)
	}
	c := conversion{name: name, do: known.do}
	if known.arg == nil {
		if has {
			return c, fmt.Errorf("%s takes nothing behind it", name)
		}
		return c, nil
	}
	var err error
	if c.arg, err = known.arg(arg); err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

func countArg(text string) (any, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("%q is no count; it is written like cut:2000", text)
	}
	return n, nil
}

func literalArg(text string) (any, error) {
	if v, ok := parseLiteral(text); ok {
		return v, nil
	}
	return nil, fmt.Errorf("%q is neither a 'text' nor a number, true, false, null, [] or new-id", text)
}

func textArg(text string) (any, error) {
	if text == "" {
		return nil, fmt.Errorf("a name is missing behind the colon")
	}
	return text, nil
}

// eval is the expression's value; nil is nothing.
func (e *expr) eval(values Values, d *Dialect) (any, error) {
	v := e.constant
	if e.path != nil {
		v = values.get(e.path[0])
		for _, name := range e.path[1:] {
			v = step(v, name)
		}
	}
	v = fresh(v)
	for i := range e.convert {
		c := &e.convert[i]
		var err error
		if v, err = c.do(v, c, d); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func fresh(v any) any {
	if _, ok := v.(newID); ok {
		return chat.NewID().String()
	}
	return v
}

// source is how the expression's path is written, without its first name (that of an
// argument) if there are more: what a client knows the field as.
func (e *expr) source() string {
	if len(e.path) > 1 {
		return strings.Join(e.path[1:], ".")
	}
	return strings.Join(e.path, ".")
}
