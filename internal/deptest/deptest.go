// Package deptest holds the rules of who may import whom, as a test. They are the
// package map in code: `chat` decides, `persistence` remembers, `rooms` connects,
// `gateway` speaks, `cmd` wires, and imports point down to `chat`.
package deptest
