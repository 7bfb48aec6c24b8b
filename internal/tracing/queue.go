package tracing

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Bounds of the queue.
const (
	queueBound    = 4096             // spans that wait; beyond them new ones are dropped
	batchSize     = 512              // spans in one request
	batchWait     = time.Second      // for more of them
	exportTimeout = 10 * time.Second // of one request, with its repetitions
	cutGrace      = time.Second      // in which an export ends that is cut off
	complainEvery = time.Minute      // in the log, about spans that were not taken
)

// queue is a sdktrace.SpanProcessor: spans that have ended wait here for its goroutine,
// which sends them in batches. Nobody waits for it but Shutdown.
type queue struct {
	exporter sdktrace.SpanExporter
	log      *slog.Logger
	spans    chan sdktrace.ReadOnlySpan
	flushes  chan chan struct{}
	stopping sync.Once
	stop     chan struct{} // closed by Shutdown
	ended    chan struct{} // closed when the goroutine has ended

	exports context.Context // of all of them
	cut     context.CancelFunc

	complained time.Time // the goroutine's own

	exported, failed, dropped atomic.Int64
}

func newQueue(exporter sdktrace.SpanExporter, log *slog.Logger, bound int) *queue {
	q := &queue{
		exporter: exporter, log: log, spans: make(chan sdktrace.ReadOnlySpan, bound),
		flushes: make(chan chan struct{}), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	q.exports, q.cut = context.WithCancel(context.Background())
	go q.run()
	return q
}

// OnStart implements sdktrace.SpanProcessor.
func (q *queue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor. It never waits.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	select {
	case <-q.stop:
		q.dropped.Add(1)
		return
	default:
	}
	select {
	case q.spans <- s:
	default:
		q.dropped.Add(1)
	}
}

// run sends until Shutdown. An idle queue sleeps.
func (q *queue) run() {
	defer close(q.ended)
	batch := make([]sdktrace.ReadOnlySpan, 0, batchSize)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case s := <-q.spans:
			if batch = append(batch, s); len(batch) == 1 {
				timer.Reset(batchWait)
			}
			if len(batch) == batchSize {
				batch = q.export(batch)
			}
		case <-timer.C:
			batch = q.export(batch)
		case done := <-q.flushes:
			batch = q.exportAll(batch)
			close(done)
		case <-q.stop:
			q.exportAll(batch)
			return
		}
	}
}

// exportAll sends what has come so far.
func (q *queue) exportAll(batch []sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	for {
		select {
		case s := <-q.spans:
			if batch = append(batch, s); len(batch) == batchSize {
				batch = q.export(batch)
			}
		default:
			return q.export(batch)
		}
	}
}

// export sends a batch and empties it.
func (q *queue) export(batch []sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	if len(batch) == 0 {
		return batch
	}
	ctx, cancel := context.WithTimeout(q.exports, exportTimeout)
	defer cancel()
	if err := q.exporter.ExportSpans(ctx, batch); err == nil {
		q.exported.Add(int64(len(batch)))
	} else if failed := q.failed.Add(int64(len(batch))); time.Since(q.complained) >= complainEvery {
		q.complained = time.Now()
		q.log.Warn("traces were not exported", "error", err, "spans_failed", failed, "spans_dropped", q.dropped.Load())
	}
	clear(batch)
	return batch[:0]
}

// ForceFlush implements sdktrace.SpanProcessor: it returns when what had ended before has been
// sent.
func (q *queue) ForceFlush(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case q.flushes <- done:
	case <-q.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Shutdown implements sdktrace.SpanProcessor. What can't be sent before ctx ends is given
// up.
func (q *queue) Shutdown(ctx context.Context) error {
	q.stopping.Do(func() { close(q.stop) })
	defer q.cut()
	select {
	case <-q.ended:
	case <-ctx.Done():
		q.cut()
		grace := time.NewTimer(cutGrace)
		defer grace.Stop()
		select {
		case <-q.ended:
		case <-grace.C:
			return ctx.Err()
		}
	}
	q.dropped.Add(int64(len(q.spans))) // that ended in the very moment
	if err := q.exporter.Shutdown(ctx); err != nil {
		return err
	}
	return ctx.Err()
}
