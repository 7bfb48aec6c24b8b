package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"xabar/chat"
	"xabar/internal/tracing"
)

// Tracing says whether and where traces are sent.
type Tracing struct {
	OTLPEndpoint string  `name:"otlp-endpoint" placeholder:"URL" help:"Turns traces on: a collector that takes OTLP over HTTP, like http://127.0.0.1:4318. OTEL_EXPORTER_OTLP_ENDPOINT does the same."`
	TraceSample  float64 `name:"trace-sample" default:"0.1" placeholder:"RATIO" help:"How many of the traces that begin here are recorded, from 0 (none) to 1 (all)."`
}

// tracer is nil where traces go nowhere.
func (t Tracing) tracer(ctx context.Context, log *slog.Logger) (*tracing.Tracer, error) {
	if !tracing.Configured(t.OTLPEndpoint) {
		return nil, nil
	}
	return tracing.Open(ctx, tracing.Config{
		Endpoint: t.OTLPEndpoint, Ratio: t.TraceSample, Version: version(), Instance: uuid.NewString(), Logger: log,
	})
}

// traces is what an App does with its tracer, which may be nil.
type traces struct{ tracer *tracing.Tracer }

// port is the tracer for those who record: nil, and not a nil pointer in an interface, if
// nothing is recorded.
func (t traces) port() chat.Tracer {
	if t.tracer == nil {
		return nil
	}
	return t.tracer
}

// close sends what is left, or gives it up at the deadline: traces are no reason for a node
// to end badly.
func (t traces) close(ctx context.Context, log *slog.Logger) {
	if t.tracer == nil {
		return
	}
	before := time.Now()
	if err := t.tracer.Close(ctx); err != nil {
		stats := t.tracer.Stats()
		log.Warn("traces were given up", "after", time.Since(before).Round(time.Millisecond).String(),
			"spans_failed", stats.Failed, "spans_dropped", stats.Dropped, "error", err)
	}
}

// register adds what became of spans.
func (t traces) register(r *registry) {
	r.part = partProcess
	s := &scraped{registry: r}
	spans := s.counter("xabar_trace_spans_total", "Spans of traces, by what became of them: exported, failed (the collector did not take them) or dropped (no room, or no time at the end).", "outcome")
	s.register(func(ch chan<- prometheus.Metric) {
		var stats tracing.Stats
		if t.tracer != nil {
			stats = t.tracer.Stats()
		}
		spans(ch, float64(stats.Exported), "exported")
		spans(ch, float64(stats.Failed), "failed")
		spans(ch, float64(stats.Dropped), "dropped")
	})
}

// checkTracing finds what can't work.
func (c *Config) checkTracing() error {
	err := tracing.Check(c.OTLPEndpoint, c.TraceSample)
	if c.given("otlp-endpoint") && c.OTLPEndpoint == "" {
		err = errors.Join(err, errors.New("--otlp-endpoint is set, but empty"))
	}
	return err
}
