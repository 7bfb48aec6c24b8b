package rooms

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"xabar/gateway/socketio"
)

// errMalformed: another server has sent what cannot be understood. It is logged and dropped.
var errMalformed = errors.New("rooms: malformed message from another server")

// remoteLimits bound what other servers send.
var remoteLimits = socketio.Limits{MaxAttachments: 256, MaxDepth: 512}

// kind is what a message between servers is about.
type kind uint8

const (
	kindBroadcast  kind = iota + 1 // data, attachments, opts; with a request, acknowledgements are wanted
	kindJoin                       // opts, rooms
	kindLeave                      // opts, rooms
	kindDisconnect                 // opts, close
	kindSocketIDs                  // opts; answer: ids
	kindRooms                      // answer: ids
	kindFetch                      // opts; answer: sockets
	kindServerSide                 // data, attachments; with a request, an answer is wanted
	kindSocket                     // sid and one of the above in action: how adapters before 7 say it

	kindCount   // answer to a broadcast: count sockets have got it
	kindAck     // answer to a broadcast: data is one acknowledgement
	kindAnswer  // answer to kindServerSide (data) and to those with ids or sockets
	kindIgnored // nothing that concerns this version
)

// message is what servers tell each other, whatever the dialect.
type message struct {
	kind        kind
	from        string // uid of the sender; "" of an emitter
	namespace   string
	request     string // id of the request that it is, or answers; "" if there is no answer
	to          string // of an answer: uid of who asked
	data        json.RawMessage
	attachments [][]byte
	opts        socketio.BroadcastOptions
	rooms       []string
	close       bool
	count       int
	ids         []string
	sockets     []socketio.SocketDetails
	sid         string // kindSocket
	action      kind   // kindSocket
}

// wireOptions are BroadcastOptions as Node writes them.
type wireOptions struct {
	Rooms  []roomName `json:"rooms"`
	Except []roomName `json:"except"`
	Flags  wireFlags  `json:"flags"`
}

type wireFlags struct {
	Volatile bool     `json:"volatile,omitempty"`
	Compress *bool    `json:"compress,omitempty"`
	Timeout  *float64 `json:"timeout,omitempty"` // milliseconds
}

// roomName is a room in Node, where a number can be one.
type roomName string

func (r *roomName) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(r))
	}
	*r = roomName(b)
	return nil
}

func toRoomNames(rooms []string) []roomName {
	list := make([]roomName, len(rooms))
	for i, r := range rooms {
		list[i] = roomName(r)
	}
	return list
}

func fromRoomNames(rooms []roomName) []string {
	if len(rooms) == 0 {
		return nil
	}
	list := make([]string, len(rooms))
	for i, r := range rooms {
		list[i] = string(r)
	}
	return list
}

func toWire(o *socketio.BroadcastOptions) *wireOptions {
	w := &wireOptions{Rooms: toRoomNames(o.Rooms), Except: toRoomNames(o.Except)}
	w.Flags.Volatile, w.Flags.Compress = o.Flags.Volatile, o.Flags.Compress
	if o.Flags.Timeout > 0 {
		ms := float64(o.Flags.Timeout.Milliseconds())
		w.Flags.Timeout = &ms
	}
	return w
}

func (w *wireOptions) options() socketio.BroadcastOptions {
	if w == nil {
		return socketio.BroadcastOptions{}
	}
	o := socketio.BroadcastOptions{Rooms: fromRoomNames(w.Rooms), Except: fromRoomNames(w.Except)}
	o.Flags.Volatile, o.Flags.Compress = w.Flags.Volatile, w.Flags.Compress
	if w.Flags.Timeout != nil {
		o.Flags.Timeout = time.Duration(*w.Flags.Timeout * float64(time.Millisecond))
	}
	return o
}

// wirePacket is a Socket.IO packet between servers.
type wirePacket struct {
	Type      int             `json:"type"`
	Data      json.RawMessage `json:"data"`
	Namespace string          `json:"nsp"`
}

// wireSocket is a socket as FetchSockets describes it, with rooms as Node may have them.
type wireSocket struct {
	ID        string          `json:"id"`
	Handshake json.RawMessage `json:"handshake"`
	Rooms     []roomName      `json:"rooms"`
	Data      json.RawMessage `json:"data"`
}

func toSockets(list []wireSocket) []socketio.SocketDetails {
	sockets := make([]socketio.SocketDetails, len(list))
	for i, s := range list {
		sockets[i] = socketio.SocketDetails{ID: s.ID, Handshake: s.Handshake, Rooms: fromRoomNames(s.Rooms), Data: s.Data}
	}
	return sockets
}

func fromSockets(list []socketio.SocketDetails) []wireSocket {
	sockets := make([]wireSocket, len(list))
	for i, s := range list {
		sockets[i] = wireSocket{ID: s.ID, Handshake: s.Handshake, Rooms: toRoomNames(s.Rooms), Data: s.Data}
	}
	return sockets
}

// marshal is json.Marshal without its escapes for HTML, which would make text longer.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// encodeWire writes v, whose binaries are placeholders, as JSON or as msgpack: the formats
// tell themselves apart by their first byte.
func encodeWire(v any, attachments [][]byte, msgpack bool) ([]byte, error) {
	raw, err := marshal(v)
	if err != nil || (!msgpack && len(attachments) == 0) {
		return raw, err
	}
	return socketio.MarshalMsgpackValue(raw, attachments)
}

// decodeWire reads either format into v and returns the binaries that v's placeholders mean.
func decodeWire(payload []byte, v any) ([][]byte, error) {
	raw := json.RawMessage(payload)
	var attachments [][]byte
	if len(payload) == 0 || payload[0] != '{' {
		var err error
		if raw, attachments, err = socketio.UnmarshalMsgpackValue(payload, remoteLimits); err != nil {
			return nil, fmt.Errorf("%w: %w", errMalformed, err)
		}
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return attachments, nil
}

// looksLikeSocketID is how Node's sharded adapter tells rooms with one member from others.
func looksLikeSocketID(room string) bool { return len(room) == socketIDLength }

const socketIDLength = 20
