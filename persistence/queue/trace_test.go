package queue_test

import (
	"context"
	"testing"
	"time"

	"xabar/chat"
	"xabar/persistence/queue"
)

// A job keeps the trace that it comes from; one without has none.
func TestTheTraceOfAJob(t *testing.T) {
	on(t, func(t *testing.T, url string) {
		q := open(t, url, queue.Options{Channels: []string{"webhook"}})
		traced, other := job("webhook"), job("webhook")
		traced.Trace = &chat.TraceContext{TraceID: chat.NewID(), SpanID: [8]byte{7}}
		insert(t, q, traced, other)
		got := make(chan chat.NotifyAttempt, 2)
		run(t, q, func(_ context.Context, a chat.NotifyAttempt) (time.Duration, bool, error) {
			got <- a
			return 0, false, nil
		})
		for range 2 {
			a := receive(t, got)
			switch {
			case a.Notification == other.Notification && a.Trace != nil:
				t.Errorf("a trace came from nowhere: %+v", a.Trace)
			case a.Notification == traced.Notification && (a.Trace == nil || a.Trace.Traceparent() != traced.Trace.Traceparent()):
				t.Errorf("the trace is %+v", a.Trace)
			}
		}
	})
}
