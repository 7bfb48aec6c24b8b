package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"xabar/chat"
	"xabar/internal/ratelimit"
)

// Config is what Open needs.
type Config struct {
	// Endpoint is a collector's URL; "": what OTEL_EXPORTER_OTLP_ENDPOINT or
	// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT says. The other OTEL_EXPORTER_OTLP_… variables
	// (headers, certificates, compression, timeout) hold in any case.
	Endpoint string
	// Ratio of the traces that begin here and are recorded, 0 to 1.
	Ratio float64
	// Version of the program and Instance, a name for this process.
	Version, Instance string
	Logger            *slog.Logger
}

// maxForced bounds the traces that are recorded because a caller's header says so.
var maxForced = ratelimit.Rate{PerSecond: 100, Burst: 200}

// maxAttribute bounds an attribute's value, in bytes: ids and words are shorter.
const maxAttribute = 128

// Tracer is a chat.Tracer. Close it.
type Tracer struct {
	ratio  float64
	queue  *queue
	tracer trace.Tracer

	mu     sync.Mutex // guards forced
	forced ratelimit.Bucket
}

var _ chat.Tracer = (*Tracer)(nil)

// Open makes a Tracer and starts its goroutine. It does not ask the collector. ctx bounds
// the opening.
func Open(ctx context.Context, c Config) (*Tracer, error) {
	if err := Check(c.Endpoint, c.Ratio); err != nil {
		return nil, err
	}
	options := []otlptracehttp.Option{otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
		Enabled: true, InitialInterval: 500 * time.Millisecond, MaxInterval: 2 * time.Second, MaxElapsedTime: exportTimeout,
	})}
	if c.Endpoint != "" {
		url, err := tracesURL(c.Endpoint)
		if err != nil {
			return nil, err
		}
		options = append(options, otlptracehttp.WithEndpointURL(url))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	about, err := describe(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { c.Logger.Warn("OpenTelemetry", "error", err) }))
	return newTracer(exporter, about, c), nil
}

func newTracer(exporter sdktrace.SpanExporter, about *resource.Resource, c Config) *Tracer {
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxAttribute
	t := &Tracer{ratio: c.Ratio, queue: newQueue(exporter, c.Logger, queueBound)}
	provider := sdktrace.NewTracerProvider(
		// Whether a trace is recorded is decided before there is a span.
		sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithSpanProcessor(t.queue), sdktrace.WithResource(about), sdktrace.WithRawSpanLimits(limits),
	)
	t.tracer = provider.Tracer("xabar", trace.WithInstrumentationVersion(c.Version))
	return t
}

// describe names this process. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
func describe(ctx context.Context, c Config) (*resource.Resource, error) {
	return resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "xabar"), attribute.String("service.version", c.Version),
		attribute.String("service.instance.id", c.Instance),
	), resource.WithTelemetrySDK(), resource.WithFromEnv())
}

// Start implements chat.Tracer.
func (t *Tracer) Start(parent *chat.TraceContext, kind chat.SpanKind, name string) chat.Span {
	if parent == nil {
		if t.ratio < 1 && rand.Float64() >= t.ratio {
			return nil
		}
		return t.start(context.Background(), kind, name)
	}
	return t.start(trace.ContextWithSpanContext(context.Background(), spanContext(parent)), kind, name)
}

// StartFrom implements chat.Tracer.
func (t *Tracer) StartFrom(traceparent string, kind chat.SpanKind, name string) chat.Span {
	parent, recorded := chat.ParseTraceparent(traceparent)
	if parent != nil && (!recorded || !t.mayForce()) {
		return nil
	}
	return t.Start(parent, kind, name)
}

// StartLinked implements chat.Tracer.
func (t *Tracer) StartLinked(from *chat.TraceContext, kind chat.SpanKind, name string) chat.Span {
	return t.start(context.Background(), kind, name, trace.WithLinks(trace.Link{SpanContext: spanContext(from)}))
}

func (t *Tracer) mayForce() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.forced.Take(maxForced)
	return ok
}

// kinds are ours in OpenTelemetry's words.
var kinds = [...]trace.SpanKind{
	chat.InternalSpan: trace.SpanKindInternal, chat.ServerSpan: trace.SpanKindServer,
	chat.ProducerSpan: trace.SpanKindProducer, chat.ConsumerSpan: trace.SpanKindConsumer,
}

func (t *Tracer) start(parent context.Context, kind chat.SpanKind, name string, more ...trace.SpanStartOption) chat.Span {
	_, s := t.tracer.Start(parent, name, append(more, trace.WithSpanKind(kinds[kind]))...)
	return &span{t, s}
}

// Stats are counts of spans since the start.
type Stats struct {
	Exported int64 // that the collector has taken
	Failed   int64 // that could not be sent
	Dropped  int64 // for which there was no room, or no time at the end
}

// Stats reads the counts.
func (t *Tracer) Stats() Stats {
	return Stats{t.queue.exported.Load(), t.queue.failed.Load(), t.queue.dropped.Load()}
}

// Close sends what waits and ends the Tracer's goroutine; at ctx's deadline it gives up what
// is left. Spans that end later are dropped.
func (t *Tracer) Close(ctx context.Context) error { return t.queue.Shutdown(ctx) }

// span is a chat.Span.
type span struct {
	tracer *Tracer
	span   trace.Span
}

func spanContext(t *chat.TraceContext) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: t.TraceID, SpanID: t.SpanID, TraceFlags: trace.FlagsSampled, Remote: t.Remote,
	})
}

func (s *span) Child(kind chat.SpanKind, name string) chat.Span {
	return s.tracer.start(trace.ContextWithSpan(context.Background(), s.span), kind, name)
}

func (s *span) Context() *chat.TraceContext {
	c := s.span.SpanContext()
	return &chat.TraceContext{TraceID: c.TraceID(), SpanID: c.SpanID()}
}

func (s *span) Link(other *chat.TraceContext) {
	s.span.AddLink(trace.Link{SpanContext: spanContext(other)})
}

func (s *span) ID(key string, id chat.ID) { s.span.SetAttributes(attribute.String(key, id.String())) }
func (s *span) Int(key string, n int64)   { s.span.SetAttributes(attribute.Int64(key, n)) }
func (s *span) Word(key, word string)     { s.span.SetAttributes(attribute.String(key, word)) }

// End records an error's code. Only those that the server is to blame for make it an
// error of the span's.
func (s *span) End(err error) {
	if code := chat.CodeOf(err); code != "" {
		s.span.SetAttributes(attribute.String("error.type", string(code)))
		if code.HTTPStatus() >= 500 {
			s.span.SetStatus(codes.Error, "")
		}
	}
	s.span.End()
}
