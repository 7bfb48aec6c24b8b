package chat_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"xabar/chat"
)

// plain has a message's tags without its encoder.
type plain chat.Message

func drawMessage(t *rapid.T) chat.Message {
	m := chat.Message{
		ID: chat.NewID(), ConversationID: chat.NewID(), SenderID: chat.NewID(),
		Seq: rapid.Int64().Draw(t, "seq"), Version: rapid.Int64().Draw(t, "version"),
		ClientMsgID: rapid.String().Draw(t, "clientMsgId"), Text: rapid.String().Draw(t, "text"),
		CreatedAt: chat.FromMillis(rapid.Int64Range(0, 4e12).Draw(t, "createdAt")),
	}
	if rapid.Bool().Draw(t, "all fields") {
		at := chat.At(time.Unix(1_700_000_000, 123_456_789))
		m.ReplyToSeq, m.EditedAt, m.DeletedAt = &m.Seq, &at, &at
	}
	return m
}

func TestTheMessageEncoderWritesWhatTheTagsSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMessage(t)
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(plain(m)); err != nil {
			t.Fatal(err)
		}
		got := m.AppendJSON(nil)
		var a, b any
		if err := json.Unmarshal(got, &a); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		if err := json.Unmarshal(want.Bytes(), &b); err != nil {
			t.Fatal(err)
		}
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		if !bytes.Equal(x, y) {
			t.Fatalf("got  %s\nwant %s", got, want.Bytes())
		}
	})
}

func TestTimesAreUTCWithMilliseconds(t *testing.T) {
	tashkent := time.FixedZone("", 5*3600)
	b, err := json.Marshal(chat.At(time.Date(2026, 1, 2, 3, 4, 5, 999_999_999, tashkent)))
	if err != nil || string(b) != `"2026-01-01T22:04:05.999Z"` {
		t.Errorf("%s, %v", b, err)
	}
	var back chat.Time
	if err := json.Unmarshal(b, &back); err != nil || back.UnixMilli() != 1767305045999 {
		t.Errorf("%v, %v", back, err)
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	m := chat.Message{ID: chat.NewID(), ConversationID: chat.NewID(), SenderID: chat.NewID(), Seq: 1234,
		ClientMsgID: "0190c2a0-0000-7000-8000-000000000001", Text: "Assalomu alaykum! Qalaysiz?", CreatedAt: chat.At(time.Now())}
	buf := make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		buf = m.AppendJSON(buf[:0])
	}
}

func TestAPositionIsWhatClientsAreTold(t *testing.T) {
	t.Parallel()
	moved := chat.PositionMoved{
		Kind: chat.Read, ConversationID: chat.NewID(), UserID: chat.NewID(), Old: 3, Seq: 1 << 40,
		At: chat.FromMillis(1_796_044_000_123), OriginSocket: "s", MemberIDs: []chat.ID{chat.NewID()},
	}
	want, err := json.Marshal(struct {
		ConversationID chat.ID   `json:"conversationId"`
		UserID         chat.ID   `json:"userId"`
		Seq            int64     `json:"seq"`
		At             chat.Time `json:"at"`
	}{moved.ConversationID, moved.UserID, moved.Seq, moved.At})
	if got := moved.AppendJSON(nil); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s instead of %s, %v", got, want, err)
	}
}
