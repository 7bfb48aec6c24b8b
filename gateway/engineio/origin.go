package engineio

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// verdict on a request's Origin header.
type verdict uint8

const (
	originRefused verdict = iota
	originNone            // no header, or the server's own origin: nothing to say
	originListed          // named: echoed
	originAny             // admitted by "*" alone: never with credentials
)

func (s *Server) checkOrigin(r *http.Request, c client) verdict {
	origin := r.Header.Get("Origin")
	switch {
	case origin == "":
		return originNone
	case sameOrigin(origin, c.host):
		return originNone
	case s.opts.AllowOrigin != nil:
		if s.opts.AllowOrigin(origin, r) {
			return originListed
		}
		return originRefused
	case slices.ContainsFunc(s.opts.Origins, func(p string) bool { return originMatches(p, origin) }):
		return originListed
	case slices.Contains(s.opts.Origins, "*"):
		return originAny
	default:
		return originRefused
	}
}

// sameOrigin compares host and port. The scheme can't be told behind a proxy that ends TLS.
func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	return strings.EqualFold(trimPort(u.Host, u.Scheme), trimPort(host, u.Scheme))
}

func trimPort(host, scheme string) string {
	switch scheme {
	case "http", "ws":
		return strings.TrimSuffix(host, ":80")
	case "https", "wss":
		return strings.TrimSuffix(host, ":443")
	default:
		return host
	}
}

// originMatches compares with one entry of Options.Origins other than "*".
func originMatches(pattern, origin string) bool {
	if before, after, ok := strings.Cut(pattern, "*"); ok {
		if after == "" {
			return false
		}
		n := len(origin) - len(after)
		if n <= len(before) || !strings.EqualFold(origin[:len(before)], before) || !strings.EqualFold(origin[n:], after) {
			return false
		}
		return !strings.ContainsAny(origin[len(before):n], "/:@")
	}
	return strings.EqualFold(strings.TrimSuffix(pattern, "/"), origin)
}

// writeCORS adds the headers that let a browser's page see the answer.
func (s *Server) writeCORS(h http.Header, r *http.Request, v verdict) {
	if len(s.opts.Origins) > 0 || s.opts.AllowOrigin != nil {
		h.Add("Vary", "Origin")
	}
	switch v {
	case originListed:
		h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		if s.opts.Credentials {
			h.Set("Access-Control-Allow-Credentials", "true")
		}
	case originAny:
		h.Set("Access-Control-Allow-Origin", "*")
	}
}

// preflight answers the question that a browser asks before it sends unusual headers.
func preflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET,POST")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
		h.Add("Vary", "Access-Control-Request-Headers")
	}
	h.Set("Access-Control-Max-Age", "600")
	h.Set("Content-Length", "0")
	w.WriteHeader(http.StatusNoContent)
}
