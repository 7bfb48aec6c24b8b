package engineio

// Metrics receives what happens in a Server. Its methods are called from many
// goroutines, some of them while a socket's lock is held: they must be quick and must not
// call back into the package. Embed NopMetrics to implement only some.
type Metrics interface {
	// SessionOpened is called after a handshake.
	SessionOpened(transport string, protocol int)
	// SessionClosed is called once for each opened session, with its last transport.
	SessionClosed(transport string, reason Reason)
	// Upgraded is called when a session moved from polling to WebSocket,
	// UpgradeFailed when a candidate connection was given up.
	Upgraded()
	UpgradeFailed()
	// Refused is called for a request that was answered with an error; cause is one of the
	// Cause constants.
	Refused(cause string)
	// Received is called for each message from a client, with its size in bytes.
	Received(bytes int)
	// Sent is called for each write to a transport, with the bytes that it wrote.
	Sent(bytes int)
	// VolatileDropped is called for each unit of messages that Send dropped.
	VolatileDropped()
	// Panicked is called when a Session panicked.
	Panicked()
}

// Causes of Metrics.Refused.
const (
	CauseUnknownTransport = "unknown_transport"
	CauseUnknownSID       = "unknown_sid"
	CauseBadMethod        = "bad_handshake_method"
	CauseBadRequest       = "bad_request"
	CauseForbidden        = "forbidden"
	CauseProtocolVersion  = "unsupported_protocol_version"
	CauseOrigin           = "origin"
	CauseRateLimited      = "rate_limited"
	CauseTooManySessions  = "too_many_sessions"
	CauseShutdown         = "shutdown"
	CausePayloadTooLarge  = "payload_too_large"
	CauseOverlap          = "overlap"
	CauseTooManyPackets   = "too_many_packets"
	CauseBodyTimeout      = "body_timeout"
)

// NopMetrics implements Metrics and does nothing.
type NopMetrics struct{}

func (NopMetrics) SessionOpened(string, int)    {}
func (NopMetrics) SessionClosed(string, Reason) {}
func (NopMetrics) Upgraded()                    {}
func (NopMetrics) UpgradeFailed()               {}
func (NopMetrics) Refused(string)               {}
func (NopMetrics) Received(int)                 {}
func (NopMetrics) Sent(int)                     {}
func (NopMetrics) VolatileDropped()             {}
func (NopMetrics) Panicked()                    {}
