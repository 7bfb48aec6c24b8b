package rooms

import (
	"bufio"
	"bytes"
	"errors"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"xabar/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRedisURLs(t *testing.T) {
	t.Parallel()
	good := map[string]string{
		"redis://127.0.0.1:6379":                     "single",
		"redis://user:secret@host/3?read_timeout=5s": "single",
		"rediss://host:6380":                         "single",
		"unix:///run/redis.sock?db=1":                "single",
		"redis://host:26379?master_name=main&addr=b:26379&username=u&password=p": "sentinel",
		"redis://u:secret@host:7000?cluster=true":                                "cluster",
		"rediss://host:7000?addr=b:7000&addr=c:7000":                             "cluster",
	}
	for url, kind := range good {
		r, err := Open(url, Options{})
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if got := r.server.cluster != nil; got != (kind == "cluster") {
			t.Errorf("%s: cluster %v", url, got)
		}
		if strings.HasPrefix(url, "rediss") != (r.server.conn.TLSConfig != nil) {
			t.Errorf("%s: TLS %v", url, r.server.conn.TLSConfig)
		}
		if kind == "sentinel" && (r.server.conn.Username != "u" || r.server.conn.Password != "p") {
			t.Errorf("%s: credentials %+v", url, r.server.conn)
		}
		if err := r.server.client.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, url := range []string{
		"", "host:6379", "http://host", "redis://", "redis://host/x", "redis://host?unknown=1",
		"redis://u:secret@host:port", "redis://host?cluster=maybe", "redis://host?cluster=true&master_name=main",
		"redis://host?master_name=", "redis://u:secret@ho st:1",
	} {
		if r, err := Open(url, Options{}); err == nil {
			t.Errorf("%q is taken for %v", url, r.server.client)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error of %q names the password: %v", url, err)
		}
	}
	if _, err := Open("redis://host", Options{PresenceTTL: time.Second}); err == nil {
		t.Error("a presence TTL of a second is taken")
	}
}

func TestSlots(t *testing.T) {
	t.Parallel()
	// Redis Cluster specification: CRC16("123456789") = 0x31C3.
	for name, slot := range map[string]int{
		"123456789": 0x31C3, "{123456789}.x": 0x31C3, "a{123456789}b{c}": 0x31C3, "{}123456789": slotOf("{}123456789"), "": 0,
	} {
		if got := slotOf(name); got != slot {
			t.Errorf("slot of %q: %d, want %d", name, got, slot)
		}
	}
	if slotOf("{}x") == slotOf("{}y") {
		t.Error("an empty tag is taken for one")
	}
}

func TestPatternsMatchThemselves(t *testing.T) {
	t.Parallel()
	if got := globEscape(`a*b?[c]^\`); got != `a\*b\?\[c\]\^\\` {
		t.Error(got)
	}
}

func someEvents() []chat.Event {
	a, b, c := chat.NewID(), chat.NewID(), chat.NewID()
	trace := &chat.TraceContext{TraceID: chat.NewID(), SpanID: [8]byte(b[8:]), Remote: true}
	at := chat.FromMillis(1_796_044_000_123)
	return []chat.Event{
		&chat.MessageStored{
			Message: chat.Message{ID: a, ConversationID: b, Seq: math.MaxInt64, Version: 9, SenderID: c, CreatedAt: at, Number: 1 << 40},
			Kind:    chat.Group, MemberCount: 1000, JSON: []byte(`{"text":"é"}`),
		},
		&chat.MessageStored{Kind: chat.Direct, MemberIDs: []chat.ID{a, b}, JSON: []byte{}, Message: chat.Message{CreatedAt: at}},
		&chat.PositionMoved{Kind: chat.Read, ConversationID: a, ConversationKind: chat.Direct, UserID: b, Old: 1, Seq: 2, At: at, MemberIDs: []chat.ID{}, MemberCount: 2},
		&chat.MessageStored{Kind: chat.Group, JSON: []byte{}, Message: chat.Message{CreatedAt: at, Number: 7}, Trace: trace},
		&chat.PositionMoved{Kind: chat.Delivered, ConversationID: a, ConversationKind: chat.Group, UserID: b, Seq: 2, At: at, MemberCount: 3, Trace: trace},
		chat.TypingStarted{ConversationID: a, UserID: b},
		chat.ConversationChanged{ConversationID: a, UserIDs: []chat.ID{b}, Joined: []chat.ID{b, c}, Left: nil},
		chat.PresenceChanged{PresenceState: chat.PresenceState{UserID: a, Online: true}},
		chat.PresenceChanged{PresenceState: chat.PresenceState{UserID: a, LastSeenAt: &at}},
		chat.AccessRevoked{UserID: a, Before: at.Time},
	}
}

func TestEnvelopes(t *testing.T) {
	t.Parallel()
	id := identity{uuid.New(), 7}
	for _, event := range someEvents() {
		b, err := appendEnvelope(nil, id, event)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := envelopeIdentity(b); got != id || err != nil {
			t.Errorf("%T: identity %v, %v", event, got, err)
		}
		got, err := decodeEnvelope(append(slices.Clone(b), "a field of a later version"...))
		if err != nil || !reflect.DeepEqual(got, event) {
			t.Errorf("%v\ngot  %+v\nwant %+v", err, got, event)
		}
		for n := range b { // cut anywhere it is an error, and nothing worse
			if got, err := decodeEnvelope(b[:n]); err == nil && !slices.ContainsFunc(earlier(event), func(e chat.Event) bool {
				return reflect.DeepEqual(got, e)
			}) {
				t.Errorf("%T cut at %d of %d is taken", event, n, len(b))
			}
		}
		b[0] = envelopeVersion + 1
		if _, err := decodeEnvelope(b); !errors.Is(err, errUnknownEnvelope) {
			t.Errorf("another version: %v", err)
		}
	}
}

// earlier is what nodes send that know nothing of traces, or of message numbers either.
func earlier(event chat.Event) []chat.Event {
	event = chat.WithTrace(event, nil)
	switch e := event.(type) {
	case *chat.MessageStored:
		unnumbered := *e
		unnumbered.Message.Number = 0
		return []chat.Event{event, &unnumbered}
	case *chat.PositionMoved:
		return []chat.Event{event}
	}
	return nil
}

func FuzzDecodeEnvelope(f *testing.F) {
	for _, event := range someEvents() {
		b, err := appendEnvelope(nil, identity{}, event)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		event, err := decodeEnvelope(b)
		if err != nil {
			return
		}
		again, err := appendEnvelope(nil, identity{}, event)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeEnvelope(again); err != nil || !reflect.DeepEqual(got, event) {
			t.Errorf("%v: %+v became %+v", err, event, got)
		}
	})
}

// received is what a connection makes of bytes.
func received(data []byte) (list []frame, err error) {
	c := &pubsubConn{in: bufio.NewReaderSize(bytes.NewReader(data), 64)}
	for {
		var f frame
		if err := c.read(&f); err != nil {
			return list, err
		}
		f.name, f.payload = slices.Clone(f.name), slices.Clone(f.payload)
		list = append(list, f)
	}
}

func TestReadingRedis(t *testing.T) {
	t.Parallel()
	list, err := received([]byte("*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n" +
		"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$4\r\nx\r\ny\r\n" +
		"*4\r\n$8\r\npmessage\r\n$2\r\na*\r\n$2\r\nab\r\n$0\r\n\r\n" +
		"*3\r\n$8\r\nsmessage\r\n$1\r\ns\r\n$1\r\n1\r\n" +
		"*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n" +
		"*2\r\n$4\r\npong\r\n$0\r\n\r\n+PONG\r\n-MOVED 1 127.0.0.1:7000\r\n"))
	if err == nil || len(list) != 8 {
		t.Fatalf("%d frames, %v", len(list), err)
	}
	want := []frame{
		{kind: frameSubscribed, name: []byte("a")},
		{kind: frameMessage, name: []byte("a"), payload: []byte("x\r\ny")},
		{kind: frameMessage, verb: pattern, name: []byte("a*"), payload: []byte{}},
		{kind: frameMessage, verb: sharded, name: []byte("s"), payload: []byte("1")},
		{kind: frameUnsubscribed}, {kind: framePong}, {kind: framePong},
	}
	for i, w := range want {
		g := list[i]
		if g.kind != w.kind || g.verb != w.verb || string(g.name) != string(w.name) || string(g.payload) != string(w.payload) {
			t.Errorf("frame %d is %+v, want %+v", i, g, w)
		}
	}
	if err := refusal(list[7].payload); !errors.Is(err, errMoved) {
		t.Error(err)
	}
}

func FuzzReadRedis(f *testing.F) {
	f.Add([]byte("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n"))
	f.Add([]byte("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$99999999999\r\nx\r\n"))
	f.Add([]byte("*-1\r\n$-1\r\n:\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if list, err := received(data); err == nil {
			t.Errorf("%d frames and no end", len(list))
		}
	})
}

func FuzzDecodeDialects(f *testing.F) {
	c, s := newClassicDialect("io", "/", "me"), newShardedDialect("io", "/", "me")
	m := &message{kind: kindBroadcast, from: "x", namespace: "/", data: []byte(`["e",{"_placeholder":true,"num":0}]`), attachments: [][]byte{{1}}}
	for _, d := range []dialect{c, s} {
		p, err := d.encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(p.payload)
	}
	f.Add([]byte(`{"type":5,"requestId":"1","opts":{"rooms":[1,"a"],"except":[]}}`))
	f.Add([]byte(`{"requestId":"1","sockets":[{"id":"a","rooms":[1]}]}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, channel := range []string{c.prefix, c.requests, c.responses} {
			if m, err := c.decode(channel, payload); (m == nil) && err == nil {
				t.Error("neither a message nor an error")
			}
		}
		if m, err := s.decode("", payload); m == nil && err == nil {
			t.Error("neither a message nor an error")
		}
	})
}

