package socketio

import (
	"encoding/json"

	"xabar/gateway/engineio"
)

// PacketType is the type of a Socket.IO packet (protocol 5, "Packet encoding").
type PacketType byte

// The packet types, with their numbers on the wire.
const (
	PacketConnect PacketType = iota
	PacketDisconnect
	PacketEvent
	PacketAck
	PacketConnectError
	PacketBinaryEvent
	PacketBinaryAck
)

// MaxAckID is the highest acknowledgement id: JavaScript counts exactly up to 2^53-1.
const MaxAckID = 1<<53 - 1

// Packet is one Socket.IO packet, whatever its parser writes on the wire. Payloads are
// always JSON in here: binaries stand in Attachments and the JSON points to them with
// {"_placeholder":true,"num":N}, as the default parser has it.
type Packet struct {
	Type      PacketType // never a binary type: Attachments say so
	Namespace string     // "/" is the main namespace
	ID        uint64     // acknowledgement id, if HasID; at most MaxAckID
	HasID     bool

	// Data is the payload: an array for events (the name first) and acknowledgements, an
	// object or nothing for CONNECT, an object or a string for CONNECT_ERROR.
	Data json.RawMessage
	// Items are the elements of Data, for events and acknowledgements. Decoders fill it,
	// encoders don't look at it.
	Items       []json.RawMessage
	Attachments [][]byte
}

// Limits bound what a Decoder accepts.
type Limits struct {
	MaxAttachments     int // binaries in one packet
	MaxAttachmentBytes int // all of them together, where they come one by one; 0: no limit
	MaxDepth           int // nesting of arrays and objects
}

// Parser turns packets into Engine.IO messages and back: TextParser (the default),
// or MsgpackParser, which clients must be told to use. A parser is shared by all
// connections and safe for concurrent use.
type Parser interface {
	// Encode appends the messages of one packet to dst, in the order in which they must go out.
	// They share no memory with p.
	Encode(dst []*engineio.Message, p *Packet) ([]*engineio.Message, error)
	// NewDecoder returns the decoder of one connection.
	NewDecoder(limits Limits) Decoder
}

// Decoder puts the packets of one connection together. Calls don't overlap.
type Decoder interface {
	// Decode takes one Engine.IO message. It fills p and returns true when that completes a
	// packet, and false while attachments are missing. What it puts in p may point into data.
	// After an error (ErrMalformed, ErrTooManyAttachments, ErrAttachmentsTooLarge) the connection must be closed.
	Decode(data []byte, binary bool, p *Packet) (complete bool, err error)
}
