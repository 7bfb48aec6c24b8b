package rooms

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
)

// shardedDialect is the wire format of createShardedAdapter of @socket.io/redis-adapter 8 in
// its subscription mode "dynamic": sharded pub/sub of Redis 7, a channel for the namespace, one
// for the answers to each server, and one for each room that is not a single socket's.
type shardedDialect struct {
	uid       string
	namespace string
	prefix    string // and the channel of everybody
	own       string // answers to this server
	topics    []topic
}

// The message types of socket.io-adapter's ClusterAdapter.
const (
	clusterBroadcast        = 3
	clusterJoin             = 4
	clusterLeave            = 5
	clusterDisconnect       = 6
	clusterFetch            = 7
	clusterFetchAnswer      = 8
	clusterServerSide       = 9
	clusterServerSideAnswer = 10
	clusterCount            = 11
	clusterAck              = 12
)

func newShardedDialect(key, namespace, uid string) *shardedDialect {
	d := &shardedDialect{uid: uid, namespace: namespace, prefix: key + "#" + namespace + "#"}
	d.own = d.prefix + uid + "#"
	d.topics = []topic{{sharded, d.prefix}, {sharded, d.own}}
	return d
}

func (d *shardedDialect) base() []topic  { return d.topics }
func (d *shardedDialect) counted() topic { return topic{sharded, d.prefix} }

func (d *shardedDialect) room(name string) (topic, bool) {
	return topic{sharded, d.prefix + name + "#"}, name != "" && !looksLikeSocketIDInNode(name)
}

// looksLikeSocketIDInNode counts as JavaScript does.
func looksLikeSocketIDInNode(room string) bool {
	n := 0
	for _, r := range room {
		n += utf16.RuneLen(r)
	}
	return n == socketIDLength
}

func (d *shardedDialect) member(channel string) string {
	return strings.TrimSuffix(strings.TrimPrefix(channel, d.prefix), "#")
}

type clusterMessage struct {
	UID       string      `json:"uid"`
	Namespace string      `json:"nsp"`
	Type      int         `json:"type"`
	Data      clusterData `json:"data"`
}

type clusterData struct {
	Opts      *wireOptions    `json:"opts,omitempty"`
	Packet    json.RawMessage `json:"packet,omitempty"` // a wirePacket, an event's array, or a value
	RequestID string          `json:"requestId,omitempty"`
	Rooms     *[]roomName     `json:"rooms,omitempty"`
	Close     *bool           `json:"close,omitempty"`
	Count     *int            `json:"clientCount,omitempty"`
	Sockets   *[]wireSocket   `json:"sockets,omitempty"`
}

func (d *shardedDialect) encode(m *message) (publication, error) {
	w := clusterMessage{UID: m.from, Namespace: m.namespace, Data: clusterData{RequestID: m.request}}
	if err := d.fill(&w, m); err != nil {
		return publication{}, err
	}
	channel := d.prefix
	switch {
	case m.to != "":
		channel += m.to + "#"
	case m.kind == kindBroadcast && m.request == "" && len(m.opts.Rooms) == 1:
		if t, ok := d.room(m.opts.Rooms[0]); ok {
			channel = t.name
		}
	}
	payload, err := encodeWire(&w, m.attachments, false)
	return publicationTo(sharded, channel, payload), err
}

func (d *shardedDialect) fill(w *clusterMessage, m *message) (err error) {
	rooms := toRoomNames(m.rooms)
	data := &w.Data
	switch m.kind {
	case kindBroadcast:
		w.Type, data.Opts = clusterBroadcast, toWire(&m.opts)
		data.Packet, err = marshal(wirePacket{2, m.data, m.namespace})
	case kindJoin:
		w.Type, data.Opts, data.Rooms = clusterJoin, toWire(&m.opts), &rooms
	case kindLeave:
		w.Type, data.Opts, data.Rooms = clusterLeave, toWire(&m.opts), &rooms
	case kindDisconnect:
		w.Type, data.Opts, data.Close = clusterDisconnect, toWire(&m.opts), &m.close
	case kindFetch, kindSocketIDs:
		w.Type, data.Opts = clusterFetch, toWire(&m.opts)
	case kindServerSide:
		w.Type, data.Packet = clusterServerSide, m.data
	case kindCount:
		w.Type, data.Count = clusterCount, &m.count
	case kindAck:
		w.Type, data.Packet = clusterAck, m.data
	case kindAnswer:
		if m.action == kindServerSide {
			w.Type, data.Packet = clusterServerSideAnswer, m.data
			break
		}
		sockets := fromSockets(m.sockets)
		w.Type, data.Sockets = clusterFetchAnswer, &sockets
	default:
		err = fmt.Errorf("%w: kind %d", errMalformed, m.kind)
	}
	return err
}

func (d *shardedDialect) decode(_ string, payload []byte) (*message, error) {
	var w clusterMessage
	attachments, err := decodeWire(payload, &w)
	if err != nil {
		return nil, err
	}
	data := &w.Data
	m := &message{
		from: w.UID, namespace: w.Namespace, request: data.RequestID, attachments: attachments,
		opts: data.Opts.options(), close: data.Close != nil && *data.Close, data: data.Packet,
	}
	if data.Rooms != nil {
		m.rooms = fromRoomNames(*data.Rooms)
	}
	if data.Count != nil {
		m.count = *data.Count
	}
	kinds := map[int]kind{
		clusterBroadcast: kindBroadcast, clusterJoin: kindJoin, clusterLeave: kindLeave,
		clusterDisconnect: kindDisconnect, clusterFetch: kindFetch, clusterFetchAnswer: kindAnswer,
		clusterServerSide: kindServerSide, clusterServerSideAnswer: kindAnswer,
		clusterCount: kindCount, clusterAck: kindAck,
	}
	if m.kind = kinds[w.Type]; m.kind == 0 {
		m.kind = kindIgnored // heartbeats of other adapters of its family
	}
	if data.Sockets != nil {
		m.sockets = toSockets(*data.Sockets)
		for _, s := range m.sockets {
			m.ids = append(m.ids, s.ID)
		}
	}
	if m.kind == kindBroadcast {
		return m, m.setPacket(data.Packet)
	}
	return m, nil
}
