package engineio

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Server is an Engine.IO server: an http.Handler.
type Server struct {
	opts    Options
	accept  func(*Socket) Session
	log     *slog.Logger
	metrics Metrics

	limit    *rateLimit // nil: none
	wheel    *wheel
	flushers []*flusher
	next     atomic.Uint32  // spreads sockets over the flushers
	tracker  *tracker       // requests, sessions and their goroutines
	helpers  sync.WaitGroup // wheel and flushers
	stop     chan struct{}  // ends the wheel

	mu      sync.RWMutex // guards all below
	sockets map[string]*Socket
	pending int // handshakes that have a place but no socket yet
	closing bool
}

// NewServer starts a server; Shutdown ends it. accept is called for each new socket, after its
// open packet is queued and before its first message; a nil Session refuses the socket.
// It panics if opts are contradictory (see Options.Validate).
func NewServer(opts Options, accept func(*Socket) Session) *Server {
	opts.setDefaults()
	if err := opts.Validate(); err != nil {
		panic(err)
	}
	s := &Server{
		opts:    opts,
		accept:  accept,
		log:     opts.Logger,
		metrics: opts.Metrics,
		wheel:   newWheel(&opts),
		tracker: newTracker(),
		stop:    make(chan struct{}),
		sockets: map[string]*Socket{},
	}
	if opts.HandshakeRate > 0 {
		s.limit = newRateLimit(opts.HandshakeRate, opts.HandshakeBurst)
	}
	s.helpers.Go(func() { s.wheel.run(s.stop) })
	// One for two processors: whoever sends needs some too, and fewer flushers coalesce more.
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		f := newFlusher()
		s.flushers = append(s.flushers, f)
		s.helpers.Go(f.run)
	}
	return s
}

// ServeHTTP serves the requests below Options.Path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.serves(r.URL.Path) {
		http.NotFound(w, r)
		return
	}
	if !s.tracker.add() {
		s.refuse(w, r, refuseShutdown)
		return
	}
	defer s.tracker.done()
	s.route(w, r)
}

// serves reports whether path is the server's, as Node compares it: by its start.
func (s *Server) serves(path string) bool {
	base := strings.TrimSuffix(s.opts.Path, "/")
	rest, ok := strings.CutPrefix(path, base)
	return ok && (strings.HasPrefix(rest, "/") || rest == "" && s.opts.NoTrailingSlash)
}

// route does the checks that all requests share, in Node's order, and hands the request on.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	client := s.clientOf(r)
	origin := s.checkOrigin(r, client)
	if !isUpgrade(r) {
		s.writeCORS(w.Header(), r, origin)
	}
	q := parseQuery(r.URL.RawQuery)
	transport := q.get("transport")
	switch {
	case r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" && origin != originRefused:
		preflight(w, r)
	case origin == originRefused:
		s.refuse(w, r, refuseOrigin)
	case !slices.Contains(s.opts.Transports, transport):
		s.refuse(w, r, refuseTransport)
	case q.get("sid") != "":
		s.routeSession(w, r, q)
	case r.Method != http.MethodGet:
		s.refuse(w, r, refuseMethod)
	case (transport == WebSocket) != isUpgrade(r):
		s.refuse(w, r, refuseRequest)
	default:
		s.handshake(w, r, q, client)
	}
}

func (s *Server) routeSession(w http.ResponseWriter, r *http.Request, q query) {
	socket := s.Socket(q.get("sid"))
	switch {
	case socket == nil || socket.expired():
		s.refuse(w, r, refuseSID)
	case isUpgrade(r):
		s.serveProbe(w, r, q, socket)
	case q.get("transport") != socket.Transport():
		s.refuse(w, r, refuseRequest)
	case r.Method == http.MethodGet:
		socket.servePoll(w, r)
	case r.Method == http.MethodPost:
		socket.servePost(w, r)
	default: // as in Node
		w.WriteHeader(http.StatusInternalServerError)
	}
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, f *refusal) {
	s.metrics.Refused(f.cause)
	f.write(w, isUpgrade(r))
}

// Sockets returns the number of open sessions.
func (s *Server) Sockets() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.sockets)
}

// Socket returns the open session with this id, nil if there is none.
func (s *Server) Socket(id string) *Socket {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.sockets[id]
}

// Range calls f for each open session until f returns false. Sessions that open or close
// meanwhile may be missed.
func (s *Server) Range(f func(*Socket) bool) {
	for _, socket := range s.snapshot() {
		if !f(socket) {
			return
		}
	}
}

func (s *Server) snapshot() []*Socket {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*Socket, 0, len(s.sockets))
	for _, socket := range s.sockets {
		all = append(all, socket)
	}
	return all
}

// reserve takes a place for a new session.
func (s *Server) reserve() *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return refuseShutdown
	}
	if s.opts.MaxSessions > 0 && len(s.sockets)+s.pending >= s.opts.MaxSessions {
		return refuseSessions
	}
	s.pending++
	return nil
}

// unreserve gives a place back that did not become a session.
func (s *Server) unreserve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending--
}

// register puts a new session into its place. It reports whether the server is closing, which then
// does not know of the session.
func (s *Server) register(socket *Socket) (closing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending--
	s.sockets[socket.id] = socket
	return s.closing
}

func (s *Server) remove(socket *Socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sockets, socket.id)
}

// spawn runs f on a goroutine that Shutdown waits for. The caller is counted itself.
func (s *Server) spawn(f func()) {
	s.tracker.add()
	go func() {
		defer s.tracker.done()
		f()
	}()
}

// Shutdown refuses new sessions, closes all gracefully with ReasonServerShutdown, and waits
// until every goroutine and request of the server has ended. When ctx ends first it
// discards what is still queued and returns ctx's error once the connections are cut; Sessions
// that are blocked may then still be running.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	again := s.closing
	s.closing = true
	s.mu.Unlock()
	if again {
		return ErrServerClosed
	}
	for _, socket := range s.snapshot() {
		socket.closeGracefully(ReasonServerShutdown)
	}
	err := s.tracker.wait(ctx)
	if err != nil {
		for _, socket := range s.snapshot() {
			socket.discard(ReasonServerShutdown, err)
		}
	}
	close(s.stop)
	for _, f := range s.flushers {
		f.close()
	}
	s.helpers.Wait()
	return err
}
