package tracing

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"

	"xabar/chat"
	"xabar/internal/testkit/collector"
)

// open makes a tracer that records everything.
func open(t *testing.T, endpoint string) *Tracer {
	t.Helper()
	tracer, err := Open(t.Context(), Config{Endpoint: endpoint, Ratio: 1, Version: "1.2.3", Instance: "one", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return tracer
}

func finish(t *testing.T, tracer *Tracer) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The collector gets what was recorded, as it was.
func TestWhatTheCollectorGets(t *testing.T) {
	to := collector.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=blue")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=two")
	tracer := open(t, to.URL)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	root := tracer.StartFrom(parent, chat.ServerSpan, "root")
	child := root.Child(chat.ProducerSpan, "child")
	elsewhere := tracer.Start(child.Context(), chat.ConsumerSpan, "elsewhere")
	linked := tracer.StartLinked(child.Context(), chat.InternalSpan, "linked")
	id := chat.NewID()
	root.ID("id", id)
	root.Int("n", 7)
	root.Word("word", strings.Repeat("x", 1000))
	root.Link(linked.Context())
	elsewhere.End(chat.Errorf(chat.CodeNotFound, "the text that somebody asked for"))
	linked.End(errors.New("a text of the database's"))
	child.End(nil)
	root.End(nil)
	finish(t, tracer)

	spans := map[string]collector.Span{}
	for _, span := range to.Spans() {
		spans[span.Name] = span
	}
	r, c, e, l := spans["root"], spans["child"], spans["elsewhere"], spans["linked"]
	if r.Trace != parent[3:35] || r.Parent != parent[36:52] || c.Trace != r.Trace || c.Parent != r.ID || e.Trace != r.Trace || e.Parent != c.ID {
		t.Errorf("the trace falls apart: %+v", spans)
	}
	if l.Trace == r.Trace || l.Parent != "" || !slices.Equal(l.Links, []string{c.ID}) || !slices.Equal(r.Links, []string{l.ID}) {
		t.Errorf("links: %+v", spans)
	}
	if r.Attributes["id"] != id.String() || r.Attributes["n"] != int64(7) || r.Attributes["word"] != strings.Repeat("x", maxAttribute) {
		t.Errorf("attributes: %v", r.Attributes)
	}
	if e.Attributes["error.type"] != "not_found" || e.Failed || l.Attributes["error.type"] != "internal" || !l.Failed || r.Failed {
		t.Errorf("errors: %+v", spans)
	}
	if strings.Contains(string(to.Raw()), "text") {
		t.Error("the words of an error are in a trace")
	}
	if r.Kind != spanpb.Span_SPAN_KIND_SERVER || c.Kind != spanpb.Span_SPAN_KIND_PRODUCER || e.Kind != spanpb.Span_SPAN_KIND_CONSUMER || l.Kind != spanpb.Span_SPAN_KIND_INTERNAL {
		t.Errorf("kinds: %+v", spans)
	}
	if r.Service != "xabar" || r.Instance != "two" || to.Headers()[0].Get("X-Tenant") != "blue" {
		t.Errorf("of %s %s, headers %v", r.Service, r.Instance, to.Headers()[0])
	}
}

func TestWhichTracesAreRecorded(t *testing.T) {
	t.Parallel()
	to := collector.Start(t)
	tracer := open(t, to.URL)
	defer finish(t, tracer)
	recorded := func(span chat.Span) bool {
		if span != nil {
			span.End(nil)
		}
		return span != nil
	}
	share := func(ratio float64) (n int) {
		tracer.ratio = ratio
		for range 10_000 {
			if recorded(tracer.Start(nil, chat.ServerSpan, "x")) {
				n++
			}
		}
		return n
	}
	// Far beyond five standard deviations.
	if all, half, none := share(1), share(0.5), share(0); all != 10_000 || none != 0 || half < 4500 || half > 5500 {
		t.Errorf("of 10,000 are recorded: of all %d, of half %d, of none %d", all, half, none)
	}
	// What others record goes on, whatever begins here.
	const header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0"
	parent, _ := chat.ParseTraceparent(header + "1")
	if !recorded(tracer.Start(parent, chat.ServerSpan, "x")) || !recorded(tracer.StartFrom(header+"1", chat.ServerSpan, "x")) {
		t.Error("a trace of somebody else's ends here")
	}
	tracer.ratio = 1
	if recorded(tracer.StartFrom(header+"0", chat.ServerSpan, "x")) {
		t.Error("a trace goes on that its beginner does not record")
	}
	if !recorded(tracer.StartFrom("nonsense", chat.ServerSpan, "x")) {
		t.Error("nonsense in the header keeps a trace from beginning")
	}
	// Callers can't have everything recorded.
	tracer.ratio = 0
	forced := 0
	for range 20 * maxForced.Burst {
		if recorded(tracer.StartFrom(header+"1", chat.ServerSpan, "x")) {
			forced++
		}
	}
	if forced >= 10*maxForced.Burst {
		t.Errorf("a caller has forced %d traces", forced)
	}
}

// A collector that is not there, one that hangs, and one that refuses: the node ends in time.
func TestCollectorsThatFail(t *testing.T) {
	t.Parallel()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	hangs, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hangs.Close(); err != nil {
			t.Error(err)
		}
	})
	refuses := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "overloaded") // to a client that may be gone
	})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- refuses.Serve(listener) }()
	t.Cleanup(func() {
		if err := errors.Join(refuses.Close()); err != nil {
			t.Error(err)
		}
		<-served
	})
	for name, address := range map[string]net.Addr{"gone": gone.Addr(), "hanging": hangs.Addr(), "refusing": listener.Addr()} {
		tracer := open(t, "http://"+address.String())
		tracer.spend(100)
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		start := time.Now()
		err := tracer.Close(ctx)
		cancel()
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: the end took %v", name, took)
		}
		if got := tracer.Stats(); got.Exported != 0 || got.Failed+got.Dropped != 100 {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
	}
}
