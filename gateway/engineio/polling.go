package engineio

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// pollingState is what a session needs while its transport is polling. Its fields are guarded by
// Socket.mu unless they say otherwise.
type pollingState struct {
	v3     bool   // protocol of the transport; constant
	base64 bool   // the client can't take binary (protocol 3); constant
	jsonp  string // start of the script that answers, for JSONP; constant

	get     *pollRequest  // the GET that waits
	arrived chan struct{} // closed when a GET comes; nil: nobody wants to know
	abort   func()        // stops the POST that is being read; nil: there is none
	noop    bool          // answer the GET, so that an upgrade can go on
	probe   *probe        // an upgrade under way

	body sync.Mutex // held while a body is handled, for the order across an upgrade
}

// pollRequest is a GET that waits for something to send.
type pollRequest struct {
	ready    chan struct{} // of capacity 1
	late     bool          // it came when the client had been told to stop polling
	farewell *Message      // the answer, if the transport is over
	refused  *refusal      // the same
}

// wake makes the waiting GET look again.
func (p *pollingState) wake() {
	if p.get == nil {
		return
	}
	select {
	case p.get.ready <- struct{}{}:
	default:
	}
}

// end ends the transport: the waiting GET gets farewell, a POST is not read further, a candidate
// connection is cut.
func (p *pollingState) end(server *Server, farewell *Message) {
	if p.get != nil {
		p.get.farewell = farewell
		p.wake()
		p.get = nil
	}
	if p.abort != nil {
		p.abort()
		p.abort = nil
	}
	if p.probe != nil {
		p.probe.stop()
		server.endLater(p.probe.conn, p.probe.conn.close)
		p.probe = nil
	}
}

var (
	errPollOverlap = errors.New("engineio: overlap from client")
	errPostOverlap = errors.New("engineio: data request overlap from client")
	errPollGone    = errors.New("engineio: poll connection closed prematurely")
	errPostGone    = errors.New("engineio: data request connection closed prematurely")
	errContent     = errors.New("engineio: invalid content")
	errBodyTimeout = errors.New("engineio: body timeout")
)

// servePoll answers a GET as soon as there is something to send.
func (s *Socket) servePoll(w http.ResponseWriter, r *http.Request) {
	get := &pollRequest{ready: make(chan struct{}, 1)}
	polling, f := s.startPoll(get)
	if f != nil {
		s.server.refuse(w, r, f)
		return
	}
	for {
		msgs, size, f := s.takePoll(polling, get)
		if f != nil {
			s.server.refuse(w, r, f)
			return
		}
		if msgs != nil {
			s.answerPoll(w, r, polling, msgs)
			s.polled(size)
			return
		}
		select {
		case <-get.ready:
		case <-r.Context().Done():
			s.abandonPoll(polling, get)
			return
		}
	}
}

// startPoll registers a GET. A second one at a time breaks the protocol and closes the session.
func (s *Socket) startPoll(get *pollRequest) (*pollingState, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.expireLocked():
		return nil, refuseSID
	case s.polling == nil: // upgraded a moment ago
		return nil, refuseRequest
	case s.polling.get != nil:
		s.closeLocked(ReasonTransportError, errPollOverlap, endCut)
		return nil, refuseOverlap
	}
	get.late = s.polling.probe != nil && s.polling.probe.check != nil
	s.polling.get = get
	if s.polling.arrived != nil {
		close(s.polling.arrived)
		s.polling.arrived = nil
	}
	return s.polling, nil
}

// takePoll takes what is to be answered now, nil for nothing yet. Its size stays in the budget
// until polled.
func (s *Socket) takePoll(polling *pollingState, get *pollRequest) ([]*Message, int, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if get.refused != nil {
		return nil, 0, get.refused
	}
	if get.farewell != nil {
		return []*Message{get.farewell}, 0, nil
	}
	msgs, size := s.queue[s.head:], 0
	for _, m := range msgs {
		size += m.Size()
	}
	s.queue, s.head = nil, 0
	switch {
	case s.state == stateClosing && len(msgs) == 0:
		// not behind messages in one answer: clients handle the close first, and lose them
		msgs = append(msgs, closePacket)
		polling.get = nil
		s.closeLocked(s.reason, nil, endFlushed)
	case len(msgs) > 0:
	case polling.noop:
		msgs = []*Message{noopPacket}
	default:
		return nil, 0, nil
	}
	polling.get, polling.noop = nil, false
	return msgs, size, nil
}