// TestTheLastLookDecides: whatever happens between two looks, what is sent follows the last state.
func TestTheLastLookDecides(t *testing.T) {
	t.Parallel()
	sub := newSubscriber()
	l := newLink(sub, slog.New(slog.DiscardHandler), redis.Options{}, nil)
	sub.route = func(verb, string) *link { return l }
	l.connected = true
	owner := &switchSink{}
	take := func() (on, off int) {
		a, b, more := l.take()
		if more {
			t.Error("there is more")
		}
		return len(a), len(b)
	}
	owner.on = true
	sub.touch(classic, "c", owner)
	owner.on = false
	sub.touch(classic, "c", owner)
	if on, off := take(); on+off != 0 || sub.len() != 0 {
		t.Errorf("came and went: %d, %d, %d kept", on, off, sub.len())
	}
	owner.on = true
	sub.joined(classic, "c", owner)
	if on, off := take(); on != 1 || off != 0 {
		t.Errorf("came: %d, %d", on, off)
	}
	sub.joined(classic, "c", owner) // it is on its way: nothing to do
	if on, off := take(); on+off != 0 {
		t.Errorf("again: %d, %d", on, off)
	}
	owner.on = false
	sub.touch(classic, "c", owner)
	if on, off := take(); on != 0 || off != 1 {
		t.Errorf("went: %d, %d", on, off)
	}
	owner.on = true
	sub.joined(classic, "c", owner)
	if on, off := take(); on != 1 || off != 0 {
		t.Errorf("came back before the confirmation: %d, %d", on, off)
	}
	// Three commands are under way; only the last confirmation means that it is heard.
	heard := func() bool { s := sub.byKey[classic]["c"]; return s.on && s.outstanding == 0 }
	for i, kind := range []frameKind{frameSubscribed, frameUnsubscribed, frameSubscribed} {
		if heard() {
			t.Errorf("heard after %d confirmations", i)
		}
		if err := l.confirm(&frame{kind: kind, name: []byte("c")}); err != nil {
			t.Error(err)
		}
	}
	if !heard() {
		t.Error("not heard")
	}
	if err := l.confirm(&frame{kind: frameUnsubscribed, name: []byte("c")}); !errors.Is(err, errMoved) {
		t.Errorf("nobody asked for that: %v", err)
	}
}

