package main

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"xabar/chat"
	"xabar/gateway/engineio"
	"xabar/gateway/events"
	"xabar/gateway/socketio"
)

// engineMetrics counts what happens to connections (engineio.Metrics).
type engineMetrics struct {
	now                                map[string]prometheus.Gauge // by transport
	opened, refused                    *prometheus.CounterVec
	closed                             map[engineio.Reason]prometheus.Counter
	upgraded, upgradeFailed            prometheus.Counter
	packets, received, sent            prometheus.Counter
	dropped, panics, limitedHandshakes prometheus.Counter
}

func newEngineMetrics(r *registry, limited, panics *prometheus.CounterVec) *engineMetrics {
	r.part = partConnections
	now := r.gauge("xabar_connections", "Connections now, by transport: polling or websocket.", "transport")
	upgrades := r.counters("xabar_connection_upgrades_total", "Upgrades from polling to WebSocket, by result: done or failed.", "result")
	m := &engineMetrics{
		now: map[string]prometheus.Gauge{
			engineio.Polling: now.WithLabelValues(engineio.Polling), engineio.WebSocket: now.WithLabelValues(engineio.WebSocket),
		},
		opened: r.counters("xabar_connections_opened_total",
			"Handshakes that were accepted, by the transport that they came on and the revision of the Engine.IO protocol: 4 or 3.", "transport", "protocol"),
		closed: byLabel(r.counters("xabar_connections_closed_total",
			"Connections that ended, by the reason that Socket.IO gives; `slow consumer` is one that did not read what was sent to it.", "reason"),
			engineio.ReasonTransportClose, engineio.ReasonTransportError, engineio.ReasonPingTimeout, engineio.ReasonParseError,
			engineio.ReasonForcedClose, engineio.ReasonServerShutdown, engineio.ReasonSlowConsumer),
		refused: r.counters("xabar_connection_requests_refused_total",
			"Requests of the transport (handshakes, polls, posts) that were answered with an error, by cause.", "cause"),
		upgraded: upgrades.WithLabelValues("done"), upgradeFailed: upgrades.WithLabelValues("failed"),
		packets:  r.counter("xabar_packets_received_total", "Socket.IO packets from clients: events, acknowledgements, connects."),
		received: r.counter("xabar_received_bytes_total", "Payload of the packets from clients."),
		sent:     r.counter("xabar_sent_bytes_total", "Bytes written to connections."),
		dropped:  r.counter("xabar_volatile_dropped_total", "Volatile events (typing) that a slow connection did not get."),

		limitedHandshakes: limited.WithLabelValues("handshakes"),
	}
	m.panics = panics.WithLabelValues("engine")
	byLabel(m.refused, engineio.CauseUnknownTransport, engineio.CauseUnknownSID, engineio.CauseBadMethod, engineio.CauseBadRequest,
		engineio.CauseForbidden, engineio.CauseProtocolVersion, engineio.CauseOrigin, engineio.CauseRateLimited,
		engineio.CauseTooManySessions, engineio.CauseShutdown, engineio.CausePayloadTooLarge, engineio.CauseOverlap,
		engineio.CauseTooManyPackets, engineio.CauseBodyTimeout)
	for _, transport := range []string{engineio.Polling, engineio.WebSocket} {
		m.opened.WithLabelValues(transport, "4")
	}
	return m
}

// SessionOpened counts a handshake.
func (m *engineMetrics) SessionOpened(transport string, protocol int) {
	version := "4"
	if protocol == 3 {
		version = "3"
	}
	m.opened.WithLabelValues(transport, version).Inc()
	m.now[transport].Inc()
}

// SessionClosed counts the end of a connection.
func (m *engineMetrics) SessionClosed(transport string, reason engineio.Reason) {
	if c := m.closed[reason]; c != nil {
		c.Inc()
	}
	m.now[transport].Dec()
}

// Upgraded counts a connection that is on WebSocket from now on.
func (m *engineMetrics) Upgraded() {
	m.upgraded.Inc()
	m.now[engineio.Polling].Dec()
	m.now[engineio.WebSocket].Inc()
}

// UpgradeFailed counts one that stays on polling.
func (m *engineMetrics) UpgradeFailed() { m.upgradeFailed.Inc() }

// Refused counts a request that was answered with an error.
func (m *engineMetrics) Refused(cause string) {
	m.refused.WithLabelValues(cause).Inc()
	if cause == engineio.CauseRateLimited {
		m.limitedHandshakes.Inc()
	}
}

// Received counts a packet.
func (m *engineMetrics) Received(bytes int) {
	m.packets.Inc()
	m.received.Add(float64(bytes))
}

// Sent counts a write.
func (m *engineMetrics) Sent(bytes int) { m.sent.Add(float64(bytes)) }

// VolatileDropped counts what a slow connection did not get.
func (m *engineMetrics) VolatileDropped() { m.dropped.Inc() }

// Panicked counts a bug.
func (m *engineMetrics) Panicked() { m.panics.Inc() }

// newSocketHooks counts what happens to sockets. Names that clients choose never become
// labels: they could be without end.
func newSocketHooks(r *registry, panics *prometheus.CounterVec) socketio.Hooks {
	r.part = partConnections
	now := r.gauge("xabar_sockets", "Sockets now: a connection has one for each namespace that it has joined.").WithLabelValues()
	connects := r.counter("xabar_sockets_connected_total", "Sockets that joined a namespace.")
	refused := r.counters("xabar_sockets_refused_total",
		"Sockets that were refused, by the error's code; `other` for what is not chat's to refuse.", "code")
	codes := byLabel(refused, append(chat.Codes(), "other")...)
	malformed := r.counter("xabar_malformed_packets_total", "Connections closed for a packet that breaks the protocol.")
	bounds := r.counters("xabar_bounds_hit_total", "Bounds of the Socket.IO server that a client has hit, by the bound.", "bound")
	byLabel(bounds, "ConnectTimeout", "MaxAttachmentBytes", "MaxAttachments", "MaxNamespaces", "MaxRooms")
	handlers := byLabel(panics, "handler", "middleware", "connection", "ack", "disconnect")
	return socketio.Hooks{
		Connect:        func(string) { connects.Inc(); now.Inc() },
		Disconnect:     func(string, string) { now.Dec() },
		ConnectRefused: func(_ string, err error) { codes[refusalCode(err)].Inc() },
		Malformed:      func(error) { malformed.Inc() },
		Bound:          func(bound string) { bounds.WithLabelValues(bound).Inc() },
		Panic: func(where string, _ *socketio.PanicError) {
			if c := handlers[where]; c != nil {
				c.Inc()
			}
		},
	}
}

func refusalCode(err error) chat.Code {
	var refused *socketio.ConnectError
	if errors.As(err, &refused) {
		if why, ok := refused.Data.(events.Refusal); ok {
			return why.Code
		}
	}
	return "other"
}
