// Package rooms connects sockets with each other, on one node or on several.
//
// Memory makes the Socket.IO adapters of a node that runs alone, and MemoryPresence knows who
// is online there.
//
// Redis does it for several nodes. Open it with a URL and take from it, before Run:
//
//   - Adapters: the Socket.IO adapters, with the wire format of Node's own Redis adapters, so
//     that Node servers and @socket.io/redis-emitter reach the clients of this node and the other
//     way round. A room has a channel, heard while the room has members here.
//   - Presence: who is online on any node. presence_redis.go says how it is kept.
//   - Bus: the chat.Broadcaster that delivers here and to the nodes that hold somebody
//     concerned, in an envelope of our own (envelope.go).
//
// # From a room to a subscription
//
// A subscriber knows all channels; each belongs to a sink (an adapter, the bus, presence, the
// probe) and to a link, which keeps one connection alive. Nobody counts references: whoever
// changes something touches the channel, and the link asks the sink whether it wants the
// channel just before it sends SUBSCRIBE or UNSUBSCRIBE, hundreds at a time. A link that has lost
// its connection does the same with all channels on the next one, and then tells OnRecovered.
//
// # Goroutines and locks
//
// Run owns all goroutines: publisher, probe, presence, recoveries, and for each link one that
// reads and one that writes. What runs application code for other servers has goroutines of its
// own, which Run waits for. A sink's receive runs on the link's reader and must not wait. Locks:
// subscriber.mu, then those of sinks and of the memory adapter.
//
// roomstest holds the contract that all adapters pass.
package rooms

import "xabar/gateway/socketio"

// Memory makes adapters of a node that runs alone.
func Memory() socketio.AdapterFactory { return socketio.NewMemoryAdapter }
