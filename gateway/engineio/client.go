package engineio

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// client is who sent a request, seen through the trusted proxies.
type client struct {
	address string
	host    string
	secure  bool
}

func (s *Server) clientOf(r *http.Request) client {
	c := client{address: r.RemoteAddr, host: r.Host, secure: r.TLS != nil}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		c.address = host
	}
	if len(s.opts.TrustedProxies) == 0 || !s.trusts(c.address) {
		return c
	}
	c.address = s.forwardedFor(r.Header["X-Forwarded-For"], c.address)
	if proto := lastOf(r.Header["X-Forwarded-Proto"]); proto != "" {
		c.secure = strings.EqualFold(proto, "https") || strings.EqualFold(proto, "wss")
	}
	if host := lastOf(r.Header["X-Forwarded-Host"]); host != "" {
		c.host = host
	}
	return c
}

// forwardedFor walks the list from the nearest proxy outwards up to the first address that is not
// a trusted proxy: what stands further left was written by the client itself.
func (s *Server) forwardedFor(lines []string, peer string) string {
	hops := strings.Split(strings.Join(lines, ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		hop := strings.Trim(strings.TrimSpace(hops[i]), "[]")
		addr, err := netip.ParseAddr(hop)
		if err != nil {
			if ap, err := netip.ParseAddrPort(strings.TrimSpace(hops[i])); err == nil {
				addr = ap.Addr()
			} else {
				return peer
			}
		}
		peer = addr.Unmap().String()
		if !s.trusts(peer) {
			break
		}
	}
	return peer
}

func (s *Server) trusts(address string) bool {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	addr = addr.Unmap().WithZone("")
	for _, p := range s.opts.TrustedProxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// lastOf returns the value that the nearest proxy wrote.
func lastOf(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	line := lines[len(lines)-1]
	return strings.TrimSpace(line[strings.LastIndexByte(line, ',')+1:])
}
