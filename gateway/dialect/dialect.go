package dialect

import (
	"encoding/json"

	"xabar/chat"
)

// Dialect is a vocabulary.
type Dialect struct {
	Name      string
	Namespace string // clients that connect to it speak the dialect; "" for none
	Users     UserNaming
	Messages  MessageNaming
	// DirectOnly says that the vocabulary has no groups: nothing of them is shown.
	DirectOnly bool
	Client     map[string][]*Form      // what clients send, in its forms
	Server     map[string]*ServerEvent // what the server sends, by our name

	failure *template // the shape of an error answer; nil: as the standard one
}

// Form is one form of an event that clients send.
type Form struct {
	Event   string // the standard event; "" where nothing is asked of the server
	SkipOwn bool   // nothing happens to a message of the caller's own

	args     []string
	when     map[string]argType
	payload  *template // an object without its refs; nil with Event ""
	refs     map[string]*expr
	remember map[string]*expr
	answer   *template // nil: it has none, nor error answers
	errors   map[chat.Code]*template
}

// ServerEvent is how a dialect is told of a standard event.
type ServerEvent struct {
	Name string // of the dialect's event
	Ack  bool   // it asks for an acknowledgement
	args []*template
}

// Call is a client's event, turned into a standard request.
type Call struct {
	Payload  json.RawMessage // an object, without what Refs stand for
	Refs     map[string]any  // by name: what is to be looked up, as the client wrote it
	Remember map[string]any  // what the socket is to remember, by name
	Values   Values          // the arguments and what was remembered, for the answer
}

// Form finds the form that fits the arguments; nil if none does.
func (d *Dialect) Form(event string, args []any) *Form {
	for _, f := range d.Client[event] {
		if f.fits(args) {
			return f
		}
	}
	return nil
}

// Answers says whether the event has an answer, in any of its forms.
func (d *Dialect) Answers(event string) bool {
	for _, f := range d.Client[event] {
		if f.answer != nil {
			return true
		}
	}
	return false
}

// Handles says whether some event of the dialect becomes this standard one.
func (d *Dialect) Handles(standard string) bool {
	for _, forms := range d.Client {
		for _, f := range forms {
			if f.Event == standard {
				return true
			}
		}
	}
	return false
}

func (f *Form) fits(args []any) bool {
	for i, name := range f.args {
		if want, ok := f.when[name]; ok && !want.is(arg(args, i)) {
			return false
		}
	}
	return true
}

func arg(args []any, i int) any {
	if i < len(args) {
		return args[i]
	}
	return nil
}

// Call evaluates the form. remembered is what the socket was told to remember before.
// The arguments are JSON as encoding/json decodes it, with json.Number.
func (f *Form) Call(d *Dialect, args []any, remembered map[string]any) (Call, error) {
	values := make(Values, len(f.args)+len(remembered))
	for name, v := range remembered {
		values[name] = v
	}
	for i, name := range f.args {
		values[name] = arg(args, i)
	}
	call := Call{Values: values}
	var err error
	if call.Remember, err = evalAll(f.remember, values, d); err != nil {
		return call, err
	}
	if call.Refs, err = evalAll(f.refs, values, d); err != nil || f.payload == nil {
		return call, err
	}
	payload, err := f.payload.value(values, d, true)
	if err != nil {
		return call, err
	}
	call.Payload, err = d.appendValue(nil, payload)
	return call, err
}

func evalAll(exprs map[string]*expr, values Values, d *Dialect) (map[string]any, error) {
	if len(exprs) == 0 {
		return nil, nil
	}
	all := make(map[string]any, len(exprs))
	for name, e := range exprs {
		v, err := e.eval(values, d)
		if err != nil {
			return nil, err
		}
		all[name] = v
	}
	return all, nil
}

// FieldName is what the client knows one of our fields as.
func (f *Form) FieldName(field string) string {
	if e := f.refs[field]; e != nil {
		return e.source()
	}
	if f.payload == nil {
		return field
	}
	for i, key := range f.payload.keys {
		if e := f.payload.object[i].expr; key == field && e != nil && e.path != nil {
			return e.source()
		}
	}
	return field
}

// HasAnswer says whether the form answers at all; without, errors are silent too.
func (f *Form) HasAnswer() bool { return f.answer != nil }

// AnswerNeeds says what an answer asks for that has to be looked up.
func (f *Form) AnswerNeeds() Needs {
	if f.answer == nil {
		return 0
	}
	return f.answer.needs
}

// Answer shapes an answer.
func (f *Form) Answer(d *Dialect, values Values) (json.RawMessage, error) {
	return f.answer.encode(values, d)
}

// Failure shapes an error answer of a form, or of an event that fits no form (nil).
// ok is false where the dialect has no shape of its own for it.
func (d *Dialect) Failure(f *Form, code chat.Code, values Values) (answer json.RawMessage, ok bool, err error) {
	t := d.failure
	if f != nil && f.errors[code] != nil {
		t = f.errors[code]
	}
	if t == nil {
		return nil, false, nil
	}
	answer, err = t.encode(values, d)
	return answer, true, err
}

// Needs says what the event's arguments ask for that has to be looked up.
func (e *ServerEvent) Needs() Needs {
	var all Needs
	for _, t := range e.args {
		all |= t.needs
	}
	return all
}

// Args are the event's arguments as the inside of a JSON array.
func (e *ServerEvent) Args(d *Dialect, values Values) ([]byte, error) {
	b := make([]byte, 0, 192)
	for i, t := range e.args {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = t.append(b, values, d); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// argType is a JSON type, for the choice between forms.
type argType string

func (t argType) is(v any) bool {
	switch v.(type) {
	case nil:
		return t == "nothing"
	case bool:
		return t == "boolean"
	case string:
		return t == "text"
	case json.Number:
		return t == "number"
	case []any:
		return t == "list"
	case map[string]any:
		return t == "object"
	}
	return false
}
