// Package rooms connects sockets with each other: the adapters of Socket.IO namespaces, which
// know who is in which room and carry broadcasts there.
//
// The adapter of a node that runs alone is the one that gateway/socketio brings along, so that
// it can be used without this package; adapters for several nodes embed it for their local
// part. roomstest holds the contract that all of them pass.
package rooms

import "xabar/gateway/socketio"

// Memory makes adapters of a node that runs alone.
func Memory() socketio.AdapterFactory { return socketio.NewMemoryAdapter }
