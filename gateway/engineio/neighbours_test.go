package engineio

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

// Requests beside Engine.IO get the same answers about origin and address as a handshake.
func TestNeighboursFollowTheSameRules(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Options{
		Origins: []string{"https://page.example"}, Credentials: true,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	}, nil)
	tests := []struct {
		name, origin, host, from, forwardedFor, forwardedHost string
		admitted                                              bool
		allowed, address                                      string
	}{
		{name: "no page", host: "chat.example", from: "192.0.2.1:5000", admitted: true, address: "192.0.2.1"},
		{name: "the server's own page", origin: "http://chat.example", host: "chat.example", from: "192.0.2.1:5000", admitted: true, address: "192.0.2.1"},
		{name: "a listed page", origin: "https://page.example", host: "chat.example", from: "[2001:db8::1]:5000", admitted: true, allowed: "https://page.example", address: "2001:db8::1"},
		{name: "a page nobody listed", origin: "https://evil.example", host: "chat.example", from: "192.0.2.1:5000", address: "192.0.2.1"},
		{name: "behind a trusted proxy", origin: "http://public.example", host: "inner", from: "10.1.2.3:5000", forwardedFor: "192.0.2.7", forwardedHost: "public.example", admitted: true, address: "192.0.2.7"},
		{name: "a stranger that says it is a proxy", origin: "http://public.example", host: "inner", from: "192.0.2.1:5000", forwardedFor: "192.0.2.7", forwardedHost: "public.example", address: "192.0.2.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "http://"+tt.host+"/api", nil)
			r.RemoteAddr = tt.from
			for name, value := range map[string]string{"Origin": tt.origin, "X-Forwarded-For": tt.forwardedFor, "X-Forwarded-Host": tt.forwardedHost} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			h := http.Header{}
			if got := f.server.AdmitOrigin(h, r); got != tt.admitted {
				t.Errorf("admitted: %v, want %v", got, tt.admitted)
			}
			if got := h.Get("Access-Control-Allow-Origin"); tt.allowed != "" && got != tt.allowed || !tt.admitted && len(h) != 0 {
				t.Errorf("headers %v, want the origin %q", h, tt.allowed)
			}
			if got := f.server.ClientAddress(r); got != tt.address {
				t.Errorf("address %q, want %q", got, tt.address)
			}
		})
	}
}
