package rooms

import (
	"encoding/json"
	"fmt"
	"strings"
)

// classicDialect is the wire format of createAdapter of @socket.io/redis-adapter 8 and of
// @socket.io/redis-emitter 5. Their servers hear every channel of a namespace by one pattern; this
// one hears the bare channel, those of its rooms, and, by a pattern as long as socket ids
// are, those of single sockets.
type classicDialect struct {
	uid       string
	namespace string
	prefix    string // of broadcasts; bare it is for several rooms or none
	sockets   string // pattern of single sockets
	requests  string
	responses string
	own       string // responses to this server
	topics    []topic
}

// The request types of @socket.io/redis-adapter.
const (
	classicSocketIDs  = 0
	classicRooms      = 1
	classicJoin       = 2
	classicLeave      = 3
	classicDisconnect = 4
	classicFetch      = 5
	classicServerSide = 6
	classicBroadcast  = 7
	classicCount      = 8
	classicAck        = 9
)

func newClassicDialect(key, namespace, uid string) *classicDialect {
	d := &classicDialect{
		uid: uid, namespace: namespace,
		prefix:    key + "#" + namespace + "#",
		requests:  key + "-request#" + namespace + "#",
		responses: key + "-response#" + namespace + "#",
	}
	d.own = d.responses + uid + "#"
	d.sockets = globEscape(d.prefix) + strings.Repeat("?", socketIDLength) + "#"
	d.topics = []topic{{classic, d.prefix}, {pattern, d.sockets}, {classic, d.requests}, {classic, d.responses}, {classic, d.own}}
	return d
}

// globEscape makes text match itself in a pattern.
func globEscape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`).Replace(text)
}

func (d *classicDialect) base() []topic  { return d.topics }
func (d *classicDialect) counted() topic { return topic{classic, d.requests} }

func (d *classicDialect) room(name string) (topic, bool) {
	return topic{classic, d.prefix + name + "#"}, !looksLikeSocketID(name) && name != ""
}

func (d *classicDialect) member(channel string) string {
	return strings.TrimSuffix(strings.TrimPrefix(channel, d.prefix), "#")
}

// classicRequest is a request or a response.
type classicRequest struct {
	UID       string          `json:"uid,omitempty"`
	RequestID string          `json:"requestId,omitempty"`
	Type      *int            `json:"type,omitempty"`
	Packet    json.RawMessage `json:"packet,omitempty"` // a wirePacket, or the value of an acknowledgement
	Opts      *wireOptions    `json:"opts,omitempty"`
	Rooms     *[]roomName     `json:"rooms,omitempty"`
	Close     *bool           `json:"close,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	Count     *int            `json:"clientCount,omitempty"`
	Sockets   json.RawMessage `json:"sockets,omitempty"` // ids or wireSockets
	SID       string          `json:"sid,omitempty"`
	Room      *roomName       `json:"room,omitempty"`
}

func (d *classicDialect) encode(m *message) (publication, error) {
	if m.kind == kindBroadcast && m.request == "" {
		return d.broadcast(m)
	}
	r := classicRequest{UID: m.from, RequestID: m.request}
	msgpack, err := d.fill(&r, m)
	if err != nil {
		return publication{}, err
	}
	payload, err := encodeWire(&r, m.attachments, msgpack)
	channel := d.requests
	switch {
	case m.to != "":
		channel = d.responses + m.to + "#"
	case m.kind >= kindCount:
		channel = d.responses
	}
	return publicationTo(classic, channel, payload), err
}

// fill says whether Node sends it as msgpack.
func (d *classicDialect) fill(r *classicRequest, m *message) (msgpack bool, err error) {
	set := func(t int) { r.Type = &t }
	rooms := toRoomNames(m.rooms)
	switch m.kind {
	case kindBroadcast:
		set(classicBroadcast)
		r.Opts = toWire(&m.opts)
		r.Packet, err = marshal(wirePacket{2, m.data, m.namespace})
		return true, err
	case kindJoin:
		set(classicJoin)
		r.Opts, r.Rooms = toWire(&m.opts), &rooms
	case kindLeave:
		set(classicLeave)
		r.Opts, r.Rooms = toWire(&m.opts), &rooms
	case kindDisconnect:
		set(classicDisconnect)
		r.Opts, r.Close = toWire(&m.opts), &m.close
	case kindSocketIDs:
		set(classicSocketIDs)
		// The servers look at rooms alone, so the exceptions need the longer answer.
		if len(m.opts.Except) > 0 {
			set(classicFetch)
		}
		names := toRoomNames(m.opts.Rooms)
		r.Opts, r.Rooms = toWire(&m.opts), &names
	case kindFetch:
		set(classicFetch)
		r.Opts = toWire(&m.opts)
	case kindServerSide:
		set(classicServerSide)
		r.Data = m.data
	case kindCount:
		set(classicCount)
		r.Count = &m.count
	case kindAck:
		set(classicAck)
		r.Packet = m.data
		return true, nil
	case kindAnswer:
		return false, d.fillAnswer(r, m)
	default:
		return false, fmt.Errorf("%w: kind %d", errMalformed, m.kind)
	}
	return false, nil
}