// TestWhoComesBackSoonCostsNothing: a channel that nobody wants is heard for two ticks.
func TestWhoComesBackSoonCostsNothing(t *testing.T) {
	t.Parallel()
	sub := newSubscriber()
	sub.linger = true
	l := newLink(sub, slog.New(slog.DiscardHandler), redis.Options{}, nil)
	sub.route = func(verb, string) *link { return l }
	l.connected = true
	owner := &switchSink{on: true}
	want := func(when string, on, off int) {
		t.Helper()
		if a, b, _ := l.take(); len(a) != on || len(b) != off {
			t.Errorf("%s: %d, %d", when, len(a), len(b))
		}
	}
	change := func(on bool) {
		owner.on = on
		sub.touch(classic, "c", owner)
	}
	sub.touch(classic, "c", owner)
	want("came", 1, 0)
	if err := l.confirm(&frame{kind: frameSubscribed, name: []byte("c")}); err != nil {
		t.Fatal(err)
	}
	change(false)
	want("went", 0, 0)
	l.lingered()
	want("a tick later", 0, 0)
	change(true)
	want("came back", 0, 0)
	l.lingered()
	want("its time was over while somebody was there", 0, 0)
	change(false)
	want("went again", 0, 0)
	l.lingered()
	want("a tick later", 0, 0)
	l.lingered()
	want("two ticks later", 0, 1)
	if err := l.confirm(&frame{kind: frameUnsubscribed, name: []byte("c")}); err != nil || sub.len() != 0 {
		t.Errorf("afterwards: %v, %d kept", err, sub.len())
	}
}

type switchSink struct{ on bool }

func (s *switchSink) receive(string, []byte) {}
func (s *switchSink) wants(string) bool      { return s.on }
