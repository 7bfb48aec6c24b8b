package socketio

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Binary is a binary value inside an argument. []byte and Binary as an argument, or nested in
// map[string]any and []any, become attachments; inside structs only Binary does (encoding/json
// has []byte as base64 text, and so it stays).
type Binary []byte

// Args are the arguments of an event or of an acknowledgement, as they came: raw JSON, with
// binaries beside it. They point into the connection's read buffer and are valid only during
// the call that was given them, unless that call's documentation says otherwise: Clone keeps them.
//
// Args and Arg can be emitted again as arguments; binaries go along.
type Args struct {
	list []json.RawMessage
	bin  [][]byte
}

// NewArgs makes Args of raw JSON values, for adapters that get them from elsewhere.
func NewArgs(list []json.RawMessage, attachments [][]byte) Args {
	return Args{list: list, bin: attachments}
}

// Len is the number of arguments.
func (a Args) Len() int { return len(a.list) }

// Arg returns argument i, counted from 0; beyond the last it is null, as in JavaScript.
func (a Args) Arg(i int) Arg {
	if i < 0 || i >= len(a.list) {
		return Arg{}
	}
	return Arg{raw: a.list[i], bin: a.bin}
}

// Values returns the arguments as values that can be emitted again.
func (a Args) Values() []any {
	vs := make([]any, len(a.list))
	for i := range a.list {
		vs[i] = a.Arg(i)
	}
	return vs
}

// Attachments are the binaries that placeholders in the arguments point to.
func (a Args) Attachments() [][]byte { return a.bin }

// Clone copies the arguments out of the read buffer: the copy is valid for good.
func (a Args) Clone() Args {
	n := 0
	for _, r := range a.list {
		n += len(r)
	}
	buf := make([]byte, 0, n)
	list := make([]json.RawMessage, len(a.list))
	for i, r := range a.list {
		at := len(buf)
		buf = append(buf, r...)
		list[i] = buf[at:len(buf):len(buf)]
	}
	// attachments are made for the packet alone by every decoder, so they are kept as they are
	return Args{list: list, bin: a.bin}
}

// Arg is one argument. The zero Arg is null.
type Arg struct {
	raw json.RawMessage
	bin [][]byte
}

// Raw is the argument's JSON; binaries in it are {"_placeholder":true,"num":N}.
func (a Arg) Raw() json.RawMessage {
	if a.raw == nil {
		return json.RawMessage("null")
	}
	return a.raw
}

// IsNull says that the argument is missing or null.
func (a Arg) IsNull() bool { return a.raw == nil || string(a.raw) == "null" }

// Decode stores the argument in v as encoding/json does (lone surrogates become U+FFFD).
// Binaries decode into []byte and Binary; elsewhere (any) they are base64 text.
func (a Arg) Decode(v any) error {
	raw := a.Raw()
	if len(a.bin) > 0 && bytes.Contains(raw, []byte("_placeholder")) {
		var err error
		if raw, err = inlineBinaries(raw, a.bin); err != nil {
			return err
		}
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("socketio: decode argument: %w", err)
	}
	return nil
}

// Binary returns the argument if it is itself a binary.
func (a Arg) Binary() ([]byte, bool) {
	if len(a.bin) == 0 {
		return nil, false
	}
	num, ok := placeholderNum(a.raw)
	if !ok || num >= len(a.bin) {
		return nil, false
	}
	return a.bin[num], true
}
