package engineio

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// query is a parsed query string. As in Node, the last of several values counts.
type query url.Values

func parseQuery(raw string) query {
	values, err := url.ParseQuery(raw)
	if err != nil { // what could be parsed is there; the checks that follow decide
		return query(values)
	}
	return query(values)
}

func (q query) get(name string) string {
	if v := q[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// protocol is 4 if the client says so and 3 if it says anything else, as in Node.
func (q query) protocol() uint8 {
	if q.get("EIO") == "4" {
		return 4
	}
	return 3
}

func (q query) form() (f wireForm) {
	if q.protocol() == 3 {
		f |= formV3
	}
	if q.get("b64") != "" {
		f |= formBase64
	}
	return f
}

// handshake opens a session.
func (s *Server) handshake(w http.ResponseWriter, r *http.Request, q query, c client) {
	if f := s.checkHandshake(r, q, c); f != nil {
		s.refuse(w, r, f)
		return
	}
	if f := s.reserve(); f != nil {
		s.refuse(w, r, f)
		return
	}
	socket := s.newSocket(r, q, c)
	if q.get("transport") == WebSocket {
		s.openWebSocket(w, r, q, socket)
	} else {
		s.openPolling(w, r, q, socket)
	}
}

func (s *Server) checkHandshake(r *http.Request, q query, c client) *refusal {
	if s.limit != nil && !s.limit.allow(c.address) {
		return refuseRate
	}
	if s.opts.AllowRequest != nil {
		if err := s.opts.AllowRequest(r); err != nil {
			return refusalOf(err)
		}
	}
	if q.protocol() == 3 && !s.opts.AllowEIO3 {
		return refuseProtocol
	}
	if isUpgrade(r) && !validUpgrade(r) {
		return refuseRequest
	}
	return nil
}

func (s *Server) newSocket(r *http.Request, q query, c client) *Socket {
	n := s.next.Add(1)
	return &Socket{
		server:   s,
		id:       s.newID(),
		protocol: q.protocol(),
		info:     newInfo(r, c),
		flusher:  s.flushers[int(n)%len(s.flushers)],
	}
}

// newID makes a session id: 120 random bits, which nobody can guess, behind the prefix if there is one.
func (s *Server) newID() string {
	var b [15]byte
	rand.Read(b[:]) // never fails
	id := base64.RawURLEncoding.EncodeToString(b[:])
	if s.opts.SessionPrefix != "" {
		id = s.opts.SessionPrefix + "." + id
	}
	return id
}

// openPacket is the packet that tells the client about its session.
func (s *Server) openPacket(id string, upgrades []string) *Message {
	body, err := json.Marshal(struct {
		SID          string   `json:"sid"`
		Upgrades     []string `json:"upgrades"`
		PingInterval int64    `json:"pingInterval"`
		PingTimeout  int64    `json:"pingTimeout"`
		MaxPayload   int      `json:"maxPayload"`
	}{id, upgrades, s.opts.PingInterval.Milliseconds(), s.opts.PingTimeout.Milliseconds(), s.opts.MaxPayload})
	if err != nil { // cannot be: strings and numbers
		panic(err)
	}
	return packetOf(packetOpen, string(body))
}

// begin puts a session whose transport is there to work.
func (s *Socket) begin() {
	s.server.tracker.add() // until finish
	closing := s.server.register(s)
	s.server.metrics.SessionOpened(s.Transport(), int(s.protocol))
	s.startHeartbeat()
	s.accept()
	if closing {
		s.closeGracefully(ReasonServerShutdown)
	}
}

func (s *Server) openPolling(w http.ResponseWriter, r *http.Request, q query, socket *Socket) {
	socket.polling = &pollingState{v3: socket.protocol == 3, base64: q.get("b64") != ""}
	if socket.protocol == 3 && q.get("j") != "" {
		socket.polling.jsonp = jsonpHead(q.get("j"))
		socket.polling.base64 = true
	}
	upgrades := []string{}
	if !s.opts.NoUpgrades && slices.Contains(s.opts.Transports, WebSocket) {
		upgrades = append(upgrades, WebSocket)
	}
	open := s.openPacket(socket.id, upgrades)
	socket.push(open.Size(), open)
	s.initialHeaders(w.Header(), r, socket.id)
	socket.begin()
	if !socket.isUsable() {
		s.refuse(w, r, refuseForbidden)
		return
	}
	socket.servePoll(w, r)
}

func (s *Server) initialHeaders(h http.Header, r *http.Request, id string) {
	if s.opts.Cookie != nil {
		cookie := *s.opts.Cookie
		cookie.Value = id
		h.Add("Set-Cookie", cookie.String())
	}
	if s.opts.InitialHeaders != nil {
		s.opts.InitialHeaders(h, r)
	}
}

func (s *Server) openWebSocket(w http.ResponseWriter, r *http.Request, q query, socket *Socket) {
	extra := http.Header{}
	s.initialHeaders(extra, r, socket.id)
	if s.opts.Headers != nil {
		s.opts.Headers(extra, r)
	}
	open := s.openPacket(socket.id, []string{})
	first := open.frame
	if socket.protocol == 3 {
		first = nil
	}
	c, err := s.hijack(w, r, q.form(), extra, first)
	if err != nil {
		s.unreserve()
		s.failUpgrade(w, r, err)
		return
	}
	socket.ws = c
	// On a goroutine of its own, so that net/http's can end and its buffers go.
	s.spawn(func() {
		if socket.protocol == 3 {
			socket.openV3(open)
		}
		socket.begin()
		socket.read(c)
	})
}

// openDelayV3 stands between the answer to the upgrade and the open packet in protocol 3, whose
// clients may listen for messages only once the connection is open, and miss one that arrives with
// the answer. Node's server is slow enough for them by itself.
const openDelayV3 = 5 * time.Millisecond

func (s *Socket) openV3(open *Message) {
	time.Sleep(openDelayV3)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.push(open.Size(), open)
	s.startDrain(drainOnce)
}

// failUpgrade is for a connection that could not be taken over (HTTP/2, a wrapping that does not
// allow it) or was lost meanwhile; the latter gets no answer.
func (s *Server) failUpgrade(w http.ResponseWriter, r *http.Request, err error) {
	s.log.Debug("engineio: upgrade failed", "err", err)
	if errors.Is(err, errNoHijack) {
		s.refuse(w, r, refuseRequest)
	}
}

// serveProbe takes a WebSocket connection that wants to take over a polling session. As in Node,
// one too many is accepted and closed at once.
func (s *Server) serveProbe(w http.ResponseWriter, r *http.Request, q query, socket *Socket) {
	if q.get("transport") != WebSocket || !validUpgrade(r) {
		s.refuse(w, r, refuseRequest)
		return
	}
	extra := http.Header{}
	if s.opts.Headers != nil {
		s.opts.Headers(extra, r)
	}
	c, err := s.hijack(w, r, q.form(), extra, nil)
	if err != nil {
		s.failUpgrade(w, r, err)
		return
	}
	if !s.opts.NoUpgrades && socket.startProbe(c) {
		s.spawn(func() { socket.runProbe(c) })
		return
	}
	s.spawn(func() {
		c.goodbye(0, endLinger, c.raw == nil)
		c.drainInput()
		c.release()
		c.close()
	})
}
