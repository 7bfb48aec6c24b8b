package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"xabar/gateway/engineio"
	"xabar/gateway/socketio"
)

// newRegistry makes the registry of this process; components add their own.
func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector(),
	)
	return r
}

// engineMetrics counts what happens to connections (engineio.Metrics).
type engineMetrics struct {
	opened, closed, refused  *prometheus.CounterVec
	upgrades                 *prometheus.CounterVec
	messages, received, sent prometheus.Counter
	dropped, panics          prometheus.Counter
}

func counter(r prometheus.Registerer, name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	r.MustRegister(c)
	return c
}

func counterVec(r prometheus.Registerer, name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	r.MustRegister(c)
	return c
}

func gauge(r prometheus.Registerer, name, help string, value func() float64) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

func newEngineMetrics(r prometheus.Registerer) *engineMetrics {
	return &engineMetrics{
		opened:   counterVec(r, "xabar_connections_opened_total", "Handshakes that were accepted.", "transport", "protocol"),
		closed:   counterVec(r, "xabar_connections_closed_total", "Connections that ended, by the reason that Socket.IO gives.", "reason"),
		refused:  counterVec(r, "xabar_requests_refused_total", "Requests of the transport that were answered with an error.", "cause"),
		upgrades: counterVec(r, "xabar_upgrades_total", "Upgrades from polling to WebSocket.", "result"),
		messages: counter(r, "xabar_messages_received_total", "Engine.IO messages from clients."),
		received: counter(r, "xabar_received_bytes_total", "Payload of the messages from clients."),
		sent:     counter(r, "xabar_sent_bytes_total", "Bytes written to transports."),
		dropped:  counter(r, "xabar_volatile_dropped_total", "Volatile events that a slow connection did not get."),
		panics:   counter(r, "xabar_panics_total", "Connections that ended by a panic of the server's. Always a bug."),
	}
}

func (m *engineMetrics) SessionOpened(transport string, protocol int) {
	version := "4"
	if protocol == 3 {
		version = "3"
	}
	m.opened.WithLabelValues(transport, version).Inc()
}

func (m *engineMetrics) SessionClosed(reason engineio.Reason) {
	m.closed.WithLabelValues(string(reason)).Inc()
}

func (m *engineMetrics) Upgraded()      { m.upgrades.WithLabelValues("done").Inc() }
func (m *engineMetrics) UpgradeFailed() { m.upgrades.WithLabelValues("failed").Inc() }

func (m *engineMetrics) Refused(cause string) { m.refused.WithLabelValues(cause).Inc() }

func (m *engineMetrics) Received(bytes int) {
	m.messages.Inc()
	m.received.Add(float64(bytes))
}

func (m *engineMetrics) Sent(bytes int)   { m.sent.Add(float64(bytes)) }
func (m *engineMetrics) VolatileDropped() { m.dropped.Inc() }
func (m *engineMetrics) Panicked()        { m.panics.Inc() }

// newSocketHooks counts what happens to sockets. Names that clients choose never
// become labels: they could be without end.
func newSocketHooks(r prometheus.Registerer) socketio.Hooks {
	connects := counter(r, "xabar_sockets_connected_total", "Sockets that joined a namespace.")
	refused := counter(r, "xabar_sockets_refused_total", "Sockets that were refused, by middleware or a bound.")
	events := counter(r, "xabar_events_received_total", "Events from clients.")
	timeouts := counter(r, "xabar_ack_timeouts_total", "Acknowledgements that did not come in time.")
	malformed := counter(r, "xabar_malformed_packets_total", "Connections closed for a packet that breaks the protocol.")
	bounds := counterVec(r, "xabar_bounds_hit_total", "Bounds that a client has hit.", "bound")
	panics := counterVec(r, "xabar_handler_panics_total", "Panics in handlers. Always a bug.", "where")
	pending := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "xabar_socket_pending_acks", Help: "Acknowledgements that single sockets owe.",
	})
	r.MustRegister(pending)
	return socketio.Hooks{
		Connect:        func(string) { connects.Inc() },
		ConnectRefused: func(string, error) { refused.Inc() },
		EventIn:        func(string, string) { events.Inc() },
		PendingAcks:    func(delta int) { pending.Add(float64(delta)) },
		AckTimeout:     func(string) { timeouts.Inc() },
		Malformed:      func(error) { malformed.Inc() },
		Bound:          func(bound string) { bounds.WithLabelValues(bound).Inc() },
		Panic:          func(where string, _ *socketio.PanicError) { panics.WithLabelValues(where).Inc() },
	}
}
