package engineio

import (
	"context"
	"net/http"
)

// Server is an Engine.IO server: an http.Handler.
type Server struct{}

// NewServer starts a server; Shutdown ends it. accept is called for each new socket, after its
// open packet is queued and before its first message; a nil Session refuses the socket.
// It panics if opts are contradictory (see Options.Validate).
func NewServer(opts Options, accept func(*Socket) Session) *Server { return nil }

// ServeHTTP serves the requests below Options.Path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {}

// Sockets returns the number of open sessions.
func (s *Server) Sockets() int { return 0 }

// Socket returns the open session with this id, nil if there is none.
func (s *Server) Socket(id string) *Socket { return nil }

// Range calls f for each open session until f returns false. Sessions that open or close
// meanwhile may be missed.
func (s *Server) Range(f func(*Socket) bool) {}

// Shutdown refuses new sessions, closes all gracefully with ReasonServerShutdown, and waits
// until every goroutine and request of the server has ended. When ctx ends first it
// discards what is still queued and returns ctx's error once the connections are cut; Sessions
// that are blocked may then still be running.
func (s *Server) Shutdown(ctx context.Context) error { return nil }
