package main

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// registry is the metrics of this process, and what docs/metrics.md says of them: what is
// made here is noted on the way. It is filled by one goroutine, before the first scrape.
type registry struct {
	*prometheus.Registry
	part    string // of docs/metrics.md that the next ones belong to
	defined []definition
}

// definition is a row of docs/metrics.md.
type definition struct {
	part, name, kind, help string
	labels                 []string
}

// Parts of docs/metrics.md, in its order.
const (
	partProcess       = "Process"
	partConnections   = "Connections"
	partEvents        = "Events"
	partDelivery      = "Delivery"
	partQueues        = "Queues"
	partDatabase      = "Database"
	partCluster       = "Cluster"
	partNotifications = "Notifications"
	partHTTP          = "HTTP API"
)

// Buckets. Latencies go from 0.1 ms, a message that is stored in memory's time, to 10 s,
// when every request has timed out; sizes from one to the largest batch and group.
var (
	latencies = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
	sizes     = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}
)

// newRegistry makes the registry of this process; components add their own.
func newRegistry() *registry {
	r := &registry{Registry: prometheus.NewRegistry(), part: partProcess}
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	build := r.gauge("xabar_build_info", "1; the labels say what runs.", "version", "go_version")
	build.WithLabelValues(version(), runtime.Version()).Set(1)
	return r
}

// newRefusalMetrics makes the two that several components add to.
func newRefusalMetrics(r *registry) (limited, panics *prometheus.CounterVec) {
	panics = r.counters("xabar_panics_total", "Panics, each of which ended the connection that caused it, by where: engine, middleware, connection, handler, ack, disconnect. Always a bug.", "where")
	r.part = partEvents
	limited = r.counters("xabar_rate_limited_total",
		"What a limit has refused, by limit: events (--limit-events), sends, conversations, handshakes, connections. Refusals of the HTTP API are among xabar_http_requests_total.", "limit")
	return limited, panics
}

func (r *registry) define(kind, name, help string, labels []string) {
	r.defined = append(r.defined, definition{r.part, name, kind, help, labels})
}

// counter makes a counter without labels.
func (r *registry) counter(name, help string) prometheus.Counter {
	return r.counters(name, help).WithLabelValues()
}

// counters makes a counter for each combination of the labels' values.
func (r *registry) counters(name, help string, labels ...string) *prometheus.CounterVec {
	r.define("counter", name, help, labels)
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	r.MustRegister(c)
	return c
}

func (r *registry) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	r.define("gauge", name, help, labels)
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	r.MustRegister(g)
	return g
}

func (r *registry) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	r.define("histogram", name, help, labels)
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	r.MustRegister(h)
	return h
}

// byLabel resolves a counter's children once, so that counting looks up no label. They are
// there from the start: what has not happened yet is 0, and not unknown.
func byLabel[K ~string](c *prometheus.CounterVec, values ...K) map[K]prometheus.Counter {
	children := make(map[K]prometheus.Counter, len(values))
	for _, v := range values {
		children[v] = c.WithLabelValues(string(v))
	}
	return children
}

// scraped are metrics that are read together, at each scrape, so that figures that belong
// together agree.
type scraped struct {
	registry *registry
	descs    []*prometheus.Desc
	read     func(ch chan<- prometheus.Metric)
}

// emitter reports one value; labels are the values of its labels.
type emitter func(ch chan<- prometheus.Metric, value float64, labels ...string)

func (s *scraped) gauge(name, help string, labels ...string) emitter {
	return s.metric("gauge", prometheus.GaugeValue, name, help, labels)
}

func (s *scraped) counter(name, help string, labels ...string) emitter {
	return s.metric("counter", prometheus.CounterValue, name, help, labels)
}

func (s *scraped) metric(kind string, value prometheus.ValueType, name, help string, labels []string) emitter {
	s.registry.define(kind, name, help, labels)
	desc := prometheus.NewDesc(name, help, labels, nil)
	s.descs = append(s.descs, desc)
	return func(ch chan<- prometheus.Metric, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, value, v, labels...)
	}
}

// register begins to serve them.
func (s *scraped) register(read func(ch chan<- prometheus.Metric)) {
	s.read = read
	s.registry.MustRegister(s)
}

// Describe implements prometheus.Collector.
func (s *scraped) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range s.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s *scraped) Collect(ch chan<- prometheus.Metric) { s.read(ch) }

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
