package engineio

import "net/http"

// An application usually serves more than Socket.IO on its address. These apply the server's own
// rules to those requests, so that there is one answer to who may come from where.

// AdmitOrigin says whether a page of the request's Origin may call, as for a handshake, and writes
// the CORS headers of one that may into h.
func (s *Server) AdmitOrigin(h http.Header, r *http.Request) bool {
	v := s.checkOrigin(r, s.clientOf(r))
	if v == originRefused {
		return false
	}
	s.writeCORS(h, r, v)
	return true
}

// ClientAddress is the IP address that the request came from, seen through the trusted proxies.
func (s *Server) ClientAddress(r *http.Request) string { return s.clientOf(r).address }
