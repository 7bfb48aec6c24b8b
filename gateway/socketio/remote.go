package socketio

import (
	"bytes"
	"encoding/json"

	"github.com/vmihailenco/msgpack/v5"
)

// PrepareData makes the packet of an Adapter's Broadcast: data is the JSON array of the event's
// name and arguments, with placeholders for attachments. For adapters that got it from another
// server: as in Node, it may be an event that this server could not emit itself.
func (n *Namespace) PrepareData(event string, data []byte, attachments [][]byte, flags *BroadcastFlags) (*Prepared, error) {
	return n.seal(event, nil, flags, data, attachments)
}

// UnmarshalMsgpackValue decodes one msgpack value into JSON with placeholders for the binaries
// that it holds: the reverse of MarshalMsgpackValue.
func UnmarshalMsgpackValue(data []byte, limits Limits) (json.RawMessage, [][]byte, error) {
	src := bytes.NewReader(data)
	r := msgpackReader{dec: msgpack.NewDecoder(src), limits: limits, left: len(data)}
	if err := r.value(limits.MaxDepth); err != nil {
		return nil, nil, malformedMsgpack(err)
	}
	if src.Len() > 0 {
		return nil, nil, malformedMsgpack(nil)
	}
	return r.out, r.bin, nil
}

// EncodeArgs encodes values as Emit does, for adapters that send them to another server.
func (n *Namespace) EncodeArgs(args ...any) (Args, error) {
	return encodeArgs(args, n.server.opts.MaxAttachments)
}
