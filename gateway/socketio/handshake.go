package socketio

import (
	"encoding/json"
	"strings"
)

// Handshake is what is known of the request that opened the connection, and the auth payload.
type Handshake struct {
	Headers map[string]string `json:"headers"` // names in lower case
	Time    string            `json:"time"`
	Address string            `json:"address"` // the client's, behind trusted proxies
	XDomain bool              `json:"xdomain"` // an Origin header was sent
	Secure  bool              `json:"secure"`
	Issued  int64             `json:"issued"` // milliseconds since 1970
	URL     string            `json:"url"`
	Query   map[string]string `json:"query"` // the last value of each name
	Auth    json.RawMessage   `json:"auth"`  // an object; {} if the client sent none
}

// Handshake returns the handshake details, made anew by each call.
func (s *Socket) Handshake() *Handshake {
	h := s.conn.Handshake()
	hs := &Handshake{
		Headers: make(map[string]string, len(h.Headers)),
		Time:    h.Time.Format("Mon Jan 02 2006 15:04:05 GMT-0700 (MST)"),
		Address: h.Address, XDomain: h.XDomain, Secure: h.Secure,
		Issued: h.Time.UnixMilli(), URL: h.URL,
		Query: make(map[string]string, len(h.Query)),
		Auth:  s.Auth(),
	}
	for k, v := range h.Headers {
		hs.Headers[strings.ToLower(k)] = joinHeader(k, v)
	}
	for k, v := range h.Query {
		hs.Query[k] = v[len(v)-1]
	}
	return hs
}

// joinHeader makes one string of a header's values, as Node does.
func joinHeader(name string, values []string) string {
	if name == "Cookie" {
		return strings.Join(values, "; ")
	}
	return strings.Join(values, ", ")
}
