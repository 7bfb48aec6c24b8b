// Package chat holds what Xabar knows about conversations: the types, the rules,
// the errors, the ports to the outside, and Service, which is every use case.
//
// It decides and does no I/O of its own: persistence remembers (Store), rooms and
// gateway/events deliver (Broadcaster, Presence). Both doors, Socket.IO
// (gateway/events) and HTTP (gateway/httpapi), call the same Service.
//
// The life of a message: Service.Send checks it, Store.Send commits it with the
// next seq of its conversation and an outbox event, the caller is answered, and
// only then Broadcaster.Publish shows it to the members. A recipient's device
// acknowledges (delivered), its user reads (read); both move a position that
// only grows.
package chat
