package dialect

import (
	"encoding/json"

	"xabar/chat"
)

// template is the shape of a value: an object or list of templates, an expression, or
// a constant.
type template struct {
	line     int
	keys     []string // of an object, in the file's order
	object   []*template
	list     []*template
	isList   bool
	expr     *expr
	constant json.RawMessage
	needs    Needs
}

// Needs says what a template asks for that has to be looked up.
type Needs uint8

// What has to be looked up.
const (
	NeedUsers    Needs = 1 << iota // who sent a message, to whom
	NeedReceipts                   // when it was delivered and read
)

// value evaluates the template. Fields that are nothing are left out of objects if
// sparse, as in a request; else they are null.
func (t *template) value(values Values, d *Dialect, sparse bool) (any, error) {
	switch {
	case t.expr != nil:
		return t.expr.eval(values, d)
	case t.constant != nil:
		return t.constant, nil
	case t.isList:
		list := make([]any, len(t.list))
		for i, item := range t.list {
			var err error
			if list[i], err = item.value(values, d, sparse); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	object := make(map[string]any, len(t.keys))
	for i, key := range t.keys {
		v, err := t.object[i].value(values, d, sparse)
		if err != nil {
			return nil, err
		}
		if v != nil || !sparse {
			object[key] = v
		}
	}
	return object, nil
}

// encode is the template's JSON.
func (t *template) encode(values Values, d *Dialect) (json.RawMessage, error) {
	return t.append(make([]byte, 0, 128), values, d)
}

func (t *template) append(b []byte, values Values, d *Dialect) ([]byte, error) {
	switch {
	case t.expr != nil:
		v, err := t.expr.eval(values, d)
		if err != nil {
			return nil, err
		}
		return d.appendValue(b, v)
	case t.constant != nil:
		return append(b, t.constant...), nil
	case t.isList:
		b = append(b, '[')
		for i, item := range t.list {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = item.append(b, values, d); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	}
	b = append(b, '{')
	for i, key := range t.keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(chat.AppendJSONString(b, key), ':')
		var err error
		if b, err = t.object[i].append(b, values, d); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}
