package rooms

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"xabar/chat"
)

// An envelope carries a chat event to other nodes:
//
//	1 byte    version, 1
//	1 byte    event kind
//	16 bytes  the node that published it
//	8 bytes   number of the event at that node, big endian
//	          the event's fields in the order below; what follows them is ignored, so that fields
//	          can be added
//
// Ids have 16 bytes, numbers are varints (zigzag), times are milliseconds since 1970, and lists and
// strings have their length in front. A message travels as the JSON that clients get, beside what
// nodes look at. At the end of messages and positions stands what a trace goes on with, if it is
// recorded: a list of bytes, the first 16 of them the trace's id, the next 8 the span's (empty,
// should a field follow it and nothing be recorded). Nodes of two versions run side by side
// while one replaces the other. Another version or kind is never guessed at: it is counted, and
// within some two seconds the node reads from the database what it may have missed. That is a
// net, not a way to live: a version of the program that changes the format first reads both for a
// release, and still writes the old one.
const envelopeVersion = 1

// Kinds of events in an envelope.
const (
	envelopeMessage      = 1
	envelopePosition     = 2
	envelopeTyping       = 3
	envelopeConversation = 4
	envelopePresence     = 5
	envelopeRevoked      = 6
	envelopeBlock        = 7
)

const (
	envelopeHeader = 2 + 16 + 8
	maxList        = 4096 // ids in a list: above any group
	traceSize      = 16 + 8
)

var (
	errEnvelope = errors.New("rooms: malformed envelope")
	// errUnknownEnvelope: it comes from a node of another version.
	errUnknownEnvelope = errors.New("rooms: unknown envelope")
)

// identity names an event for good.
type identity struct {
	node   uuid.UUID
	number uint64
}

// envelopes is memory for envelopes on their way.
var envelopes = sync.Pool{New: func() any { return new([]byte) }}

// maxPooled is up to how many bytes such memory is used again.
const maxPooled = 16 << 10

// appendEnvelope encodes an event once, for all channels.
func appendEnvelope(b []byte, id identity, event chat.Event) ([]byte, error) {
	w := envelopeWriter{b: b}
	w.b = append(w.b, envelopeVersion, 0)
	w.b = append(w.b, id.node[:]...)
	w.b = binary.BigEndian.AppendUint64(w.b, id.number)
	switch e := event.(type) {
	case *chat.MessageStored:
		w.b[1] = envelopeMessage
		w.message(e)
	case *chat.PositionMoved:
		w.b[1] = envelopePosition
		w.position(e)
	case chat.TypingStarted:
		w.b[1] = envelopeTyping
		w.id(e.ConversationID)
		w.id(e.UserID)
		w.ids(e.MemberIDs)
	case chat.ConversationChanged:
		w.b[1] = envelopeConversation
		w.id(e.ConversationID)
		w.ids(e.UserIDs)
		w.ids(e.Joined)
		w.ids(e.Left)
	case chat.PresenceChanged:
		w.b[1] = envelopePresence
		w.id(e.UserID)
		w.bool(e.Online)
		w.bool(e.LastSeenAt != nil)
		if e.LastSeenAt != nil {
			w.time(e.LastSeenAt.Time)
		}
	case chat.AccessRevoked:
		w.b[1] = envelopeRevoked
		w.id(e.UserID)
		w.time(e.Before)
	case chat.BlockChanged:
		w.b[1] = envelopeBlock
		w.id(e.A)
		w.id(e.B)
	default:
		return b, fmt.Errorf("rooms: no envelope for %T", event)
	}
	return w.b, nil
}

type envelopeWriter struct{ b []byte }

func (w *envelopeWriter) id(id chat.ID)     { w.b = append(w.b, id[:]...) }
func (w *envelopeWriter) int(n int64)       { w.b = binary.AppendVarint(w.b, n) }
func (w *envelopeWriter) time(t time.Time)  { w.int(t.UnixMilli()) }
func (w *envelopeWriter) kind(k chat.Kind)  { w.bool(k == chat.Group) }
func (w *envelopeWriter) bytes(data []byte) { w.int(int64(len(data))); w.b = append(w.b, data...) }

func (w *envelopeWriter) bool(v bool) {
	if v {
		w.b = append(w.b, 1)
	} else {
		w.b = append(w.b, 0)
	}
}

// ids keeps nil and empty apart: nil mostly means everybody.
func (w *envelopeWriter) ids(list []chat.ID) {
	if list == nil {
		w.int(-1)
		return
	}
	w.int(int64(len(list)))
	for _, id := range list {
		w.id(id)
	}
}

func (w *envelopeWriter) message(e *chat.MessageStored) {
	m := &e.Message
	w.id(m.ConversationID)
	w.int(m.Seq)
	w.id(m.ID)
	w.int(m.Version)
	w.id(m.SenderID)
	w.time(m.CreatedAt.Time)
	w.kind(e.Kind)
	w.ids(e.MemberIDs)
	w.int(int64(e.MemberCount))
	w.bytes(e.JSON)
	w.int(m.Number)
	w.trace(e.Trace)
}

