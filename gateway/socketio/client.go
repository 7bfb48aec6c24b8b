package socketio

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"runtime/debug"
	"slices"
	"sync"

	"xabar/gateway/engineio"
)

// client is one connection: the Engine.IO session and the sockets on it. It is the
// engineio.Session, whose calls come on the connection's reader and never overlap.
type client struct {
	deadline // to join a namespace
	server   *Server
	conn     *engineio.Socket
	decoder  Decoder       // the reader's
	packet   Packet        // the reader's
	ready    chan struct{} // protocol 3: closed when the automatic connect to "/" is through

	mu      sync.Mutex // guards the rest
	sockets []*Socket  // connected and being connected; few, so searched one by one
	closed  bool
}

// keptItems is up to how many items an idle connection keeps room for.
const keptItems = 8

func (s *Server) accept(conn *engineio.Socket) engineio.Session {
	c := &client{server: s, conn: conn, decoder: s.opts.Parser.NewDecoder(s.limits)}
	s.timers.start(&c.deadline, s.opts.ConnectTimeout, c)
	if conn.Protocol() == 3 {
		// protocol 3 joins "/" without a packet; a middleware may block, and the answer to
		// the handshake must not wait for it
		c.ready = make(chan struct{})
		s.wg.Go(func() {
			defer close(c.ready)
			c.connect("/", nil)
		})
	}
	return c
}

// expire implements expirer: no namespace was joined in time.
func (c *client) expire() {
	if c.joined() == 0 {
		c.server.hookBound("ConnectTimeout", c.conn.ID())
		c.close(ReasonForcedClose)
	}
}

func (c *client) joined() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sockets)
}

// OnMessage implements engineio.Session.
func (c *client) OnMessage(data []byte, binary bool) {
	if c.ready != nil {
		<-c.ready
	}
	if c.isClosed() {
		return
	}
	complete, err := c.decoder.Decode(data, binary, &c.packet)
	if err != nil {
		c.malformed(err)
		return
	}
	if complete {
		c.onPacket(&c.packet)
		c.packet = Packet{Items: c.packet.Items[:0]}
		if cap(c.packet.Items) > keptItems {
			c.packet.Items = nil
		}
	}
}

// OnClose implements engineio.Session.
func (c *client) OnClose(reason engineio.Reason, _ error) {
	if c.ready != nil {
		<-c.ready
	}
	c.server.timers.stop(&c.deadline)
	c.closeSockets(string(reason), false)
}

func (c *client) onPacket(p *Packet) {
	name, auth := p.Namespace, p.Data
	if c.conn.Protocol() == 3 {
		name, auth = splitQuery(name)
	}
	s := c.socket(name)
	switch {
	case s == nil && p.Type == PacketConnect:
		c.connect(name, slices.Clone(auth))
	case s == nil, p.Type == PacketConnect, p.Type == PacketConnectError:
		// as in Node: an event before CONNECT, a second CONNECT
		c.malformed(fmt.Errorf("%w: packet type %d is not allowed in this state", ErrMalformed, p.Type))
	case p.Type == PacketEvent:
		s.onEvent(p)
	case p.Type == PacketAck:
		s.onAck(p)
	case p.Type == PacketDisconnect:
		s.close(ReasonClientDisconnect, false)
	}
}

// splitQuery takes the query off a namespace's name: protocol 3 has its auth payload there.
func splitQuery(name string) (string, json.RawMessage) {
	u, err := url.Parse(name)
	if err != nil || u.RawQuery == "" {
		return name, nil
	}
	query := make(map[string]string)
	for k, v := range u.Query() {
		query[k] = v[len(v)-1]
	}
	auth, err := json.Marshal(query)
	if err != nil {
		return name, nil // never: a map of strings
	}
	return u.Path, auth
}

func (c *client) malformed(err error) {
	c.server.hookMalformed(err)
	c.server.opts.Logger.Debug("malformed packet", "sid", c.conn.ID(), "err", err)
	switch {
	case errors.Is(err, ErrTooManyAttachments):
		c.server.hookBound("MaxAttachments", c.conn.ID())
	case errors.Is(err, ErrAttachmentsTooLarge):
		c.server.hookBound("MaxAttachmentBytes", c.conn.ID())
	}
	for _, s := range c.list() {
		s.onError(err)
	}
	c.close(string(engineio.ReasonForcedClose)) // not "parse error": that is the transport's
}

func (c *client) socket(namespace string) *Socket {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sockets {
		if s.ns.name == namespace {
			return s
		}
	}
	return nil
}

func (c *client) list() []*Socket {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sockets)
}

func (c *client) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// add lists a socket unless the connection is closed already.
func (c *client) add(s *Socket) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.sockets = append(c.sockets, s)
	return true
}

func (c *client) remove(s *Socket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.sockets, s); i >= 0 {
		c.sockets = slices.Delete(c.sockets, i, i+1)
	}
}

// closeSockets ends all memberships and lets none begin.
func (c *client) closeSockets(reason string, notify bool) {
	c.mu.Lock()
	c.closed = true
	list := slices.Clone(c.sockets)
	c.mu.Unlock()
	for _, s := range list {
		s.close(reason, notify)
	}
}

// disconnect tells the client to stay away and closes the connection.
func (c *client) disconnect() {
	c.closeSockets(ReasonServerDisconnect, true)
	c.conn.Close()
}

func (c *client) close(reason string) {
	c.closeSockets(reason, false)
	c.conn.Close()
}

// guard runs what the application gave us; a panic ends this connection only.
func (c *client) guard(where string, f func()) {
	defer c.recover(where)
	f()
}

// recover is deferred.
func (c *client) recover(where string) {
	if v := recover(); v != nil {
		c.panicked(where, v, nil)
	}
}

// panicked logs a recovered panic and ends the connection; last sends what the client should
// know before.
func (c *client) panicked(where string, v any, last func()) {
	c.server.reportPanic(where, &PanicError{Value: v, Stack: debug.Stack()}, slog.String("sid", c.conn.ID()))
	if last != nil {
		last()
	}
	c.close(ReasonForcedClose)
}
