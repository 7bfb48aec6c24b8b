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

// info is what a socket keeps of its first request: no *http.Request, which would keep
// net/http's buffers alive.
type info struct {
	headers http.Header
	uri     string
	client  client
	time    time.Time
}

func newInfo(r *http.Request, c client) *info {
	return &info{headers: r.Header, uri: r.URL.RequestURI(), client: c, time: time.Now()}
}

func (i *info) handshake() *Handshake {
	h := &Handshake{
		Headers: i.headers,
		URL:     i.uri,
		Host:    i.client.host,
		Address: i.client.address,
		Secure:  i.client.secure,
		XDomain: i.headers["Origin"] != nil,
		Time:    i.time,
		Query:   url.Values{},
	}
	if u, err := url.ParseRequestURI(i.uri); err == nil { // it was parsed before
		h.Query = u.Query()
	}
	return h
}