func (w *envelopeWriter) position(e *chat.PositionMoved) {
	w.int(int64(e.Kind))
	w.id(e.ConversationID)
	w.kind(e.ConversationKind)
	w.id(e.UserID)
	w.int(e.Old)
	w.int(e.Seq)
	w.time(e.At.Time)
	w.ids(e.MemberIDs)
	w.int(int64(e.MemberCount))
	w.trace(e.Trace)
}

// trace writes nothing where nothing is recorded.
func (w *envelopeWriter) trace(t *chat.TraceContext) {
	if t != nil {
		w.int(traceSize)
		w.b = append(append(w.b, t.TraceID[:]...), t.SpanID[:]...)
	}
}

// envelopeIdentity reads who published which event, and nothing else.
func envelopeIdentity(b []byte) (identity, error) {
	var id identity
	if len(b) < envelopeHeader {
		return id, errEnvelope
	}
	if b[0] != envelopeVersion {
		return id, errUnknownEnvelope
	}
	copy(id.node[:], b[2:])
	id.number = binary.BigEndian.Uint64(b[18:])
	return id, nil
}

// decodeEnvelope reads the event. Its byte slices point into b.
func decodeEnvelope(b []byte) (chat.Event, error) {
	if _, err := envelopeIdentity(b); err != nil {
		return nil, err
	}
	r := envelopeReader{b: b[envelopeHeader:]}
	var event chat.Event
	switch b[1] {
	case envelopeMessage:
		event = r.message()
	case envelopePosition:
		event = r.position()
	case envelopeTyping:
		event = chat.TypingStarted{ConversationID: r.id(), UserID: r.id(), MemberIDs: r.ids()}
	case envelopeConversation:
		event = chat.ConversationChanged{ConversationID: r.id(), UserIDs: r.ids(), Joined: r.ids(), Left: r.ids()}
	case envelopePresence:
		state := chat.PresenceState{UserID: r.id(), Online: r.bool()}
		if r.bool() {
			at := r.time()
			state.LastSeenAt = &at
		}
		event = chat.PresenceChanged{PresenceState: state}
	case envelopeRevoked:
		event = chat.AccessRevoked{UserID: r.id(), Before: r.time().Time}
	case envelopeBlock:
		event = chat.BlockChanged{A: r.id(), B: r.id()}
	default:
		return nil, errUnknownEnvelope
	}
	if r.bad {
		return nil, errEnvelope
	}
	return event, nil
}

// envelopeReader reads fields; after the first that is not there everything is zero.
type envelopeReader struct {
	b   []byte
	bad bool
}

func (r *envelopeReader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *envelopeReader) id() (id chat.ID) {
	copy(id[:], r.take(len(id)))
	return id
}

func (r *envelopeReader) int() int64 {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		r.bad = true
		return 0
	}
	r.take(size)
	return n
}

func (r *envelopeReader) bool() bool {
	b := r.take(1)
	return len(b) == 1 && b[0] == 1
}

func (r *envelopeReader) time() chat.Time { return chat.FromMillis(r.int()) }

func (r *envelopeReader) kind() chat.Kind {
	if r.bool() {
		return chat.Group
	}
	return chat.Direct
}

func (r *envelopeReader) bytes() []byte {
	n := r.int()
	if n > int64(len(r.b)) {
		r.bad = true
		return nil
	}
	return r.take(int(n))
}

func (r *envelopeReader) ids() []chat.ID {
	n := r.int()
	if n < 0 {
		return nil
	}
	if n > maxList || n*int64(len(chat.ID{})) > int64(len(r.b)) {
		r.bad = true
		return nil
	}
	list := make([]chat.ID, n)
	for i := range list {
		list[i] = r.id()
	}
	return list
}

func (r *envelopeReader) message() *chat.MessageStored {
	e := &chat.MessageStored{}
	m := &e.Message
	m.ConversationID = r.id()
	m.Seq = r.int()
	m.ID = r.id()
	m.Version = r.int()
	m.SenderID = r.id()
	m.CreatedAt = r.time()
	e.Kind = r.kind()
	e.MemberIDs = r.ids()
	e.MemberCount = int(r.int())
	e.JSON = slices.Clone(r.bytes())
	if len(r.b) > 0 { // nodes of before the numbers send none
		m.Number = r.int()
	}
	e.Trace = r.trace()
	return e
}

func (r *envelopeReader) position() *chat.PositionMoved {
	return &chat.PositionMoved{
		Kind: chat.PositionKind(r.int()), ConversationID: r.id(), ConversationKind: r.kind(),
		UserID: r.id(), Old: r.int(), Seq: r.int(), At: r.time(), MemberIDs: r.ids(), MemberCount: int(r.int()),
		Trace: r.trace(),
	}
}

// trace reads what a trace goes on with. Whatever else stands there is no reason to drop the
// event.
func (r *envelopeReader) trace() *chat.TraceContext {
	n, size := binary.Varint(r.b)
	if r.bad || size <= 0 || n < traceSize || n > int64(len(r.b)-size) {
		return nil
	}
	r.take(size)
	b := r.take(int(n))
	t := &chat.TraceContext{Remote: true}
	copy(t.TraceID[:], b)
	copy(t.SpanID[:], b[len(t.TraceID):])
	return t
}
