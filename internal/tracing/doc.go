// Package tracing is chat.Tracer by OpenTelemetry: spans go to a collector by OTLP over
// HTTP (https://opentelemetry.io/docs/specs/otlp/). It is the only package that
// knows OpenTelemetry.
//
// Open makes a Tracer where Configured says that spans have somewhere to go. What is
// recorded is decided when a trace begins, by chance: what is not costs a random number, and
// its nil span nothing at all. Spans that have ended wait in a bounded queue (queue.go)
// for one goroutine that sends them; a collector that is slow or gone costs spans, which
// are counted, and never time.
package tracing
