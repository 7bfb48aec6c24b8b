package dialect

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"xabar/chat"
)

// conversionKind is a conversion that descriptions may name.
type conversionKind struct {
	arg  func(string) (any, error) // reads what stands behind the colon; nil: nothing may
	from kind                      // what it is for; anyKind: whatever
	to   kind
	do   func(v any, c *conversion, d *Dialect) (any, error)
}

// conversions are all there are. One that does not fit a value at run time leaves it as
// it is: the request then says what is wrong with the field.
var conversions map[string]conversionKind

var conversionNames string

func init() { // not a composite literal: like refers back to templates
	conversions = map[string]conversionKind{
		"cut":          {arg: countArg, do: cut},
		"trim":         {do: trim},
		"text":         {do: toText},
		"number":       {do: toNumber},
		"millis":       {from: timeKind, do: millis},
		"seconds":      {from: timeKind, do: seconds},
		"present":      {do: func(v any, _ *conversion, _ *Dialect) (any, error) { return v != nil, nil }},
		"or":           {arg: literalArg, do: or},
		"oldest-first": {from: messagesKind, to: messagesKind, do: oldestFirst},
		"newest-first": {from: messagesKind, to: messagesKind, do: newestFirst},
		"like":         {arg: textArg, do: like},
	}
	conversionNames = strings.Join(slices.Sorted(maps.Keys(conversions)), ", ")
}

// cut keeps the first characters (code points) of a text.
func cut(v any, c *conversion, _ *Dialect) (any, error) {
	text, ok := v.(string)
	limit := c.arg.(int)
	if !ok || len(text) <= limit || utf8.RuneCountInString(text) <= limit {
		return v, nil
	}
	n := 0
	for i := range text {
		if n == limit {
			return text[:i], nil
		}
		n++
	}
	return text, nil
}

func trim(v any, _ *conversion, _ *Dialect) (any, error) {
	if text, ok := v.(string); ok {
		return strings.TrimSpace(text), nil
	}
	return v, nil
}

func toText(v any, _ *conversion, _ *Dialect) (any, error) {
	switch v := v.(type) {
	case json.Number:
		return v.String(), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	return v, nil
}

// toNumber makes a number of a text that spells an integer.
func toNumber(v any, _ *conversion, _ *Dialect) (any, error) {
	if text, ok := v.(string); ok && isNumber(text) {
		return json.Number(text), nil
	}
	return v, nil
}

func millis(v any, _ *conversion, _ *Dialect) (any, error) {
	if t, ok := v.(chat.Time); ok {
		return t.UnixMilli(), nil
	}
	return v, nil
}

func seconds(v any, _ *conversion, _ *Dialect) (any, error) {
	if t, ok := v.(chat.Time); ok {
		return t.Unix(), nil
	}
	return v, nil
}

func or(v any, c *conversion, _ *Dialect) (any, error) {
	if v == nil {
		return fresh(c.arg), nil
	}
	return v, nil
}

func oldestFirst(v any, _ *conversion, _ *Dialect) (any, error) { return bySeq(v, 1), nil }
func newestFirst(v any, _ *conversion, _ *Dialect) (any, error) { return bySeq(v, -1), nil }

func bySeq(v any, direction int64) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	seq := func(v any) int64 {
		if m, ok := v.(*Message); ok {
			return m.Seq * direction
		}
		return 0
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b any) int { return int(min(max(seq(a)-seq(b), -1), 1)) })
	return list
}

// like gives messages the shape that the server event of that name gives them.
func like(v any, c *conversion, d *Dialect) (any, error) {
	shape := d.Server[c.arg.(string)]
	if shape == nil || len(shape.args) == 0 {
		return nil, fmt.Errorf("dialect %s: no shape %v", d.Name, c.arg)
	}
	switch v := v.(type) {
	case *Message:
		return shape.args[0].encode(v.Values(), d)
	case []any:
		shaped := make([]any, len(v))
		for i, item := range v {
			var err error
			if shaped[i], err = like(item, c, d); err != nil {
				return nil, err
			}
		}
		return shaped, nil
	}
	return v, nil
}
