//go:build linux

package main

import (
	"bytes"
	"net"
	"net/http"
	"sync"

	"github.com/gobwas/ws"
)

// bareHub is the floor: gobwas/ws, one goroutine per connection, frames made once and written
// directly. It says on the wire what a Socket.IO server would, so that all get the same load, but
// compares and cuts bytes instead of speaking the protocol: nothing is parsed, checked,
// queued, timed or bounded.
type bareHub struct {
	mu      sync.Mutex // guards members
	members []*bareConn
}

type bareConn struct {
	net.Conn
	place int // in members plus 1; 0: not a member; guarded by bareHub.mu
}

const bareRead = 4096

func (h *bareHub) serve(w http.ResponseWriter, r *http.Request) {
	conn, _, _, err := ws.UpgradeHTTP(r, w)
	if err != nil {
		return // it has answered
	}
	c := &bareConn{Conn: conn}
	c.send([]byte(`0{"sid":"aaaaaaaaaaaaaaaaaaaa","upgrades":[],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000000}`))
	go h.read(c)
}

func (h *bareHub) read(c *bareConn) {
	defer func() {
		h.leave(c)
		_ = c.Close()
	}()
	buf := make([]byte, bareRead)
	have := 0
	for have < len(buf) {
		n, err := c.Read(buf[have:])
		if err != nil {
			return
		}
		have += n
		used := h.frames(c, buf[:have])
		have = copy(buf, buf[used:have]) // a frame that is not complete
	}
}

// frames handles the complete frames in b and returns their size.
func (h *bareHub) frames(c *bareConn, b []byte) (used int) {
	var in bytes.Reader
	for {
		in.Reset(b[used:])
		head, err := ws.ReadHeader(&in)
		if err != nil || int64(in.Len()) < head.Length {
			return used
		}
		payload := make([]byte, head.Length)
		used = len(b) - in.Len() + copy(payload, b[len(b)-in.Len():])
		ws.Cipher(payload, head.Mask, 0)
		h.handle(c, payload)
	}
}

func (h *bareHub) handle(c *bareConn, p []byte) {
	if string(p) == "40" {
		c.send([]byte(`40{"sid":"aaaaaaaaaaaaaaaaaaaa"}`))
		return
	}
	head, args, ok := bytes.Cut(p, []byte(`["`))
	if !ok {
		return
	}
	event, args, _ := bytes.Cut(args, []byte(`"`))
	args = bytes.TrimPrefix(args, []byte(","))
	switch string(event) {
	case "publish":
		h.publish(ws.MustCompileFrame(ws.NewTextFrame(append([]byte(`42["m",`), args...))))
		return
	case "join":
		h.join(c)
	case "leave":
		h.leave(c)
	}
	head[1] = '3' // 42<id>["echo",X] is answered by 43<id>[X]
	c.send(append(append(append(make([]byte, 0, len(p)), head...), '['), args...))
}

// send writes a text frame. A connection that has gone ends its reader.
func (c *bareConn) send(p []byte) {
	_, _ = c.Write(ws.MustCompileFrame(ws.NewTextFrame(p)))
}

func (h *bareHub) publish(frame []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.members {
		_, _ = c.Write(frame)
	}
}

func (h *bareHub) join(c *bareConn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.place == 0 {
		h.members = append(h.members, c)
		c.place = len(h.members)
	}
}

func (h *bareHub) leave(c *bareConn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.place == 0 {
		return
	}
	last := h.members[len(h.members)-1]
	h.members[c.place-1] = last
	last.place = c.place
	h.members = h.members[:len(h.members)-1]
	c.place = 0
}
