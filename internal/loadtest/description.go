package loadtest

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v4"
)

//go:embed xabar.yaml
var xabarDescription []byte

// Description says how a server is spoken to. Payloads are JSON with placeholders in
// braces, which stand for JSON values (strings with their quotes). Fields of what
// comes are named by their last name: the first field of that name counts.
type Description struct {
	Name string `yaml:"name"`
	Path string `yaml:"path"` // default /socket.io/
	// Auth is the payload of CONNECT: {token}. SyncAuth is that of clients that call
	// Sync afterwards; Auth if it is absent.
	Auth     string `yaml:"auth"`
	SyncAuth string `yaml:"syncAuth"`

	OpenDirect request `yaml:"openDirect"` // {user}; field: the conversation's id
	OpenGroup  request `yaml:"openGroup"`  // {title}, {users}; field: the conversation's id
	Send       request `yaml:"send"`       // {conversation}, {id}, {text}; field: seq
	Message    event   `yaml:"message"`
	Delivered  event   `yaml:"delivered"` // to the sender; without a name: not checked
	Read       request `yaml:"read"`      // {conversation}, {seq}
	ReadBy     event   `yaml:"readBy"`    // to the sender
	Typing     request `yaml:"typing"`    // {conversation}; no answer
	TypingBy   event   `yaml:"typingBy"`
	History    request `yaml:"history"` // {conversation}, {limit}
	Sync       request `yaml:"sync"`    // {positions}: an object of seqs by conversation
	// Confirm tells the server what the answer to Sync has brought: {conversation}, {seq}.
	Confirm request `yaml:"confirm"`
	// Okay is what an answer contains that is a success.
	Okay string `yaml:"okay"`
}

// request is an event that clients emit.
type request struct {
	Event   string `yaml:"event"`
	Payload string `yaml:"payload"`
	Field   string `yaml:"field"` // of the answer
}

// event is one that clients hear.
type event struct {
	Event        string `yaml:"event"`
	Conversation string `yaml:"conversation"` // field
	Seq          string `yaml:"seq"`          // field
	Text         string `yaml:"text"`         // field
	Ack          string `yaml:"ack"`          // what recipients acknowledge with, JSON: {user}; default nothing
}

// Xabar describes a Xabar gateway.
func Xabar() *Description {
	d, err := parseDescription(xabarDescription)
	if err != nil {
		panic(err) // it is part of the binary
	}
	return d
}

// ReadDescription reads a file (YAML). Errors: those of the file, an unknown or
// missing field.
func ReadDescription(path string) (*Description, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d, err := parseDescription(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

func parseDescription(text []byte) (*Description, error) {
	d := &Description{}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	decoder.KnownFields(true)
	if err := decoder.Decode(d); err != nil {
		return nil, err
	}
	if d.SyncAuth == "" {
		d.SyncAuth = d.Auth
	}
	var missing []string
	for name, value := range map[string]string{
		"name": d.Name, "send.event": d.Send.Event, "send.payload": d.Send.Payload, "send.field": d.Send.Field,
		"message.event": d.Message.Event, "message.seq": d.Message.Seq, "message.text": d.Message.Text,
		"openDirect.event": d.OpenDirect.Event, "openDirect.field": d.OpenDirect.Field, "okay": d.Okay,
	} {
		if value == "" {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return nil, errors.New("missing: " + strings.Join(missing, ", "))
	}
	return d, nil
}

// fill puts values, JSON, into a payload: pairs of a placeholder's name and its value.
func (r request) fill(pairs ...string) []byte {
	out := make([]byte, 0, len(r.Payload)+128)
	for rest := r.Payload; ; {
		open := strings.IndexByte(rest, '{')
		if open < 0 {
			return append(out, rest...)
		}
		out = append(out, rest[:open]...)
		rest = rest[open:]
		if value, size := placeholder(rest, pairs); size > 0 {
			out, rest = append(out, value...), rest[size:]
		} else {
			out, rest = append(out, '{'), rest[1:]
		}
	}
}

func placeholder(text string, pairs []string) (value string, size int) {
	for i := 0; i < len(pairs); i += 2 {
		if name := pairs[i]; len(text) > len(name)+1 && text[1:1+len(name)] == name && text[1+len(name)] == '}' {
			return pairs[i+1], len(name) + 2
		}
	}
	return "", 0
}
