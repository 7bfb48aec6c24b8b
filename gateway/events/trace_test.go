package events_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"xabar/chat"
	"xabar/gateway/events"
	"xabar/gateway/socketio/socketiotest"
	"xabar/internal/testkit/collector"
	"xabar/internal/tracing"
)

// startTraced runs a hub that records everything, and the service behind it.
func startTraced(t *testing.T, store *quickStore, config events.Config) (url string, traces *collector.Server) {
	t.Helper()
	traces = collector.Start(t)
	tracer, err := tracing.Open(t.Context(), tracing.Config{Endpoint: traces.URL, Ratio: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tracer.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	config.Tracer = tracer
	return startQuick(t, store, config), traces
}

// sendOne sends a message and reads the answer.
func sendOne(t *testing.T, c *socketiotest.Client, conversation chat.ID, id string) {
	t.Helper()
	c.Send(fmt.Sprintf(`21["message:send",{"conversationId":%q,"clientMsgId":%q,"text":"a word"}]`, conversation, id))
	if got := c.Next(); !strings.HasPrefix(got, "431") || strings.Contains(got, `"ok":false`) {
		t.Fatalf("the sender got %s", got)
	}
}

// acknowledge acknowledges the message that the packet brings.
func acknowledge(t *testing.T, c *socketiotest.Client, packet string) {
	t.Helper()
	head, _, ok := strings.Cut(strings.TrimPrefix(packet, "42"), "[")
	if !ok || !strings.Contains(packet, `"message",{`) {
		t.Fatalf("the recipient got %s", packet)
	}
	c.Send("3" + head + "[]")
}

func named(spans []collector.Span, name string) []collector.Span {
	return slices.DeleteFunc(slices.Clone(spans), func(s collector.Span) bool { return s.Name != name })
}

// patience is how long a span has to come to the collector.
const patience = 30 * time.Second

// However many sockets a message goes to, its trace stays small.
func TestTheTraceOfAMessageToManySocketsIsBounded(t *testing.T) {
	t.Parallel()
	const sockets, silent, each = 40, 3, 16
	store := newQuickStore()
	url, traces := startTraced(t, store, events.Config{AckTimeout: 500 * time.Millisecond})
	from := connectStandard(t, url, "1")
	var to []*socketiotest.Client
	for range sockets {
		to = append(to, connectStandard(t, url, "2"))
	}
	sendOne(t, from, store.conversation, "m1")
	for i, c := range to {
		if packet := c.Next(); i < sockets-silent {
			acknowledge(t, c, packet)
		}
	}
	spans, ok := traces.Await(patience, func(spans []collector.Span) bool {
		return len(named(spans, "message.deliver")) >= each && len(named(spans, "message.deliver.rest")) > 0
	})
	if !ok {
		t.Fatalf("these have come: %+v", spans)
	}
	emit, delivered, rest := named(spans, "message.emit"), named(spans, "message.deliver"), named(spans, "message.deliver.rest")
	if len(emit) != 1 || len(delivered) != each || len(rest) != 1 {
		t.Fatalf("%d, %d and %d spans", len(emit), len(delivered), len(rest))
	}
	if n := emit[0].Attributes["xabar.sockets"]; n != int64(sockets) {
		t.Errorf("it went to %v sockets", n)
	}
	inTime := 0
	for _, d := range delivered {
		if d.Parent != emit[0].ID {
			t.Errorf("%+v is not in %+v", d, emit[0])
		}
		if d.Attributes["xabar.ack"] == "in_time" {
			inTime++
		} else if d.Attributes["xabar.ack"] != "none" {
			t.Errorf("%+v", d.Attributes)
		}
	}
	acknowledged, _ := rest[0].Attributes["xabar.acknowledged"].(int64)
	if n := rest[0].Attributes["xabar.sockets"]; n != int64(sockets-each) || acknowledged+int64(inTime) != sockets-silent {
		t.Errorf("%v in the rest, %d of them and %d others have acknowledged", n, acknowledged, inTime)
	}
}

// An acknowledgement that comes late is in the trace too, once.
func TestALateAcknowledgementIsTraced(t *testing.T) {
	t.Parallel()
	store := newQuickStore()
	url, traces := startTraced(t, store, events.Config{AckTimeout: 100 * time.Millisecond})
	from, to := connectStandard(t, url, "1"), connectStandard(t, url, "2")
	sendOne(t, from, store.conversation, "m1")
	packet := to.Next()
	if _, ok := traces.Await(patience, func(spans []collector.Span) bool { return len(named(spans, "message.deliver")) > 0 }); !ok {
		t.Fatal("the time for the acknowledgement does not end")
	}
	acknowledge(t, to, packet)
	acknowledge(t, to, packet)
	spans, ok := traces.Await(patience, func(spans []collector.Span) bool { return len(named(spans, "message.acknowledged")) > 0 })
	if !ok {
		t.Fatal("the acknowledgement is not in the trace")
	}
	delivered, late := named(spans, "message.deliver")[0], named(spans, "message.acknowledged")
	if delivered.Attributes["xabar.ack"] != "none" || late[0].Parent != delivered.ID || len(late) != 1 {
		t.Errorf("%+v\n%+v", delivered, late)
	}
}

// A client may say which trace its connection belongs to, in a header or in auth.
func TestAConnectionGoesOnWithTheClientsTrace(t *testing.T) {
	t.Parallel()
	url, traces := startTraced(t, newQuickStore(), events.Config{})
	const trace = "0af7651916cd43dd8448eb211c80319c"
	c := socketiotest.Dial(t, url, socketiotest.Options{})
	c.Connect("/", `{"token":"1","sync":true,"traceparent":"00-`+trace+`-b7ad6b7169203331-01"}`)
	c.Next() // session
	spans, ok := traces.Await(patience, func(spans []collector.Span) bool { return len(named(spans, "session.open")) > 0 })
	if !ok || named(spans, "connect")[0].Trace != trace || named(spans, "session.open")[0].Trace != trace {
		t.Errorf("%+v", spans)
	}
}
