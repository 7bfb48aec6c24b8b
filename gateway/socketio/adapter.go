package socketio

import (
	"context"
	"encoding/json"
	"time"
)

// BroadcastFlags modify a broadcast.
type BroadcastFlags struct {
	Volatile bool          // may be dropped where the transport is not ready
	Local    bool          // this server only
	Compress *bool         // per-message compression; nil is the transport's default
	Timeout  time.Duration // of broadcast acknowledgements; 0: none
}

// BroadcastOptions say whom a broadcast reaches: the sockets in at least one of Rooms (all of
// the namespace if empty), each once, without those in any of Except. A socket's id is a room.
type BroadcastOptions struct {
	Rooms  []string
	Except []string
	Flags  BroadcastFlags
}

// AdapterFactory makes the adapter of a namespace. It runs when the namespace is made, must not
// block and must not call the server.
type AdapterFactory func(ns *Namespace) Adapter

// Adapter knows which sockets of a namespace are in which rooms and carries broadcasts to
// them, on this server and (adapters for several servers) on others. The in-process one is
// MemoryAdapter; others embed it for their local part.
//
// The caller makes sure that calls of AddAll, Del and DelAll for one socket never overlap,
// that a socket's own id is its first room, and that nothing follows its DelAll.
// Everything else is called from any goroutine at any time, on hot paths, and must not block
// on a slow client.
type Adapter interface {
	// AddAll puts a socket into rooms and returns how many of them it was not in.
	AddAll(s *Socket, rooms []string) (added int)
	// Del takes a socket out of a room and says whether it was in it.
	Del(s *Socket, room string) bool
	// DelAll takes a socket out of all rooms.
	DelAll(s *Socket)
	// SocketRooms are the rooms of a socket, in no order.
	SocketRooms(s *Socket) []string

	// Range calls f for each local socket that opts selects until f returns false. The
	// members are those at the moment of the call: joining and leaving meanwhile, also from
	// within f, changes nothing.
	Range(opts *BroadcastOptions, f func(s *Socket) bool)
	// Sockets are the ids of the sockets that opts select, on all servers.
	Sockets(ctx context.Context, opts *BroadcastOptions) ([]string, error)

	// Broadcast delivers a packet to all sockets that opts select, unless Local on all servers.
	Broadcast(p *Prepared, opts *BroadcastOptions) error
	// BroadcastWithAck is Broadcast for a packet whose acknowledgements are wanted. onServer is
	// called once for each server (ServerCount) with the number of sockets there, onAck
	// for each acknowledgement, with arguments that are valid only during the call, until ctx
	// ends. Both may be called from several goroutines, also before the call returns.
	BroadcastWithAck(ctx context.Context, p *Prepared, opts *BroadcastOptions, onServer func(sockets int), onAck func(Args)) error
	// ServerCount is the number of servers of this namespace, this one included.
	ServerCount(ctx context.Context) (int, error)

	// FetchSockets describes the sockets that opts select, on all servers.
	FetchSockets(ctx context.Context, opts *BroadcastOptions) ([]SocketDetails, error)
	// AddSockets makes the selected sockets join rooms, on all servers.
	AddSockets(opts *BroadcastOptions, rooms []string) error
	// DelSockets makes them leave rooms.
	DelSockets(opts *BroadcastOptions, rooms []string) error
	// DisconnectSockets disconnects them; close closes their connections too.
	DisconnectSockets(opts *BroadcastOptions, close bool) error

	// ServerSideEmit sends an event to all other servers.
	ServerSideEmit(event string, args Args) error
	// ServerSideEmitWithAck sends it and collects one answer from each of them. With a
	// ctx that ends before, it returns those that came and ErrAckTimeout.
	ServerSideEmitWithAck(ctx context.Context, event string, args Args) ([]Args, error)

	// Close releases what the adapter holds, when its namespace is closed. Nothing is called after.
	Close() error
}

// SocketDetails describe a socket of this or another server, with the JSON names of Node's
// adapters.
type SocketDetails struct {
	ID        string          `json:"id"`
	Handshake json.RawMessage `json:"handshake"`
	Rooms     []string        `json:"rooms"`
	Data      json.RawMessage `json:"data"`
}
