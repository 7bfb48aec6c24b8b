package engineio

import (
	"net/http"
	"net/url"
	"time"
)

// Handshake is what is known of the request that opened a session.
type Handshake struct {
	Headers http.Header // as sent; not to be changed
	Query   url.Values  // EIO, transport and the client's own
	URL     string      // path and query
	Host    string      // as sent, or X-Forwarded-Host from a trusted proxy
	Address string      // the client's IP address; behind trusted proxies the one that they name
	Secure  bool        // TLS, here or at a trusted proxy
	XDomain bool        // an Origin header was sent (Node's xdomain)
	Time    time.Time
}
