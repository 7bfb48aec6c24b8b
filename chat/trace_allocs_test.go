//go:build !race

package chat_test

import (
	"context"
	"testing"

	"xabar/chat"
)

// sendAllocations is what a send took of the heap before there were traces.
const sendAllocations = 6

func TestASendThatIsNotRecordedAllocatesNothingForIt(t *testing.T) {
	if n := testing.AllocsPerRun(1000, sending(t)); n > sendAllocations {
		t.Errorf("%v allocations, not %d", n, sendAllocations)
	}
	ctx, trace := context.Background(), &chat.TraceContext{}
	if n := testing.AllocsPerRun(1000, func() {
		span := chat.StartSpan(nil, trace, chat.ServerSpan, "x")
		chat.EndSpan(chat.ChildSpan(chat.SpanOf(chat.WithSpan(ctx, span)), chat.InternalSpan, "y"), nil)
	}); n != 0 {
		t.Errorf("looking for a tracer allocates %v times", n)
	}
}
