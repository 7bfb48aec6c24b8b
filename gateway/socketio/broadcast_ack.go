package socketio

import (
	"context"
	"sync"
)

// cancel forgets an acknowledgement that nobody waits for any more.
func (a *pendingAck) cancel() { a.socket.takeAck(a.id) }

// collector counts the answers to a broadcast.
type collector struct {
	mu        sync.Mutex // guards the rest
	responses []Args
	servers   int // that have said how many sockets they have
	sockets   int // that are expected to answer
	want      int // servers; -1 as long as it is not known
	done      chan struct{}
	finished  bool
}

func (c *collector) update(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished {
		return
	}
	f()
	if c.servers == c.want && len(c.responses) == c.sockets {
		c.finished = true
		close(c.done)
	}
}

// result ends the collection.
func (c *collector) result() ([]Args, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	complete := c.finished
	c.finished = true
	return c.responses, complete
}

// EmitWithAck sends an event to the selected sockets and waits until each has acknowledged it,
// or until ctx or Timeout ends: then it returns the acknowledgements that came, in the order
// in which they came, and ErrAckTimeout. It must not be called on a connection's reader (in a
// handler) when that connection is among the selected ones.
func (b *BroadcastOperator) EmitWithAck(ctx context.Context, event string, args ...any) ([]Args, error) {
	if b.opts.Flags.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.opts.Flags.Timeout)
		defer cancel()
	}
	ctx, cancel := context.WithCancel(ctx) // whoever waits for answers stops when this returns
	defer cancel()
	p, err := b.ns.prepareForAck(event, &b.opts.Flags, args)
	if err != nil {
		return nil, err
	}
	c := &collector{want: -1, done: make(chan struct{})}
	err = b.ns.adapter.BroadcastWithAck(ctx, p, &b.opts,
		func(sockets int) { c.update(func() { c.servers++; c.sockets += sockets }) },
		func(a Args) {
			a = a.Clone()
			c.update(func() { c.responses = append(c.responses, a) })
		})
	if err != nil {
		return nil, err
	}
	count := 1
	if !b.opts.Flags.Local {
		if count, err = b.ns.adapter.ServerCount(ctx); err != nil {
			return nil, err
		}
	}
	c.update(func() { c.want = count })
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	responses, complete := c.result()
	if !complete {
		b.ns.server.hookAckTimeout(b.ns.name)
		return responses, timeoutError(ctx)
	}
	return responses, nil
}

// prepareForAck is prepare with an acknowledgement id, but no sink: each recipient has a record
// of its own, so that only they can answer, and each once.
func (n *Namespace) prepareForAck(event string, flags *BroadcastFlags, args []any) (*Prepared, error) {
	if isReservedEvent(event) {
		return nil, ErrReservedEvent
	}
	data, attachments, err := encodePayload(event, args, n.server.opts.MaxAttachments)
	if err != nil {
		return nil, err
	}
	return n.PrepareForAck(event, data, attachments, flags)
}

// PrepareForAck makes the packet of an Adapter's BroadcastWithAck: data is the JSON array of the
// event's name and arguments. For adapters that got it from another server.
func (n *Namespace) PrepareForAck(event string, data []byte, attachments [][]byte, flags *BroadcastFlags) (*Prepared, error) {
	p := &Prepared{ns: n, event: event, packet: Packet{
		Type: PacketEvent, Namespace: n.name, ID: n.nextAckID(), HasID: true,
		Data: data, Attachments: attachments,
	}}
	var compress *bool
	if flags != nil {
		compress = flags.Compress
	}
	var err error
	p.msgs, err = n.server.encode(nil, &p.packet, compress)
	return p, err
}
