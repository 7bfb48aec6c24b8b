// Package dialect describes vocabularies: event names and payloads that clients in
// the field already speak, and how they map onto the standard events. A description
// is a YAML file (docs/guides/dialects.md shows how to write one); Parse checks it
// and names every mistake by its line, Load reads the shipped ones and a folder.
//
// The package knows no socket and no database. gateway/events asks it two things: a
// Form turns the arguments of a client's event into the payload of a standard
// request (Payload) and its answer into what the client expects (Answer); a
// ServerEvent turns what a standard event says into arguments (Args). Both evaluate
// templates (template.go) of expressions (expr.go) over Values (values.go).
//
// A Dialect never changes after Parse and is safe for concurrent use.
package dialect
