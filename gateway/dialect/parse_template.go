package dialect

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// template reads a shape whose expressions may begin with the names. It is never nil,
// so that the check goes on behind a mistake.
func (p *parser) template(n *yaml.Node, what string, names scope) *template {
	t := &template{line: n.Line}
	switch n.Kind {
	case yaml.MappingNode:
		for _, e := range p.entries(n, what, nil) {
			field := p.template(e.value, what+"."+e.key.Value, names)
			t.keys, t.object = append(t.keys, e.key.Value), append(t.object, field)
			t.needs |= field.needs
		}
	case yaml.SequenceNode:
		t.isList = true
		for i, item := range n.Content {
			one := p.template(item, fmt.Sprintf("%s[%d]", what, i), names)
			t.list = append(t.list, one)
			t.needs |= one.needs
		}
	case yaml.ScalarNode:
		if n.Tag != "!!str" {
			p.constant(t, n, what)
			break
		}
		e, err := parseExpr(n.Value)
		if err != nil {
			p.mistake(n, "%s: %v", what, err)
			break
		}
		t.expr = e
		t.needs = p.check(n, what, e, names)
	default:
		p.mistake(n, "%s: anchors and aliases are not for descriptions", what)
	}
	return t
}

// constant is a number, true, false or null.
func (p *parser) constant(t *template, n *yaml.Node, what string) {
	var v any
	err := n.Decode(&v)
	if err == nil {
		t.constant, err = json.Marshal(v)
	}
	if err != nil {
		p.mistake(n, "%s: %q is not understood", what, n.Value)
	}
}

// check looks at an expression's names and conversions, and returns what it needs.
func (p *parser) check(n *yaml.Node, what string, e *expr, names scope) Needs {
	at, needs := plainKind, Needs(0)
	if e.path != nil {
		at = anyKind
		for _, name := range e.path {
			if names == nil {
				break // nothing is known of what is in there
			}
			next, ok := names[name]
			if !ok {
				p.unknownName(n, what, name, names)
				return 0
			}
			if next == userKind {
				needs |= NeedUsers
			}
			if name == "deliveredAt" || name == "readAt" {
				needs |= NeedReceipts
			}
			at, names = next, next.fields()
		}
	}
	for i := range e.convert {
		c := &e.convert[i]
		known := conversions[c.name]
		if known.from != anyKind && at != anyKind && at != known.from {
			p.mistake(n, "%s: %s is not for what stands before it", what, c.name)
		}
		if c.name == "like" {
			needs |= p.checkLike(n, what, c)
		}
		if c.name != "or" {
			at = known.to
		}
	}
	return needs
}

func (p *parser) unknownName(n *yaml.Node, what, name string, names scope) {
	if len(names) == 0 {
		p.mistake(n, "%s: there is nothing called %q here", what, name)
		return
	}
	p.mistake(n, "%s: there is nothing called %q here (there are %s)", what, name, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
}

func (p *parser) checkLike(n *yaml.Node, what string, c *conversion) Needs {
	shape := p.d.Server[c.arg.(string)]
	if name := c.arg.(string); name != "message" && name != "message:changed" || shape == nil || len(shape.args) == 0 {
		p.mistake(n, "%s: like:%s needs server.%s with an argument that shows a message", what, name, name)
		return 0
	}
	return shape.args[0].needs
}
