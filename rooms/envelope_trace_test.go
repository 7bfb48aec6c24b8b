package rooms

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/google/uuid"

	"xabar/chat"
)

// What nodes of the version before traces send.
const (
	oldMessage  = "0101aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa0000000000000007010101010101010101010101010101010a020202020202020202020202020202020a03030303030303030303030303030303f6ad84c9c5680004030303030303030303030303030303030404040404040404040404040404040404127b22736571223a357d880e"
	oldPosition = "0102aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa000000000000000702010101010101010101010101010101010004040404040404040404040404040404080af6ad84c9c56804030303030303030303030303030303030404040404040404040404040404040404"
)

func all(b byte) (id chat.ID) {
	for i := range id {
		id[i] = b
	}
	return id
}

// oldEvents are what those envelopes say.
func oldEvents() map[string]chat.Event {
	at, pair := chat.FromMillis(1796044000123), []chat.ID{all(3), all(4)}
	return map[string]chat.Event{
		oldMessage: &chat.MessageStored{
			Message: chat.Message{ID: all(2), ConversationID: all(1), Seq: 5, Version: 5, SenderID: all(3), CreatedAt: at, Number: 900},
			Kind:    chat.Direct, MemberIDs: pair, MemberCount: 2, JSON: []byte(`{"seq":5}`),
		},
		oldPosition: &chat.PositionMoved{
			Kind: chat.Delivered, ConversationID: all(1), ConversationKind: chat.Direct, UserID: all(4), Old: 4, Seq: 5,
			At: at, MemberIDs: pair, MemberCount: 2,
		},
	}
}

// A node takes what one of the version before sends, and sends the very same bytes while
// nothing is recorded.
func TestEnvelopesOfTheVersionBeforeTraces(t *testing.T) {
	t.Parallel()
	id := identity{all(0xAA), 7}
	for old, event := range oldEvents() {
		b, err := hex.DecodeString(old)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeEnvelope(b); err != nil || !reflect.DeepEqual(got, event) {
			t.Errorf("%v\ngot  %+v\nwant %+v", err, got, event)
		}
		if sent, err := appendEnvelope(nil, id, event); err != nil || !bytes.Equal(sent, b) {
			t.Errorf("%T: %v, sent\n%x instead of\n%x", event, err, sent, b)
		}
	}
}

// A node of the version before ignores what follows the fields that it knows: a trace may
// come nowhere else.
func TestATraceFollowsWhatOldNodesRead(t *testing.T) {
	t.Parallel()
	trace := &chat.TraceContext{TraceID: uuid.New(), SpanID: [8]byte{1, 2, 3}, Remote: true}
	for old, event := range oldEvents() {
		b, err := appendEnvelope(nil, identity{all(0xAA), 7}, chat.WithTrace(event, trace))
		if err != nil {
			t.Fatal(err)
		}
		known, err := hex.DecodeString(old)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(b, known) {
			t.Errorf("%T: old nodes read\n%x instead of\n%x", event, b, known)
		}
		if got, err := decodeEnvelope(b); err != nil || !reflect.DeepEqual(chat.Traced(got), trace) {
			t.Errorf("%T: %v, trace %+v", event, err, chat.Traced(got))
		}
	}
}

// Whatever stands in a trace's place, the event is taken.
func TestAnOddTraceIsNoReasonToDropAMessage(t *testing.T) {
	t.Parallel()
	for old, event := range oldEvents() {
		b, err := hex.DecodeString(old)
		if err != nil {
			t.Fatal(err)
		}
		for _, tail := range [][]byte{{0}, {1}, {2, 9}, {48}, {255, 255}, bytes.Repeat([]byte{255}, 30)} {
			if got, err := decodeEnvelope(append(bytes.Clone(b), tail...)); err != nil || !reflect.DeepEqual(got, event) {
				t.Errorf("%T with %x: %v, %+v", event, tail, err, got)
			}
		}
	}
}
