package chat_test

import (
	"context"
	"strings"
	"testing"

	"xabar/chat"
)

func TestTraceparent(t *testing.T) {
	t.Parallel()
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	trace, recorded := chat.ParseTraceparent(good)
	if trace == nil || !recorded || !trace.Remote || trace.Traceparent() != good {
		t.Fatalf("%+v, recorded %v", trace, recorded)
	}
	if trace.ID() != good[3:35] {
		t.Errorf("the trace's id is %s", trace.ID())
	}
	// The examples of the specification, and what it says of versions to come.
	for header, want := range map[string]struct{ valid, recorded bool }{
		good[:53] + "00":                         {true, false},
		good[:53] + "03":                         {true, true},
		"cc" + good[2:]:                          {true, true},
		"cc" + good[2:] + "-what-will-be":        {true, true},
		"cc" + good[2:] + ".what-will-be":        {false, false},
		"ff" + good[2:]:                          {false, false},
		good + "-more":                           {false, false},
		good[:54]:                                {false, false},
		strings.ToUpper(good):                    {false, false},
		strings.Replace(good, "0af7", "xaf7", 1): {false, false},
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": {false, false},
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01": {false, false},
		"00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01": {false, false},
		"": {false, false}, strings.Repeat("0", 1<<16): {false, false},
	} {
		if trace, recorded := chat.ParseTraceparent(header); (trace != nil) != want.valid || recorded != want.recorded {
			t.Errorf("%.80q: %+v, recorded %v", header, trace, recorded)
		}
	}
}

// Whoever records nothing has no tracer, and no span: everything that is asked of these
// must do nothing.
func TestWithoutATracer(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	if chat.StartSpan(nil, nil, chat.ServerSpan, "x") != nil || chat.GoOn(nil, &chat.TraceContext{}, chat.ServerSpan, "x") != nil ||
		chat.ChildSpan(nil, chat.ServerSpan, "x") != nil || chat.TraceOf(nil) != nil || chat.SpanOf(ctx) != nil {
		t.Error("there is a span")
	}
	if chat.WithSpan(ctx, nil) != ctx {
		t.Error("another context")
	}
	chat.EndSpan(nil, nil)
}

func TestOfWhichTraceAnEventIs(t *testing.T) {
	t.Parallel()
	trace := &chat.TraceContext{SpanID: [8]byte{1}}
	for _, event := range []chat.Event{&chat.MessageStored{}, &chat.PositionMoved{}} {
		if chat.Traced(event) != nil || chat.Traced(chat.WithTrace(event, trace)) != trace {
			t.Errorf("%T: %v", event, chat.Traced(event))
		}
	}
	if event := chat.WithTrace(chat.TypingStarted{}, trace); chat.Traced(event) != nil {
		t.Error("typing has a trace")
	}
}