func (d *classicDialect) fillAnswer(r *classicRequest, m *message) (err error) {
	switch m.action {
	case kindServerSide:
		t := classicServerSide
		r.Type, r.Data = &t, m.data
	case kindSocketIDs:
		r.Sockets, err = marshal(append([]string{}, m.ids...))
	case kindRooms:
		rooms := toRoomNames(m.ids)
		r.Rooms = &rooms
	case kindFetch:
		r.Sockets, err = marshal(fromSockets(m.sockets))
	}
	return err
}

func (d *classicDialect) broadcast(m *message) (publication, error) {
	channel := d.prefix
	if len(m.opts.Rooms) == 1 {
		channel += m.opts.Rooms[0] + "#"
	}
	payload, err := encodeWire([]any{m.from, wirePacket{2, m.data, m.namespace}, toWire(&m.opts)}, m.attachments, true)
	return publicationTo(classic, channel, payload), err
}

func (d *classicDialect) decode(channel string, payload []byte) (*message, error) {
	switch channel {
	case d.requests:
		return d.request(payload)
	case d.responses, d.own:
		return d.response(payload)
	}
	var parts []json.RawMessage
	attachments, err := decodeWire(payload, &parts)
	if err != nil {
		return nil, err
	}
	if len(parts) < 3 {
		return nil, fmt.Errorf("%w: a broadcast has three parts", errMalformed)
	}
	m := &message{kind: kindBroadcast, attachments: attachments}
	var opts *wireOptions
	if err := json.Unmarshal(parts[0], &m.from); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	if err := json.Unmarshal(parts[2], &opts); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	m.opts = opts.options()
	return m, m.setPacket(parts[1])
}

// setPacket takes data and namespace out of a packet; "/" may be left out.
func (m *message) setPacket(raw json.RawMessage) error {
	p := wirePacket{Namespace: "/"}
	if err := json.Unmarshal(raw, &p); err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	m.data, m.namespace = p.Data, p.Namespace
	return nil
}

func (d *classicDialect) request(payload []byte) (*message, error) {
	var r classicRequest
	attachments, err := decodeWire(payload, &r)
	if err != nil {
		return nil, err
	}
	if r.Type == nil {
		return nil, fmt.Errorf("%w: a request without a type", errMalformed)
	}
	m := &message{
		from: r.UID, request: r.RequestID, attachments: attachments, namespace: d.namespace,
		opts: r.Opts.options(), data: r.Data, close: r.Close != nil && *r.Close,
	}
	if r.Rooms != nil {
		m.rooms = fromRoomNames(*r.Rooms)
	}
	kinds := map[int]kind{
		classicSocketIDs: kindSocketIDs, classicRooms: kindRooms, classicJoin: kindJoin, classicLeave: kindLeave,
		classicDisconnect: kindDisconnect, classicFetch: kindFetch, classicServerSide: kindServerSide,
		classicBroadcast: kindBroadcast,
	}
	m.kind = kinds[*r.Type]
	switch {
	case m.kind == 0:
		m.kind = kindIgnored
	case m.kind == kindBroadcast:
		return m, m.setPacket(r.Packet)
	case m.kind == kindSocketIDs:
		m.opts.Rooms, m.opts.Except = m.rooms, nil
	case r.Opts == nil && r.SID != "":
		m.action, m.kind, m.sid = m.kind, kindSocket, r.SID
		if r.Room != nil {
			m.rooms = []string{string(*r.Room)}
		}
	}
	return m, nil
}

func (d *classicDialect) response(payload []byte) (*message, error) {
	var r classicRequest
	attachments, err := decodeWire(payload, &r)
	if err != nil {
		return nil, err
	}
	m := &message{kind: kindAnswer, request: r.RequestID, namespace: d.namespace, attachments: attachments, data: r.Data}
	if r.Type != nil && *r.Type == classicCount && r.Count != nil {
		m.kind, m.count = kindCount, *r.Count
	}
	if r.Type != nil && *r.Type == classicAck {
		m.kind, m.data = kindAck, r.Packet
	}
	if r.Rooms != nil {
		m.ids = fromRoomNames(*r.Rooms)
	}
	return m, m.setSockets(r.Sockets)
}

// setSockets takes ids or descriptions.
func (m *message) setSockets(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	if err := json.Unmarshal(raw, &m.ids); err == nil {
		return nil
	}
	var list []wireSocket
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	m.sockets, m.ids = toSockets(list), nil
	for _, s := range list {
		m.ids = append(m.ids, s.ID)
	}
	return nil
}
