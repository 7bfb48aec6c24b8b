package engineio

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Handshake is what is known of the request that opened a session.
type Handshake struct {
	Headers http.Header // as sent
	Query   url.Values  // EIO, transport and the client's own
	URL     string      // path and query
	Host    string      // as sent, or X-Forwarded-Host from a trusted proxy
	Address string      // the client's IP address; behind trusted proxies the one that they name
	Secure  bool        // TLS, here or at a trusted proxy
	XDomain bool        // an Origin header was sent (Node's xdomain)
	Time    time.Time
}

// info is what a socket keeps of its first request: no *http.Request, which would keep net/http's
// buffers alive, and no map of headers, which would be most of what an idle session takes.
type info struct {
	// request is the path and query, and behind it a line "Name:value" for each header. None of
	// them can hold a line's end.
	request string
	client  client
	time    time.Time
}

func newInfo(r *http.Request, c client) *info {
	var b strings.Builder
	uri, size := r.URL.RequestURI(), 0
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(value) + 2
		}
	}
	b.Grow(len(uri) + size)
	b.WriteString(uri)
	for name, values := range r.Header {
		for _, value := range values {
			b.WriteByte('\n')
			b.WriteString(name)
			b.WriteByte(':')
			b.WriteString(value)
		}
	}
	return &info{request: b.String(), client: c, time: time.Now()}
}

func (i *info) handshake() *Handshake {
	uri, lines, more := strings.Cut(i.request, "\n")
	headers := http.Header{}
	for more {
		var line string
		line, lines, more = strings.Cut(lines, "\n")
		name, value, _ := strings.Cut(line, ":")
		headers[name] = append(headers[name], value)
	}
	h := &Handshake{
		Headers: headers,
		URL:     uri,
		Host:    i.client.host,
		Address: i.client.address,
		Secure:  i.client.secure,
		XDomain: headers["Origin"] != nil,
		Time:    i.time,
		Query:   url.Values{},
	}
	if u, err := url.ParseRequestURI(uri); err == nil { // it was parsed before
		h.Query = u.Query()
	}
	return h
}
