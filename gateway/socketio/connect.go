package socketio

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

var (
	errInvalidNamespace  = &ConnectError{Message: "Invalid namespace"}
	errTooManyNamespaces = &ConnectError{Message: "too many namespaces"}
)

// connect joins a namespace: on the reader, so that later packets of the connection wait.
func (c *client) connect(name string, auth json.RawMessage) {
	if c.joined() >= c.server.opts.MaxNamespaces {
		c.server.hookBound("MaxNamespaces", c.conn.ID())
		c.refuse(name, errTooManyNamespaces)
		return
	}
	ns, err := c.lookup(name, auth)
	if err != nil {
		c.refuse(name, err)
		return
	}
	s := c.newSocket(ns, auth)
	if !c.add(s) {
		s.discard()
		return
	}
	if err := c.admit(s); err != nil {
		c.remove(s)
		s.discard()
		c.refuse(name, err)
		if errors.As(err, new(*PanicError)) {
			c.close(ReasonForcedClose)
		}
		return
	}
	if !c.open(s) {
		c.remove(s)
		s.discard()
		return
	}
	c.server.timers.stop(&c.deadline)
	c.server.hookConnect(ns.name)
	s.greet()
}

// newSocket makes a socket, with a new identity or that of a session which it recovers.
func (c *client) newSocket(ns *Namespace, auth json.RawMessage) *Socket {
	s := &Socket{ns: ns, client: c, conn: c.conn, auth: auth}
	if ns.recovery != nil && c.conn.Protocol() != 3 {
		if se, missed := ns.recovery.take(auth); se != nil {
			s.id, s.pid, s.data, s.recovered = se.sid, se.pid, se.data, &recovered{se, missed}
			return s
		}
		s.pid = randomID()
	}
	s.id = c.newID(ns)
	return s
}

// admit runs the middlewares, which a recovered session has passed already.
func (c *client) admit(s *Socket) error {
	if s.recovered != nil && !s.ns.recovery.opts.RunMiddlewares {
		return nil
	}
	return c.runMiddleware(s)
}

func (c *client) open(s *Socket) bool {
	if s.ns.recovery != nil {
		return s.ns.recovery.openRecovered(s)
	}
	return s.open()
}

// lookup finds the namespace; a panic in a ParentNamespace's function is an error.
func (c *client) lookup(name string, auth json.RawMessage) (ns *Namespace, err error) {
	defer func() {
		if v := recover(); v != nil {
			ns, err = nil, c.server.opts.PanicConnectError
			c.panicked("middleware", v, func() { c.refuse(name, err) })
		}
	}()
	return c.server.acquire(name, auth)
}

func (c *client) runMiddleware(s *Socket) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = c.server.newPanicError("middleware", v, c.conn.ID())
		}
	}()
	for _, f := range s.ns.handlers.load().middleware {
		if err := f(s); err != nil {
			return err
		}
	}
	return nil
}

// open registers the socket and queues CONNECT, both before anybody can see it connected. It
// fails when the connection was closed meanwhile.
func (s *Socket) open() bool {
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.state.Load() != stateConnecting {
		return false
	}
	p := Packet{Type: PacketConnect, Namespace: s.ns.name}
	switch {
	case s.conn.Protocol() == 3:
	case s.pid != "":
		p.Data = fmt.Appendf(nil, `{"sid":%q,"pid":%q}`, s.id, s.pid)
	default:
		p.Data = fmt.Appendf(nil, `{"sid":%q}`, s.id)
	}
	s.ns.add(s)
	s.rooms += s.ns.adapter.AddAll(s, []string{s.id})
	if s.recovered != nil {
		s.rooms += s.ns.adapter.AddAll(s, s.recovered.session.rooms)
	}
	if s.send(&p) != nil {
		s.ns.remove(s)
		return false
	}
	s.state.Store(stateConnected)
	return true
}

// refuse sends CONNECT_ERROR. Protocol 3 has room for one value only: the data, or the message.
func (c *client) refuse(name string, err error) {
	c.server.hookRefused(name, err)
	ce := &ConnectError{Message: err.Error()}
	var pe *PanicError
	if errors.As(err, &pe) {
		ce = c.server.opts.PanicConnectError
	} else {
		errors.As(err, &ce)
	}
	var payload any
	switch {
	case c.conn.Protocol() != 3:
		payload = connectErrorPayload{ce.Message, ce.Data}
	case ce.Data != nil:
		payload = ce.Data
	default:
		payload = ce.Message
	}
	data, err := marshalNoEscape(payload)
	if err != nil {
		c.server.opts.Logger.Error("connect error cannot be encoded", "namespace", name, "sid", c.conn.ID(), "err", err)
		data = []byte(`{"message":"internal error"}`)
	}
	msgs, err := c.server.encode(nil, &Packet{Type: PacketConnectError, Namespace: name, Data: data}, nil)
	if err != nil {
		c.server.opts.Logger.Error("connect error cannot be encoded", "namespace", name, "sid", c.conn.ID(), "err", err)
		return
	}
	_, _ = c.conn.Send(false, msgs...) // fails only if the connection is gone
}

type connectErrorPayload struct {
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// newID makes a socket id: not the Engine.IO id, whoever knows which can act as the client.
func (c *client) newID(ns *Namespace) string {
	if c.conn.Protocol() == 3 { // whose clients compute it
		if ns.name == "/" {
			return c.conn.ID()
		}
		return ns.name + "#" + c.conn.ID()
	}
	return randomID()
}

// randomID has 20 characters that nobody can guess.
func randomID() string {
	var b [15]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return base64.URLEncoding.EncodeToString(b[:])
}
