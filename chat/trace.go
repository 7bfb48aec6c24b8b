package chat

import (
	"context"
	"encoding/hex"
)

// Tracer records how requests go their way, as spans of traces. internal/tracing
// implements it. A nil Tracer records nothing, and so does a nil Span: whoever works
// for many requests asks StartSpan, ChildSpan and EndSpan, which cost a comparison then.
type Tracer interface {
	// Start begins a span that goes on with a recorded trace, or, without a parent, a
	// trace of its own, which is recorded with a certain probability; nil: not
	// this one.
	Start(parent *TraceContext, kind SpanKind, name string) Span
	// StartFrom is Start for a caller who may have sent a W3C traceparent header
	// (https://www.w3.org/TR/trace-context/); one that is missing or makes no sense is
	// "". What the caller does not record is not recorded here either, and of what it
	// does only so much a second: anybody can send such a header.
	StartFrom(traceparent string, kind SpanKind, name string) Span
	// StartLinked begins a trace of its own that comes from a recorded one, of long ago
	// maybe, and is linked with it.
	StartLinked(from *TraceContext, kind SpanKind, name string) Span
}

// SpanKind is on which side of what a span stands.
type SpanKind uint8

// The kinds of spans.
const (
	InternalSpan SpanKind = iota
	ServerSpan            // answers a request
	ProducerSpan          // hands on what somebody else works on
	ConsumerSpan          // takes that
)

// Span is a part of a trace that is recorded. Its attributes are ids, numbers and words
// of the program itself. There is no way to put a text, a name or a token into one.
// Safe for concurrent use. Nothing can be added after End.
type Span interface {
	// Child begins a span within this one, which may have ended.
	Child(kind SpanKind, name string) Span
	// Context is what a span elsewhere, or on another node, goes on with.
	Context() *TraceContext
	// Link says that a span of another trace, or beside this one, has to do with this one.
	Link(other *TraceContext)
	ID(key string, id ID)
	Int(key string, n int64)
	// Word sets a word that the program chose or made: an event's name, a channel, the id
	// of a socket. Never what a client wrote.
	Word(key, word string)
	// End ends the span. Of an error only the code is recorded.
	End(err error)
}

// TraceContext names a span of a trace that is recorded.
type TraceContext struct {
	TraceID [16]byte
	SpanID  [8]byte
	Remote  bool // another process's
}

// ID is the trace's id as logs and trace viewers write it.
func (t *TraceContext) ID() string { return hex.EncodeToString(t.TraceID[:]) }

// traceparentSize is the length of a traceparent of version 00.
const traceparentSize = 2 + 1 + 32 + 1 + 16 + 1 + 2

// Traceparent is the header's form of it.
func (t *TraceContext) Traceparent() string {
	b := make([]byte, 0, traceparentSize)
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, t.TraceID[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, t.SpanID[:])
	return string(append(b, "-01"...))
}

// ParseTraceparent reads a traceparent: the span that it names, which is nil if it is none,
// and whether it is recorded.
func ParseTraceparent(s string) (t *TraceContext, recorded bool) {
	if len(s) < traceparentSize || s[:2] == "ff" || s[2] != '-' || s[35] != '-' || s[52] != '-' ||
		s[:2] == "00" && len(s) > traceparentSize || len(s) > traceparentSize && s[traceparentSize] != '-' {
		return nil, false
	}
	var version, flags [1]byte
	t = &TraceContext{Remote: true}
	for _, part := range []struct {
		to   []byte
		text string
	}{{version[:], s[:2]}, {t.TraceID[:], s[3:35]}, {t.SpanID[:], s[36:52]}, {flags[:], s[53:55]}} {
		if !lowerHex(part.text) {
			return nil, false
		}
		if _, err := hex.Decode(part.to, []byte(part.text)); err != nil {
			return nil, false
		}
	}
	if t.TraceID == ([16]byte{}) || t.SpanID == ([8]byte{}) {
		return nil, false
	}
	return t, flags[0]&1 == 1
}

func lowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

type spanKey struct{}

// WithSpan is ctx for what happens within the span; ctx itself if that is nil.
func WithSpan(ctx context.Context, span Span) context.Context {
	if span == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, span)
}

// withoutSpan is ctx for what is not to be recorded.
func withoutSpan(ctx context.Context) context.Context {
	if SpanOf(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, nil)
}

// SpanOf is the span that ctx stands in; nil: none that is recorded.
func SpanOf(ctx context.Context) Span {
	span, _ := ctx.Value(spanKey{}).(Span)
	return span
}

// StartSpan is tracer.Start for a tracer that may be nil.
func StartSpan(tracer Tracer, parent *TraceContext, kind SpanKind, name string) Span {
	if tracer == nil {
		return nil
	}
	return tracer.Start(parent, kind, name)
}

// GoOn begins a span within one that is recorded elsewhere; nil if there is none.
func GoOn(tracer Tracer, parent *TraceContext, kind SpanKind, name string) Span {
	if tracer == nil || parent == nil {
		return nil
	}
	return tracer.Start(parent, kind, name)
}

// ChildSpan is parent.Child for a parent that may be nil.
func ChildSpan(parent Span, kind SpanKind, name string) Span {
	if parent == nil {
		return nil
	}
	return parent.Child(kind, name)
}

// EndSpan is span.End for a span that may be nil.
func EndSpan(span Span, err error) {
	if span != nil {
		span.End(err)
	}
}

// TraceOf is span.Context for a span that may be nil.
func TraceOf(span Span) *TraceContext {
	if span == nil {
		return nil
	}
	return span.Context()
}

// Traced is the span that an event comes from; nil: none that is recorded.
func Traced(event Event) *TraceContext {
	switch e := event.(type) {
	case *MessageStored:
		return e.Trace
	case *PositionMoved:
		return e.Trace
	}
	return nil
}

// WithTrace is the event as coming from the span.
func WithTrace(event Event, trace *TraceContext) Event {
	switch e := event.(type) {
	case *MessageStored:
		traced := *e
		traced.Trace = trace
		return &traced
	case *PositionMoved:
		traced := *e
		traced.Trace = trace
		return &traced
	}
	return event
}

// describe says of a message:send what became of it.
func describe(span Span, r *SendResult) {
	if span == nil {
		return
	}
	span.ID("xabar.message.id", r.Message.ID)
	span.ID("xabar.conversation.id", r.Message.ConversationID)
	span.Int("xabar.message.seq", r.Message.Seq)
	if r.Duplicate {
		span.Word("xabar.duplicate", "true")
	}
}
