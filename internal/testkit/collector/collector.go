// Package collector is what traces are sent to in tests: it takes OTLP over HTTP and keeps
// the spans, and what came as it came.
package collector

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span as it was received. Ids are in hexadecimal.
type Span struct {
	Name, Trace, ID, Parent string // Parent is "" for the first span of a trace
	Kind                    spanpb.Span_SpanKind
	Links                   []string // ids of spans
	Service, Instance       string   // of the process
	Attributes              map[string]any
	Failed                  bool
	Start, End              time.Time
}

// Server is the collector.
type Server struct {
	URL string

	mu      sync.Mutex // guards the fields below
	arrived sync.Cond  // of spans
	spans   []Span
	raw     bytes.Buffer
	headers []http.Header
}

// Start starts a collector, which ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{}
	s.arrived.L = &s.mu
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.take(r); err != nil {
			t.Errorf("the collector got %s %s: %v", r.Method, r.URL.Path, err)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

func (s *Server) take(r *http.Request) error {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" {
		return http.ErrNotSupported
	}
	var from io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			return err
		}
		from = unzipped
	}
	body, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	var request tracepb.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &request); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw.Write(body)
	s.headers = append(s.headers, r.Header.Clone())
	for _, resource := range request.ResourceSpans {
		about := values(resource.Resource.Attributes)
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				s.spans = append(s.spans, spanOf(span, about))
			}
		}
	}
	s.arrived.Broadcast()
	return nil
}

func spanOf(span *spanpb.Span, about map[string]any) Span {
	got := Span{
		Name: span.Name, Trace: hex.EncodeToString(span.TraceId), ID: hex.EncodeToString(span.SpanId),
		Parent: hex.EncodeToString(span.ParentSpanId), Kind: span.Kind, Attributes: values(span.Attributes),
		Failed: span.Status.GetCode() == spanpb.Status_STATUS_CODE_ERROR,
		Start:  time.Unix(0, int64(span.StartTimeUnixNano)), End: time.Unix(0, int64(span.EndTimeUnixNano)),
	}
	got.Service, _ = about["service.name"].(string)
	got.Instance, _ = about["service.instance.id"].(string)
	for _, link := range span.Links {
		got.Links = append(got.Links, hex.EncodeToString(link.SpanId))
	}
	return got
}

func values(attributes []*commonpb.KeyValue) map[string]any {
	m := map[string]any{}
	for _, a := range attributes {
		switch v := a.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			m[a.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			m[a.Key] = v.IntValue
		}
	}
	return m
}

// Spans are those that have come so far.
func (s *Server) Spans() []Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.spans)
}

// Raw is what has come so far, uncompressed.
func (s *Server) Raw() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.raw.Bytes())
}

// Headers are those of the requests.
func (s *Server) Headers() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.headers)
}

// Await waits until what has come is enough, and returns it; after the time it is what has
// come all the same, and false.
func (s *Server) Await(patience time.Duration, enough func([]Span) bool) ([]Span, bool) {
	over := false
	timer := time.AfterFunc(patience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		over = true
		s.arrived.Broadcast()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		spans := slices.Clone(s.spans)
		switch {
		case enough(spans):
			return spans, true
		case over:
			return spans, false
		}
		s.arrived.Wait()
	}
}
