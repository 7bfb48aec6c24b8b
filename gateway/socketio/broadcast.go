package socketio

import (
	"context"
	"slices"
	"time"
)

// BroadcastOperator selects sockets of a namespace and how to reach them. It is immutable:
// each method returns a new one, so that a selection can be kept and shared.
type BroadcastOperator struct {
	ns   *Namespace
	opts BroadcastOptions
}

func (b *BroadcastOperator) with(f func(o *BroadcastOptions)) *BroadcastOperator {
	c := *b
	f(&c.opts)
	return &c
}

func addRooms(have, more []string) []string {
	list := have[:len(have):len(have)]
	for _, r := range more {
		if !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}

// To selects the sockets in at least one of rooms, each once. Called again it adds rooms.
func (b *BroadcastOperator) To(rooms ...string) *BroadcastOperator {
	return b.with(func(o *BroadcastOptions) { o.Rooms = addRooms(o.Rooms, rooms) })
}

// In is To.
func (b *BroadcastOperator) In(rooms ...string) *BroadcastOperator { return b.To(rooms...) }

// Except takes the sockets in any of rooms out of the selection.
func (b *BroadcastOperator) Except(rooms ...string) *BroadcastOperator {
	return b.with(func(o *BroadcastOptions) { o.Except = addRooms(o.Except, rooms) })
}

// Local limits the selection to this server.
func (b *BroadcastOperator) Local() *BroadcastOperator {
	return b.with(func(o *BroadcastOptions) { o.Flags.Local = true })
}

// Volatile drops the event where the transport is not ready.
func (b *BroadcastOperator) Volatile() *BroadcastOperator {
	return b.with(func(o *BroadcastOptions) { o.Flags.Volatile = true })
}

// Compress switches per-message compression.
func (b *BroadcastOperator) Compress(on bool) *BroadcastOperator {
	return b.with(func(o *BroadcastOptions) { o.Flags.Compress = &on })
}

// Timeout bounds the wait of EmitWithAck.
func (b *BroadcastOperator) Timeout(d time.Duration) *BroadcastOperator {
	return b.with(func(o *BroadcastOptions) { o.Flags.Timeout = d })
}

// Emit sends an event to the selected sockets. It is encoded once. It never waits for the
// network. Errors: ErrReservedEvent, ErrTooManyAttachments, of the encoding, of the adapter.
func (b *BroadcastOperator) Emit(event string, args ...any) error {
	if r := b.ns.recovery; r != nil && !b.opts.Flags.Volatile {
		return r.emit(nil, event, args, &b.opts)
	}
	p, err := b.ns.prepare(event, nil, &b.opts.Flags, args)
	if err != nil {
		return err
	}
	return b.EmitPrepared(p)
}

// EmitPrepared sends a prepared event of the same namespace to the selected sockets.
func (b *BroadcastOperator) EmitPrepared(p *Prepared) error {
	return b.ns.adapter.Broadcast(p, &b.opts)
}

// AllSockets are the ids of the selected sockets, on all servers.
func (b *BroadcastOperator) AllSockets(ctx context.Context) ([]string, error) {
	return b.ns.adapter.Sockets(ctx, &b.opts)
}

// FetchSockets describes the selected sockets, on all servers.
func (b *BroadcastOperator) FetchSockets(ctx context.Context) ([]*RemoteSocket, error) {
	details, err := b.ns.adapter.FetchSockets(ctx, &b.opts)
	if err != nil {
		return nil, err
	}
	list := make([]*RemoteSocket, len(details))
	for i, d := range details {
		list[i] = &RemoteSocket{SocketDetails: d, ns: b.ns}
	}
	return list, nil
}

// SocketsJoin makes the selected sockets join rooms.
func (b *BroadcastOperator) SocketsJoin(rooms ...string) error {
	return b.ns.adapter.AddSockets(&b.opts, rooms)
}

// SocketsLeave makes them leave rooms.
func (b *BroadcastOperator) SocketsLeave(rooms ...string) error {
	return b.ns.adapter.DelSockets(&b.opts, rooms)
}

// DisconnectSockets disconnects them; close closes their connections too.
func (b *BroadcastOperator) DisconnectSockets(close bool) error {
	return b.ns.adapter.DisconnectSockets(&b.opts, close)
}

// Range calls f for each selected socket of this server until it returns false.
func (b *BroadcastOperator) Range(f func(s *Socket) bool) { b.ns.adapter.Range(&b.opts, f) }

// RemoteSocket is a socket of any server of the cluster, as FetchSockets found it.
type RemoteSocket struct {
	SocketDetails
	ns *Namespace
}

func (r *RemoteSocket) operator() *BroadcastOperator { return r.ns.To(r.ID) }

// Emit sends an event to the socket.
func (r *RemoteSocket) Emit(event string, args ...any) error {
	return r.operator().Emit(event, args...)
}

// EmitWithAck sends an event to the socket and waits for its acknowledgement or the end of
// ctx (ErrAckTimeout).
func (r *RemoteSocket) EmitWithAck(ctx context.Context, event string, args ...any) (Args, error) {
	all, err := r.operator().EmitWithAck(ctx, event, args...)
	if err != nil || len(all) == 0 {
		return Args{}, err
	}
	return all[0], nil
}

// Join makes the socket join rooms.
func (r *RemoteSocket) Join(rooms ...string) error { return r.operator().SocketsJoin(rooms...) }

// Leave makes the socket leave a room.
func (r *RemoteSocket) Leave(room string) error { return r.operator().SocketsLeave(room) }

// Disconnect disconnects the socket; close closes its connection too.
func (r *RemoteSocket) Disconnect(close bool) error { return r.operator().DisconnectSockets(close) }