func (s *Socket) polled(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != stateClosed {
		s.bytes -= size
	}
}

// abandonPoll ends a session whose client went away while it was polling.
func (s *Socket) abandonPoll(polling *pollingState, get *pollRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if polling.get == get {
		polling.get = nil
		s.closeLocked(ReasonTransportError, errPollGone, endCut)
	}
}

// answerPoll writes msgs as the answer to a GET.
func (s *Socket) answerPoll(w http.ResponseWriter, r *http.Request, p *pollingState, msgs []*Message) {
	var body []byte
	binary := false
	if p.v3 {
		body, binary = encodePayloadV3(nil, msgs, !p.base64)
	} else {
		body = encodePayload(nil, msgs)
	}
	contentType := "text/plain; charset=UTF-8"
	switch {
	case p.jsonp != "":
		body, contentType = wrapJSONP(p.jsonp, body), "text/javascript; charset=UTF-8"
	case binary:
		contentType = "application/octet-stream"
	}
	h := s.headers(w, r)
	h.Set("Content-Type", contentType)
	if s.server.compresses(r, body, msgs) {
		body = gzipped(body)
		h.Set("Content-Encoding", "gzip")
	}
	s.server.metrics.Sent(len(body))
	s.writeBody(w, http.StatusOK, body)
}

// headers adds what every answer of a session has.
func (s *Socket) headers(w http.ResponseWriter, r *http.Request) http.Header {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if f := s.server.opts.Headers; f != nil {
		f(h, r)
	}
	return h
}

// writeBody sends an answer to a client that may not read it: it waits for BodyTimeout at most. An
// error means that the client is gone, which the session learns from the heartbeat.
func (s *Socket) writeBody(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	rc := http.NewResponseController(w)
	deadline := rc.SetWriteDeadline(time.Now().Add(s.server.opts.BodyTimeout)) == nil
	w.WriteHeader(status)
	_, err := w.Write(body)
	if err == nil {
		err = rc.Flush()
	}
	if deadline && err == nil {
		_ = rc.SetWriteDeadline(time.Time{}) // it worked a moment ago; if not, the connection is gone
	}
}

// servePost takes the packets that a client sends.
func (s *Socket) servePost(w http.ResponseWriter, r *http.Request) {
	polling, f := s.startPost(w, r)
	if f != nil {
		s.server.refuse(w, r, f)
		return
	}
	body, err := s.readBody(w, r)
	defer body.free()
	s.endPost(polling)
	status := http.StatusOK
	if err != nil {
		status = s.bodyFailed(polling, err)
	} else if !s.handleBody(polling, r, body.bytes()) {
		status = http.StatusBadRequest
	}
	s.answerPost(w, r, status)
}

// bodyFailed returns the status for a body that could not be read. As in Node, the session survives
// only one that is too large.
func (s *Socket) bodyFailed(polling *pollingState, err error) (status int) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		s.server.metrics.Refused(CausePayloadTooLarge)
		return http.StatusRequestEntityTooLarge
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.polling == polling { // else the upgrade has cut it off
		s.closeLocked(ReasonTransportError, err, endCut)
	}
	if errors.Is(err, errBodyTimeout) {
		s.server.metrics.Refused(CauseBodyTimeout)
		return http.StatusRequestTimeout
	}
	return http.StatusBadRequest
}

func (s *Socket) answerPost(w http.ResponseWriter, r *http.Request, status int) {
	if status != http.StatusOK {
		w.Header().Set("Connection", "close")
		w.WriteHeader(status)
		return
	}
	// text/html and not text/plain, as in Node: some browsers offer to download the latter.
	s.headers(w, r).Set("Content-Type", "text/html")
	s.writeBody(w, status, []byte("ok"))
}

