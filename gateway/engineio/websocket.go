package engineio

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gobwas/ws"
)

// upgradeWriteTimeout bounds the write of the answer to an upgrade.
const upgradeWriteTimeout = 10 * time.Second

// isUpgrade reports whether r asks for a WebSocket.
func isUpgrade(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") && headerHas(r.Header["Connection"], "upgrade")
}

func headerHas(lines []string, token string) bool {
	for _, line := range lines {
		for _, part := range strings.Split(line, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
	}
	return false
}

// validUpgrade applies the rules of RFC 6455 section 4.2.1 that are not checked elsewhere.
func validUpgrade(r *http.Request) bool {
	key, err := base64.StdEncoding.DecodeString(r.Header.Get("Sec-Websocket-Key"))
	version := r.Header.Get("Sec-Websocket-Version")
	return r.Method == http.MethodGet && r.ProtoMajor == 1 && r.ProtoMinor >= 1 &&
		err == nil && len(key) == 16 && (version == "13" || version == "8")
}

// hijack answers the upgrade, with first behind the answer in the same write, and takes the
// connection over. Nothing of r or of net/http's buffers is kept.
func (s *Server) hijack(w http.ResponseWriter, r *http.Request, form wireForm, extra http.Header, first []byte) (*conn, error) {
	deflate := s.opts.Compression && offersDeflate(r.Header)
	if deflate {
		form |= formDeflate
	}
	nc, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, errors.Join(errNoHijack, err)
	}
	c := newConn(nc, form, &s.opts)
	if n := rw.Reader.Buffered(); n > 0 { // frames that came with the request
		early, err := rw.Reader.Peek(n)
		if err != nil {
			c.close()
			return nil, fmt.Errorf("engineio: hijack: %w", err)
		}
		for len(early) > 0 {
			k := copy(c.space(), early)
			c.frames.w += k
			early = early[k:]
		}
	}
	err = nc.SetDeadline(time.Now().Add(upgradeWriteTimeout))
	if err == nil {
		_, err = nc.Write(append(upgradeAnswer(r, deflate, extra), first...))
	}
	if err == nil {
		err = nc.SetDeadline(time.Time{})
	}
	if err != nil {
		c.close()
		return nil, fmt.Errorf("engineio: upgrade: %w", err)
	}
	return c, nil
}

// errNoHijack: the connection could not be taken over.
var errNoHijack = errors.New("engineio: hijack")

const acceptGUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" // RFC 6455 section 1.3

func upgradeAnswer(r *http.Request, deflate bool, extra http.Header) []byte {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + acceptGUID))
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ")
	b.WriteString(base64.StdEncoding.EncodeToString(sum[:]))
	b.WriteString("\r\n")
	// As the ws package does: the first subprotocol that the client names.
	if lines := r.Header["Sec-Websocket-Protocol"]; len(lines) > 0 {
		first, _, _ := strings.Cut(lines[0], ",")
		extra.Set("Sec-WebSocket-Protocol", strings.TrimSpace(first))
	}
	if deflate {
		extra.Set("Sec-WebSocket-Extensions", deflateAnswer)
	}
	if err := extra.Write(&b); err != nil { // a bytes.Buffer does not fail
		panic(err)
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// read handles what a WebSocket client sends until the connection ends. It owns the connection.
func (s *Socket) read(c *conn) { s.readFrom(c, false) }

func (s *Socket) readFrom(c *conn, small bool) {
	if s.readOn(c, small) {
		// What a session does with a message makes a stack grow that then never gets as small again
		// as that of a goroutine which only waits; and most connections only wait.
		s.server.spawn(func() { s.readFrom(c, true) })
		return
	}
	c.close()
	c.release()
}

// readOn reads until the connection ends, or, for true, until it seems to rest: the client sent
// nothing but a heartbeat, and the stack is not small.
func (s *Socket) readOn(c *conn, small bool) bool {
	defer s.recoverSession() // the session's own panics are caught closer; this is for ours
	for s.handleFrames(c) {
		s.flushRead()
		small = small && !c.spoke
		if c.beat && !c.spoke && !small {
			c.beat = false
			return true
		}
		c.beat, c.spoke = false, false
		if err := c.fill(); err != nil {
			c.close() // nobody is there for a close frame
			s.close(ReasonTransportClose, err, endCut)
			return false
		}
	}
	c.drainInput()
	return false
}

// drainInput discards what comes until the peer closes or the time to linger is over.
func (c *conn) drainInput() {
	for c.fill() == nil {
		c.frames.r = c.frames.w
	}
}

// handleFrames handles the complete frames that were read. It returns false when the session is
// over or the client closes.
func (s *Socket) handleFrames(c *conn) bool {
	for {
		op, payload, ok, err := c.frames.next()
		if err != nil {
			s.close(ReasonTransportError, err, endLinger)
			return false
		}
		if !ok {
			s.more.Store(false)
			return s.isUsable()
		}
		if more := !c.frames.idle(); more != s.more.Load() {
			s.more.Store(more)
		}
		if !s.handleFrame(c, op, payload) {
			return false
		}
	}
}

func (s *Socket) handleFrame(c *conn, op ws.OpCode, payload []byte) bool {
	v3 := c.form&formV3 != 0
	switch op {
	case ws.OpText:
		p, ok := decodeText(payload, v3)
		if !ok {
			s.close(ReasonParseError, errPayload, endLinger)
			return false
		}
		beat := p.kind == packetPing || p.kind == packetPong
		c.beat, c.spoke = c.beat || beat, c.spoke || !beat
		s.onPacket(p, v3)
	case ws.OpBinary:
		c.spoke = true
		s.onPacket(decodeBinary(payload, v3), v3)
	case ws.OpPing:
		s.sendControl(controlOf(ws.OpPong, payload))
	case ws.OpClose:
		s.onCloseFrame(payload)
		return false
	}
	return s.isUsable()
}

// onCloseFrame ends the session at the client's wish. The answer carries the client's code.
func (s *Socket) onCloseFrame(payload []byte) {
	code, err := closeCode(payload)
	if err != nil {
		s.close(ReasonTransportError, err, endLinger)
		return
	}
	s.close(ReasonTransportClose, &peerClose{code}, endLinger)
}

// peerClose is the error of a session that the client closed with a close frame.
type peerClose struct{ code ws.StatusCode }

func (e *peerClose) Error() string { return fmt.Sprintf("websocket: closed by the peer (%d)", e.code) }
