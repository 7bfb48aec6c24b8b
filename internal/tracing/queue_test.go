package tracing

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/goleak"

	"xabar/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// stuck is a collector that takes nothing until it is told to.
type stuck struct {
	called chan struct{} // for each request
	say    chan error    // what it says
}

func newStuck() *stuck { return &stuck{make(chan struct{}, 100), make(chan error)} }

func (s *stuck) ExportSpans(ctx context.Context, _ []sdktrace.ReadOnlySpan) error {
	s.called <- struct{}{}
	select {
	case err := <-s.say:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *stuck) Shutdown(context.Context) error { return nil }

func tracerTo(exporter sdktrace.SpanExporter) *Tracer {
	return newTracer(exporter, resource.Empty(), Config{Ratio: 1, Logger: quiet})
}

func (t *Tracer) spend(n int) {
	for range n {
		t.Start(nil, chat.InternalSpan, "x").End(nil)
	}
}

// A collector that takes nothing costs spans, which are counted, and no time: what is here
// takes as long as it takes, without anybody waiting.
func TestASlowCollectorHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	exporter := newStuck()
	tracer := tracerTo(exporter)
	tracer.spend(batchSize)
	<-exporter.called // the goroutine is held up from here on
	tracer.spend(queueBound + 1000)
	if got := tracer.Stats(); got != (Stats{Dropped: 1000}) {
		t.Errorf("%+v", got)
	}
	exporter.say <- errors.New("no")
	exporter.say <- nil
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := tracer.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the end of time is %v", err)
	}
	got := tracer.Stats()
	if got.Exported != batchSize || got.Exported+got.Failed+got.Dropped != batchSize+queueBound+1000 {
		t.Errorf("%+v are not all spans", got)
	}
	tracer.spend(10)
	if late := tracer.Stats(); late.Dropped != got.Dropped+10 {
		t.Errorf("after the end %+v", late)
	}
}

// What waits is sent at the end, and nothing twice.
func TestTheEndSendsWhatWaits(t *testing.T) {
	t.Parallel()
	exporter := newStuck()
	close(exporter.say)
	tracer := tracerTo(exporter)
	tracer.spend(2*batchSize + 1)
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := tracer.Stats(); got != (Stats{Exported: 2*batchSize + 1}) {
		t.Errorf("%+v", got)
	}
}

func TestFlush(t *testing.T) {
	t.Parallel()
	exporter := newStuck()
	close(exporter.say)
	tracer := tracerTo(exporter)
	tracer.spend(7)
	if err := tracer.queue.ForceFlush(t.Context()); err != nil || tracer.Stats().Exported != 7 {
		t.Errorf("%v, %+v", err, tracer.Stats())
	}
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := tracer.queue.ForceFlush(t.Context()); err != nil {
		t.Errorf("after the end: %v", err)
	}
}
