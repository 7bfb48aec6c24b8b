package dialect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"xabar/chat"
)

// form reads one form of a client's event.
func (p *parser) form(n *yaml.Node, what string) *Form {
	f := &Form{}
	parts := map[string]*yaml.Node{}
	for _, e := range p.entries(n, what, []string{
		"args", "when", "event", "payload", "remember", "skip-own", "answer", "errors",
	}) {
		parts[e.key.Value] = e.value
	}
	names := p.formArgs(f, parts["args"], what)
	p.formWhen(f, parts["when"], what)
	f.remember = p.exprs(parts["remember"], what+".remember", names)
	var standard request
	if e := parts["event"]; e != nil {
		if f.Event, _ = p.text(e, what+".event"); f.Event != "" {
			var known bool
			if standard, known = requests[f.Event]; !known {
				p.mistake(e, "%s: there is no standard event %q (there are %s)", what, f.Event, strings.Join(slices.Sorted(maps.Keys(requests)), ", "))
				return f
			}
		}
		p.payload(f, parts["payload"], what+".payload", standard, names)
	} else if parts["payload"] != nil {
		p.mistake(parts["payload"], "%s.payload is of no use without event", what)
	}
	if s := parts["skip-own"]; s != nil {
		if f.SkipOwn = choose(p, s, what+".skip-own", map[string]bool{"true": true, "false": false}); f.SkipOwn && f.refs[RefMessage] == nil {
			p.mistake(s, "%s.skip-own needs message in the payload", what)
		}
	}
	p.answer(f, parts, what, standard, names)
	return f
}

// formArgs are the names of the positional arguments.
func (p *parser) formArgs(f *Form, n *yaml.Node, what string) scope {
	names := maps.Clone(p.remembered)
	if n == nil {
		return names
	}
	if n.Kind != yaml.SequenceNode {
		p.mistake(n, "%s.args must be a list of names, one for each argument", what)
		return names
	}
	for _, item := range n.Content {
		name, ok := p.text(item, what+".args")
		switch {
		case !ok:
			continue
		case !argForm.MatchString(name):
			p.mistake(item, "%s.args: %q is no name (letters, digits and _)", what, name)
		case slices.Contains(f.args, name):
			p.mistake(item, "%s.args has %q twice", what, name)
		}
		f.args = append(f.args, name)
		names[name] = anyKind
	}
	return names
}

var argTypes = map[string]argType{
	"number": "number", "text": "text", "boolean": "boolean", "object": "object", "list": "list", "nothing": "nothing",
}

func (p *parser) formWhen(f *Form, n *yaml.Node, what string) {
	if n == nil {
		return
	}
	f.when = map[string]argType{}
	for _, e := range p.entries(n, what+".when", nil) {
		if !slices.Contains(f.args, e.key.Value) {
			p.mistake(e.key, "%s.when: %q is none of the args", what, e.key.Value)
			continue
		}
		f.when[e.key.Value] = choose(p, e.value, what+".when."+e.key.Value, argTypes)
	}
}

// exprs reads a mapping of expressions.
func (p *parser) exprs(n *yaml.Node, what string, names scope) map[string]*expr {
	if n == nil {
		return nil
	}
	all := map[string]*expr{}
	for _, e := range p.entries(n, what, nil) {
		if !argForm.MatchString(e.key.Value) {
			p.mistake(e.key, "%s: %q is no name (letters, digits and _)", what, e.key.Value)
		}
		if t := p.template(e.value, what+"."+e.key.Value, names); t.expr != nil {
			all[e.key.Value] = t.expr
		} else {
			p.mistake(e.value, "%s.%s must be an expression", what, e.key.Value)
		}
	}
	return all
}

// payload reads a request's fields, and apart from them what has to be looked up.
func (p *parser) payload(f *Form, n *yaml.Node, what string, standard request, names scope) {
	f.payload, f.refs = &template{}, map[string]*expr{}
	if n == nil {
		return
	}
	f.payload.line = n.Line
	known := slices.Concat(standard.fields, standard.refs)
	for _, e := range p.entries(n, what, known) {
		name := e.key.Value
		t := p.template(e.value, what+"."+name, names)
		if !slices.Contains(standard.refs, name) {
			f.payload.keys = append(f.payload.keys, name)
			f.payload.object = append(f.payload.object, t)
			continue
		}
		if t.expr == nil {
			p.mistake(e.value, "%s.%s must be an expression", what, name)
			continue
		}
		if name != RefPeer && p.d.Messages != ByNumber {
			p.mistake(e.key, "%s.%s: a message is looked up by its number; say messages: number, or name its conversationId and seq", what, name)
		}
		f.refs[name] = t.expr
	}
}

// answer reads what goes into the callback: it may speak of the arguments and of our
// answer.
func (p *parser) answer(f *Form, parts map[string]*yaml.Node, what string, standard request, names scope) {
	if a := parts["answer"]; a != nil {
		maps.Copy(names, standard.answer)
		if f.Event != "" && standard.answer == nil {
			p.mistake(a, "%s.answer: %s has no answer", what, f.Event)
		}
		f.answer = p.template(a, what+".answer", names)
	}
	e := parts["errors"]
	if e == nil {
		return
	}
	if f.answer == nil {
		p.mistake(e, "%s.errors is of no use without answer", what)
	}
	f.errors = map[chat.Code]*template{}
	for _, one := range p.entries(e, what+".errors", nil) {
		code := chat.Code(one.key.Value)
		if !knownCode(code) {
			p.mistake(one.key, "%s.errors: there is no error code %q", what, code)
		}
		f.errors[code] = p.template(one.value, fmt.Sprintf("%s.errors.%s", what, code), errorFields)
	}
}
