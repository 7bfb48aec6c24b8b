package e2e

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"xabar/internal/testkit"
	"xabar/internal/testkit/collector"
)

// tree is a trace, each span under its parent in the order of their beginnings.
func tree(spans []collector.Span, parent string, depth int) string {
	var b strings.Builder
	slices.SortFunc(spans, func(a, b collector.Span) int { return a.Start.Compare(b.Start) })
	for _, span := range spans {
		if span.Parent == parent {
			fmt.Fprintf(&b, "%s%s %v\n%s", strings.Repeat("  ", depth), span.Name, span.Attributes, tree(slices.Clone(spans), span.ID, depth+1))
		}
	}
	return b.String()
}

// of are the spans of a trace.
func of(spans []collector.Span, trace string) []collector.Span {
	return slices.DeleteFunc(slices.Clone(spans), func(s collector.Span) bool { return s.Trace != trace })
}

func named(spans []collector.Span, name string) []collector.Span {
	return slices.DeleteFunc(slices.Clone(spans), func(s collector.Span) bool { return s.Name != name })
}

// The trace of a message goes from the send on one node to the news of its delivery, which
// comes back from the other.
func TestTheTraceOfAMessageIsOneOverTwoNodes(t *testing.T) {
	t.Parallel()
	traces := collector.Start(t)
	c := newCluster(t, 2, "--otlp-endpoint", traces.URL, "--trace-sample", "1")
	a, b := c.nodes[0].page("A"), c.nodes[1].page("B")
	conversation := a.open(b)
	if _, err := b.WaitFor(testkit.Context(t), "conversation", nil); err != nil {
		t.Fatal(err)
	}
	const text = "nobody but B shall read this"
	a.must("message:send", message(conversation.ID, "x1", text))
	a.hearsPosition("message:delivered", b, 1)

	var trace []collector.Span
	_, ok := traces.Await(testkit.Patience, func(spans []collector.Span) bool {
		for _, send := range named(spans, "message:send") {
			trace = of(spans, send.Trace)
		}
		_, complete := wayOf(trace, "position.emit")
		return complete && len(named(trace, "store.position")) > 0
	})
	t.Logf("the trace:\n%s", tree(trace, "", 0))
	if !ok {
		t.Fatal("the trace does not go from the send to the announcement of the delivery")
	}
	checkTrace(t, trace)
}

// wayOf goes from the first span of a name back to the beginning of the trace.
func wayOf(trace []collector.Span, name string) (way []collector.Span, complete bool) {
	way = named(trace, name)
	if len(way) == 0 {
		return nil, false
	}
	way = way[:1]
	for way[0].Parent != "" {
		at := slices.IndexFunc(trace, func(s collector.Span) bool { return s.ID == way[0].Parent })
		if at < 0 {
			return way, false
		}
		way = slices.Insert(way, 0, trace[at])
	}
	return way, true
}

func checkTrace(t *testing.T, trace []collector.Span) {
	t.Helper()
	way, _ := wayOf(trace, "position.emit")
	var names []string
	nodes := map[string]bool{}
	for _, span := range way {
		names = append(names, span.Name)
		nodes[span.Instance] = true
	}
	want := []string{
		"message:send", "message.publish", "bus.publish", // on A's node
		"bus.receive", "message.emit", "message.deliver", "position.publish", "bus.publish", // on B's
		"bus.receive", "position.emit", // and on A's again
	}
	if !slices.Equal(names, want) {
		t.Errorf("the way is\n%v, not\n%v", names, want)
	}
	if len(nodes) != 2 {
		t.Errorf("the way goes over %d nodes", len(nodes))
	}
	for name, n := range map[string]int{"message.validate": 1, "store.send": 1, "store.position": 1, "store.batch": 2} {
		if got := named(trace, name); len(got) != n {
			t.Errorf("%d spans %s, not %d", len(got), name, n)
		}
	}
	if ack := named(trace, "message.deliver")[0].Attributes["xabar.ack"]; ack != "in_time" {
		t.Errorf("the acknowledgement came %v", ack)
	}
}

// What nobody may read is in no trace: texts and tokens, of what works and of what fails.
func TestTracesKeepSecrets(t *testing.T) {
	t.Parallel()
	traces := collector.Start(t)
	w := newWorld(t, "--otlp-endpoint", traces.URL, "--trace-sample", "1")
	a, b := w.page("ada"), w.page("bob")
	const text = "a most private word"
	conversation := a.open(b)
	a.must("message:send", message(conversation.ID, "x1", text))
	b.hears(conversation.ID, 1)
	a.ask("message:send", message(conversation.ID, text+strings.Repeat("x", 100), text))
	a.ask("message:send", obj{"conversationId": text, "clientMsgId": "x2", "text": text})
	a.ask(text, obj{"text": text})
	a.must("history", obj{"conversationId": conversation.ID})
	w.http(t, "POST", "/conversations/"+conversation.ID.String()+"/messages", a.user.Token, obj{"client_msg_id": "x3", "text": text}, 201)
	b.hears(conversation.ID, 2)
	a.hearsPosition("message:delivered", b, 2)
	w.http(t, "GET", "/conversations/"+strings.ReplaceAll(text, " ", "-")+"?x="+a.user.Token, a.user.Token, nil, 400)
	w.http(t, "GET", "/me", a.user.Token+"x", nil, 401)
	w.gateway.Stop()
	spans := traces.Spans()
	for _, name := range []string{"connect", "session.open", "message:send", "history", "POST /conversations/:id/messages", "message.deliver"} {
		if len(named(spans, name)) == 0 {
			t.Errorf("no span %s has come before the node ended", name)
		}
	}
	// A message that came by HTTP goes the same way.
	post := named(spans, "POST /conversations/:id/messages")[0]
	for _, name := range []string{"message.validate", "store.write", "store.batch", "message.publish", "message.emit", "message.deliver", "position.publish"} {
		if len(named(of(spans, post.Trace), name)) == 0 {
			t.Errorf("no span %s of the message that came by HTTP", name)
		}
	}
	for _, secret := range []string{text, strings.ReplaceAll(text, " ", "-"), a.user.Token, b.user.Token, "ada", "bob"} {
		if bytes.Contains(traces.Raw(), []byte(secret)) {
			t.Errorf("traces have %q", secret)
		}
	}
}
