package dialect

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"xabar/chat"
)

// Mistake is something wrong in a description.
type Mistake struct {
	File string
	Line int // from 1; 0 for the file as a whole
	Text string
}

func (m Mistake) Error() string {
	if m.Line == 0 {
		return m.File + ": " + m.Text
	}
	return fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.Text)
}

// maxFile bounds a description, in bytes.
const maxFile = 256 << 10

// Parse reads and checks a description. The error joins every Mistake that was found.
func Parse(file string, text []byte) (*Dialect, error) {
	if len(text) > maxFile {
		return nil, Mistake{file, 0, fmt.Sprintf("a description has at most %d bytes", maxFile)}
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, Mistake{file, 0, strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	p := &parser{file: file, d: &Dialect{Client: map[string][]*Form{}, Server: map[string]*ServerEvent{}}}
	if len(document.Content) == 0 {
		p.mistake(&document, "the file is empty")
	} else {
		p.dialect(document.Content[0])
	}
	if len(p.mistakes) > 0 {
		slices.SortStableFunc(p.mistakes, func(a, b Mistake) int { return a.Line - b.Line })
		all := make([]error, len(p.mistakes))
		for i, m := range p.mistakes {
			all[i] = m
		}
		return nil, errors.Join(all...)
	}
	return p.d, nil
}

// parser collects mistakes and goes on, so that one look shows all.
type parser struct {
	file     string
	d        *Dialect
	mistakes []Mistake

	remembered scope // names that some event of the dialect remembers
}

func (p *parser) mistake(at *yaml.Node, format string, args ...any) {
	p.mistakes = append(p.mistakes, Mistake{p.file, at.Line, fmt.Sprintf(format, args...)})
}

// entry is one of a mapping.
type entry struct {
	key   *yaml.Node
	value *yaml.Node
}

// entries are a mapping's, each name once. known nil allows any name.
func (p *parser) entries(n *yaml.Node, what string, known []string) []entry {
	if n.Kind == yaml.AliasNode {
		p.mistake(n, "%s: anchors and aliases are not for descriptions", what)
		return nil
	}
	if n.Kind != yaml.MappingNode {
		p.mistake(n, "%s must be a mapping (name: …)", what)
		return nil
	}
	var all []entry
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		e := entry{n.Content[i], n.Content[i+1]}
		switch name := e.key.Value; {
		case e.key.Kind != yaml.ScalarNode:
			p.mistake(e.key, "%s: a name must be a text", what)
			continue
		case seen[name]:
			p.mistake(e.key, "%s has %q twice", what, name)
			continue
		case known != nil && !slices.Contains(known, name):
			p.mistake(e.key, "%s has no %q (it has %s)", what, name, strings.Join(known, ", "))
			continue
		}
		seen[e.key.Value] = true
		all = append(all, e)
	}
	return all
}

// text is a scalar that is no list and no mapping.
func (p *parser) text(n *yaml.Node, what string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		p.mistake(n, "%s must be a text", what)
		return "", false
	}
	return n.Value, true
}

func choose[T any](p *parser, n *yaml.Node, what string, from map[string]T) (chosen T) {
	text, ok := p.text(n, what)
	if !ok {
		return chosen
	}
	v, known := from[text]
	if !known {
		p.mistake(n, "%s: %q is none of %s", what, text, strings.Join(slices.Sorted(maps.Keys(from)), ", "))
	}
	return v
}

var (
	nameForm      = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	namespaceForm = regexp.MustCompile(`^/[A-Za-z0-9._/-]{1,64}$`)
	argForm       = regexp.MustCompile(`^[\p{L}_][\p{L}\p{N}_]*$`)
)

// reserved is the name of the standard events themselves.
const reserved = "standard"

func (p *parser) dialect(n *yaml.Node) {
	sections := map[string]*yaml.Node{}
	for _, e := range p.entries(n, "a description", []string{
		"dialect", "namespace", "users", "messages", "conversations", "error", "client", "server",
	}) {
		sections[e.key.Value] = e.value
	}
	p.head(n, sections)
	if t := sections["error"]; t != nil {
		p.d.failure = p.template(t, "error", errorFields)
	}
	if s := sections["server"]; s != nil {
		for _, e := range p.entries(s, "server", nil) {
			p.serverEvent(e)
		}
	}
	if c := sections["client"]; c != nil {
		p.clientEvents(c)
	} else {
		p.mistake(n, "client is missing: what do clients send?")
	}
}