// startPost registers a POST. A second one at a time breaks the protocol and closes the session, as
// does a binary body in protocol 4.
func (s *Socket) startPost(w http.ResponseWriter, r *http.Request) (*pollingState, *refusal) {
	rc := http.NewResponseController(w)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.expireLocked():
		return nil, refuseSID
	case s.polling == nil: // upgraded a moment ago
		return nil, refuseRequest
	case s.polling.abort != nil:
		s.closeLocked(ReasonTransportError, errPostOverlap, endCut)
		return nil, refuseOverlap
	case !s.polling.v3 && isBinaryBody(r):
		s.closeLocked(ReasonTransportError, errContent, endCut)
		return nil, refuseContent
	}
	s.polling.abort = func() {
		// A deadline in the past ends the read. Where there are no deadlines the body's size and the
		// client end it.
		_ = rc.SetReadDeadline(time.Unix(1, 0))
	}
	return s.polling, nil
}

// endPost is called when the body was read.
func (s *Socket) endPost(polling *pollingState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	polling.abort = nil
}

func isBinaryBody(r *http.Request) bool {
	return r.Header.Get("Content-Type") == "application/octet-stream"
}

// readBody reads a body of at most MaxPayload bytes within BodyTimeout.
func (s *Socket) readBody(w http.ResponseWriter, r *http.Request) (*bodyBuffer, error) {
	rc := http.NewResponseController(w)
	body := newBodyBuffer()
	deadline := rc.SetReadDeadline(time.Now().Add(s.server.opts.BodyTimeout)) == nil
	if deadline && !s.isUsable() { // closed before the deadline was set, which undid its abort
		return body, errPostGone
	}
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, int64(s.server.opts.MaxPayload)))
	if err == nil && deadline {
		err = rc.SetReadDeadline(time.Time{})
	}
	var timeout interface{ Timeout() bool }
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil || errors.As(err, &tooLarge):
		return body, err
	case errors.As(err, &timeout) && timeout.Timeout():
		return body, errBodyTimeout
	default:
		return body, errors.Join(errPostGone, err)
	}
}

func (s *Socket) isUsable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state != stateClosed
}

// handleBody hands the packets of a body over. It reports whether the client is to be told that
// all is well, which it is after its own close packet too.
func (s *Socket) handleBody(polling *pollingState, r *http.Request, body []byte) bool {
	polling.body.Lock()
	defer polling.body.Unlock()
	if !s.isPolling(polling) {
		return false
	}
	closed := false
	each := func(p packet) error {
		if p.kind == packetClose {
			s.awaitPoll(polling)
			closed = true
		}
		s.onPacket(p, polling.v3)
		if closed {
			return errStop
		}
		if !s.isUsable() {
			return io.ErrClosedPipe
		}
		return nil
	}
	err := s.decodeBody(polling, r, body, each)
	tooMany := errors.Is(err, errTooManyPackets)
	if tooMany {
		s.server.metrics.Refused(CauseTooManyPackets)
	}
	if tooMany || errors.Is(err, errPayload) {
		s.close(ReasonParseError, err, endCut)
	}
	return err == nil || closed
}

// closeGrace is how long a client's close packet waits for its GET. A client sends both at
// once, on two connections, and the GET must find its session to get its answer.
const closeGrace = 50 * time.Millisecond

// awaitPoll waits for a GET, for closeGrace at most.
func (s *Socket) awaitPoll(polling *pollingState) {
	s.mu.Lock()
	if s.state != stateOpen || polling.get != nil {
		s.mu.Unlock()
		return
	}
	arrived := make(chan struct{})
	polling.arrived = arrived
	s.mu.Unlock()
	timeout := time.NewTimer(closeGrace)
	defer timeout.Stop()
	select {
	case <-arrived:
	case <-timeout.C:
	}
}

func (s *Socket) decodeBody(polling *pollingState, r *http.Request, body []byte, each func(packet) error) error {
	limit := s.server.opts.MaxPackets
	if polling.jsonp != "" {
		data, ok := unwrapJSONP(body)
		if !ok { // as in Node: ignored
			return nil
		}
		body = data
	} else if polling.v3 && isBinaryBody(r) {
		return decodePayloadBinaryV3(body, limit, each)
	}
	body = validText(body)
	if polling.v3 {
		return decodePayloadV3(body, limit, each)
	}
	return decodePayload(body, limit, each)
}

func (s *Socket) isPolling(polling *pollingState) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polling == polling && s.state != stateClosed
}
