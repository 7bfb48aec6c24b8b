package socketio

import (
	"encoding/json"

	"xabar/gateway/engineio"
)

// AckSink receives the acknowledgements of a Prepared event, from all the sockets that it was
// sent to: the record of what to do with them exists once per packet, not once per recipient.
type AckSink interface {
	// Ack is called on the acknowledging socket's reader, in order, with arguments valid
	// only during the call. One socket acknowledges a packet once; but a client that breaks
	// the protocol can do it twice, or guess the id of a packet that it was never sent: an owner
	// that minds must check. Calls for different sockets overlap.
	Ack(s *Socket, args Args)
}

// Prepared is an event that is encoded once and sent to any number of sockets of its
// namespace, at no allocation each. It is immutable and safe for concurrent use.
type Prepared struct {
	ns     *Namespace
	event  string
	packet Packet
	msgs   []*engineio.Message
	first  [1]*engineio.Message // where msgs begins: without attachments there is one
	sink   AckSink

	notified bool // handlers of OnAnyOutgoing have been called
}

// Prepare encodes an event. With a sink the clients are asked for an acknowledgement, all under
// one id of the namespace's own counter (below 2^53); the namespace remembers the sink until
// Release. Arguments are encoded as Emit does.
func (n *Namespace) Prepare(event string, sink AckSink, args ...any) (*Prepared, error) {
	return n.prepare(event, sink, nil, args)
}

// PrepareRaw is Prepare for arguments that are JSON already: args is the inside of an array,
// as in `{"a":1},"b"`. It is not checked; what is no JSON makes clients drop their connection.
func (n *Namespace) PrepareRaw(event string, sink AckSink, args []byte, attachments ...[]byte) (*Prepared, error) {
	if isReservedEvent(event) {
		return nil, ErrReservedEvent
	}
	if len(attachments) > n.server.opts.MaxAttachments {
		return nil, ErrTooManyAttachments
	}
	if _, text := n.server.opts.Parser.(TextParser); text && len(attachments) == 0 {
		return n.sealText(event, sink, args)
	}
	data := appendEvent(make([]byte, 0, len(event)+len(args)+5), event, args)
	return n.seal(event, sink, nil, data, attachments)
}

// appendEvent appends an event's payload.
func appendEvent(b []byte, event string, args []byte) []byte {
	b = append(b, '[')
	b = appendJSONString(b, event)
	if len(args) > 0 {
		b = append(b, ',')
		b = append(b, args...)
	}
	return append(b, ']')
}

// sealText is seal for what ends the text of its one message, and needs no memory beside that.
func (n *Namespace) sealText(event string, sink AckSink, args []byte) (*Prepared, error) {
	data := scratch.Get().(*[]byte)
	defer func() {
		if cap(*data) <= maxPooledBuffer {
			scratch.Put(data)
		}
	}()
	*data = appendEvent((*data)[:0], event, args)
	p, err := n.encoded(event, sink, nil, *data, nil)
	if err != nil {
		return nil, err
	}
	payload := p.msgs[0].Text()
	p.packet.Data = payload[len(payload)-len(*data):]
	p.register()
	return p, nil
}

func (n *Namespace) prepare(event string, sink AckSink, flags *BroadcastFlags, args []any) (*Prepared, error) {
	if isReservedEvent(event) {
		return nil, ErrReservedEvent
	}
	data, attachments, err := encodePayload(event, args, n.server.opts.MaxAttachments)
	if err != nil {
		return nil, err
	}
	return n.seal(event, sink, flags, data, attachments)
}

// seal encodes the packet and registers the sink.
func (n *Namespace) seal(event string, sink AckSink, flags *BroadcastFlags, data []byte, attachments [][]byte) (*Prepared, error) {
	p, err := n.encoded(event, sink, flags, data, attachments)
	if err == nil {
		p.register()
	}
	return p, err
}

func (n *Namespace) encoded(event string, sink AckSink, flags *BroadcastFlags, data []byte, attachments [][]byte) (*Prepared, error) {
	p := &Prepared{ns: n, event: event, sink: sink, packet: Packet{
		Type: PacketEvent, Namespace: n.name, Data: data, Attachments: attachments,
	}}
	if sink != nil {
		p.packet.ID, p.packet.HasID = n.nextAckID(), true
	}
	var compress *bool
	if flags != nil {
		compress = flags.Compress
	}
	var err error
	if p.msgs, err = n.server.encode(p.first[:0], &p.packet, compress); err != nil {
		return nil, err
	}
	return p, nil
}

// register has acknowledgements find the sink.
func (p *Prepared) register() {
	if p.sink != nil {
		p.ns.sinks.put(p.packet.ID, p)
	}
}

// Event is the event's name.
func (p *Prepared) Event() string { return p.event }

// MarshalledArgs is the JSON array of the event's name and arguments. It must not be changed.
func (p *Prepared) MarshalledArgs() json.RawMessage { return p.packet.Data }

// Packet is the packet as adapters need it. It must not be changed.
func (p *Prepared) Packet() *Packet { return &p.packet }

// Size is the number of bytes that one delivery adds to a connection's outbound budget.
func (p *Prepared) Size() int {
	n := 0
	for _, m := range p.msgs {
		n += m.Size()
	}
	return n
}

// Release makes the namespace forget the acknowledgement id: acknowledgements that come after
// it are ignored. Without a sink it does nothing. It may be called more than once.
func (p *Prepared) Release() {
	if p.sink != nil {
		p.ns.sinks.remove(p.packet.ID)
	}
}