func (p *parser) head(n *yaml.Node, sections map[string]*yaml.Node) {
	if s := sections["dialect"]; s == nil {
		p.mistake(n, "dialect is missing: the name that clients give in auth.dialect")
	} else if name, ok := p.text(s, "dialect"); ok {
		if p.d.Name = name; !nameForm.MatchString(name) || name == reserved {
			p.mistake(s, "dialect: %q is no name (small letters, digits, dots and hyphens; not %q)", name, reserved)
		}
	}
	if s := sections["namespace"]; s != nil {
		if name, ok := p.text(s, "namespace"); ok {
			if p.d.Namespace = name; !namespaceForm.MatchString(name) {
				p.mistake(s, "namespace: %q is no namespace like /chat", name)
			}
		}
	}
	if s := sections["users"]; s != nil {
		p.d.Users = choose(p, s, "users", map[string]UserNaming{"id": ByID, "external-id": ByExternalID, "external-number": ByExternalNumber})
	}
	if s := sections["messages"]; s != nil {
		p.d.Messages = choose(p, s, "messages", map[string]MessageNaming{"id": ByMessageID, "seq": BySeq, "number": ByNumber})
	}
	if s := sections["conversations"]; s != nil {
		p.d.DirectOnly = choose(p, s, "conversations", map[string]bool{"direct": true, "all": false})
	}
}

func (p *parser) serverEvent(e entry) {
	standard := e.key.Value
	names, known := announcements[standard]
	if !known {
		p.mistake(e.key, "server: there is no standard event %q (there are %s)", standard, strings.Join(slices.Sorted(maps.Keys(announcements)), ", "))
		return
	}
	what := "server." + standard
	event := &ServerEvent{Ack: standard == "message"}
	for _, f := range p.entries(e.value, what, []string{"event", "ack", "args"}) {
		switch f.key.Value {
		case "event":
			event.Name, _ = p.text(f.value, what+".event")
		case "ack":
			if event.Ack = choose(p, f.value, what+".ack", map[string]bool{"true": true, "false": false}); event.Ack && standard != "message" {
				p.mistake(f.value, "%s.ack: only message asks for an acknowledgement", what)
			}
		case "args":
			if f.value.Kind != yaml.SequenceNode {
				p.mistake(f.value, "%s.args must be a list: what stands behind the event's name", what)
				continue
			}
			for i, arg := range f.value.Content {
				event.args = append(event.args, p.template(arg, fmt.Sprintf("%s.args[%d]", what, i), names))
			}
		}
	}
	if event.Name == "" {
		p.mistake(e.key, "%s.event is missing: what is it called?", what)
	}
	p.d.Server[standard] = event
}

// clientEvents reads all of them, once what any of them remembers is known.
func (p *parser) clientEvents(n *yaml.Node) {
	events := p.entries(n, "client", nil)
	p.remembered = scope{}
	for _, e := range events {
		for _, form := range forms(e.value) {
			if form.Kind != yaml.MappingNode {
				continue
			}
			for i := 0; i+1 < len(form.Content); i += 2 {
				if form.Content[i].Value == "remember" {
					for _, r := range p.entries(form.Content[i+1], "remember", nil) {
						p.remembered[r.key.Value] = anyKind
					}
				}
			}
		}
	}
	for _, e := range events {
		list := forms(e.value)
		for i, n := range list {
			what := "client." + e.key.Value
			if len(list) > 1 {
				what += fmt.Sprintf("[%d]", i)
			}
			p.d.Client[e.key.Value] = append(p.d.Client[e.key.Value], p.form(n, what))
		}
	}
}

// forms are an event's: one mapping, or a list of them.
func forms(n *yaml.Node) []*yaml.Node {
	if n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return []*yaml.Node{n}
}

// knownCode says whether errors of this code can come.
func knownCode(code chat.Code) bool { return slices.Contains(chat.Codes(), code) }
