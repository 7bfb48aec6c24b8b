package engineio

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Names of the transports.
const (
	Polling   = "polling"
	WebSocket = "websocket"
)

// Options of a Server. The zero value is Node's default, with same-origin requests only.
type Options struct {
	// Path under which requests are served; others are answered with 404. Default "/engine.io".
	Path string
	// NoTrailingSlash makes Path match without a slash behind it (Node's addTrailingSlash: false).
	NoTrailingSlash bool
	// Transports that may be used, of "polling" and "websocket". Default both.
	Transports []string
	// NoUpgrades takes away the upgrade from polling to WebSocket.
	NoUpgrades bool
	// AllowEIO3 admits clients of protocol 3 (Socket.IO 2), JSONP polling included.
	AllowEIO3 bool

	// PingInterval between heartbeats. Default 25 s.
	PingInterval time.Duration
	// PingTimeout: how long to wait for the answer. Default 20 s.
	PingTimeout time.Duration
	// UpgradeTimeout: how long an upgrade may take. Default 10 s.
	UpgradeTimeout time.Duration
	// CloseTimeout: how long a graceful close may take to flush. Default 10 s.
	CloseTimeout time.Duration
	// BodyTimeout: how long the body of a polling request may take to arrive. Default 30 s.
	BodyTimeout time.Duration

	// MaxPayload is the size of a WebSocket message or polling body that is accepted, in
	// bytes, and what clients are told as maxPayload. Default 1,000,000.
	MaxPayload int
	// MaxPackets in one polling body. Default 32,768.
	MaxPackets int
	// SendBudget is the size of a socket's outbound queue in bytes. A unit that would
	// exceed it closes the socket as a slow consumer; an empty queue takes a unit of any
	// size. Default 1 MiB.
	SendBudget int
	// VolatileBudget is the size of the queue above which volatile messages are dropped.
	// Default SendBudget / 16.
	VolatileBudget int
	// MaxSessions at a time; a handshake beyond it is answered with 503. Default: no limit.
	MaxSessions int
	// HandshakeRate is how many handshakes a second one address (IPv6: one /64) may do, with
	// bursts of HandshakeBurst (default: the rate, at least 1); beyond it 429. Default: no limit.
	HandshakeRate  float64
	HandshakeBurst int

	// Compression negotiates permessage-deflate (without context takeover) on WebSocket.
	Compression bool
	// CompressionThreshold: messages and polling answers of fewer bytes are not compressed.
	// Default 1024.
	CompressionThreshold int
	// NoHTTPCompression sends polling answers uncompressed whatever the client accepts.
	NoHTTPCompression bool

	// SessionPrefix, if not empty, stands with a dot in front of every session id, so that a
	// balancer can tell from a request's sid which server it is for. At most 64 letters, digits,
	// hyphens and underscores.
	SessionPrefix string
	// Cookie, if not nil, is set by the handshake's answer with the session id as its value,
	// for sticky sessions. Empty Name and Path become "io" and "/".
	Cookie *http.Cookie
	// Origins that may connect besides the server's own: "https://example.org",
	// "https://*.example.org" for any subdomain, "null", or "*" for any. A request with any other
	// Origin header is refused, on polling as on WebSocket.
	Origins []string
	// AllowOrigin, if not nil, decides instead of Origins for origins other than the server's own.
	AllowOrigin func(origin string, r *http.Request) bool
	// Credentials lets browsers of listed origins send cookies. It has no effect on origins
	// that only "*" admits.
	Credentials bool
	// TrustedProxies whose X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host are believed.
	TrustedProxies []netip.Prefix

	// AllowRequest, if not nil, is asked before a handshake. An error refuses it with
	// status 403 and the error's text, a *RefuseError with its own.
	AllowRequest func(r *http.Request) error
	// InitialHeaders, if not nil, may add headers to the answer of a handshake.
	InitialHeaders func(h http.Header, r *http.Request)
	// Headers, if not nil, may add headers to every answer of a session.
	Headers func(h http.Header, r *http.Request)

	// Logger for panics and internal errors. Default slog.Default().
	Logger *slog.Logger
	// Metrics, if not nil, is told what happens.
	Metrics Metrics
}

func (o *Options) setDefaults() {
	setDefault(&o.Path, "/engine.io")
	if len(o.Transports) == 0 {
		o.Transports = []string{Polling, WebSocket}
	}
	setDefault(&o.PingInterval, 25*time.Second)
	setDefault(&o.PingTimeout, 20*time.Second)
	setDefault(&o.UpgradeTimeout, 10*time.Second)
	setDefault(&o.CloseTimeout, 10*time.Second)
	setDefault(&o.BodyTimeout, 30*time.Second)
	setDefault(&o.MaxPayload, 1_000_000)
	setDefault(&o.MaxPackets, 32768)
	setDefault(&o.SendBudget, 1<<20)
	setDefault(&o.VolatileBudget, o.SendBudget/16)
	setDefault(&o.CompressionThreshold, 1024)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Metrics == nil {
		o.Metrics = NopMetrics{}
	}
	if o.Cookie != nil {
		cookie := *o.Cookie
		setDefault(&cookie.Name, "io")
		setDefault(&cookie.Path, "/")
		o.Cookie = &cookie
	}
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Validate reports what is wrong with the options: a transport that does not exist, a negative
// bound, an origin that can match nothing. Zero values stand for defaults and are right.
func (o *Options) Validate() error {
	for _, t := range o.Transports {
		if t != Polling && t != WebSocket {
			return fmt.Errorf("engineio: unknown transport %q", t)
		}
	}
	bounds := map[string]int64{
		"PingInterval": int64(o.PingInterval), "PingTimeout": int64(o.PingTimeout),
		"UpgradeTimeout": int64(o.UpgradeTimeout), "CloseTimeout": int64(o.CloseTimeout),
		"BodyTimeout": int64(o.BodyTimeout), "MaxPayload": int64(o.MaxPayload),
		"MaxPackets": int64(o.MaxPackets), "SendBudget": int64(o.SendBudget),
		"VolatileBudget": int64(o.VolatileBudget), "MaxSessions": int64(o.MaxSessions),
		"HandshakeBurst": int64(o.HandshakeBurst), "CompressionThreshold": int64(o.CompressionThreshold),
	}
	for name, v := range bounds {
		if v < 0 {
			return fmt.Errorf("engineio: %s is negative", name)
		}
	}
	if o.HandshakeRate < 0 {
		return errors.New("engineio: HandshakeRate is negative")
	}
	if !ValidSessionPrefix(o.SessionPrefix) {
		return fmt.Errorf("engineio: %q is no session prefix", o.SessionPrefix)
	}
	for _, origin := range o.Origins {
		if err := validOrigin(origin); err != nil {
			return err
		}
	}
	return nil
}

// ValidSessionPrefix reports whether Options.SessionPrefix may be this.
func ValidSessionPrefix(prefix string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return len(prefix) <= 64 && strings.Trim(prefix, letters) == ""
}

func validOrigin(origin string) error {
	if origin == "*" || origin == "null" {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Host == "" || strings.Trim(u.Path, "/") != "" || strings.Count(origin, "*") > 1 {
		return fmt.Errorf("engineio: %q is no origin: want scheme://host[:port]", origin)
	}
	return nil
}
