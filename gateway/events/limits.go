package events

import (
	"encoding/json"
	"time"

	"xabar/chat"
	"xabar/gateway/socketio"
	"xabar/internal/ratelimit"
)

// Limits of what one client may do on this node. The zero value has none.
type Limits struct {
	Events      ratelimit.Rate // events of a socket
	Connections int            // sockets of a user; 0: no limit
}

// expiryNotice is how long before a token ends its socket is told, so that the
// client can refresh it; half of what is left for a token that is nearly over.
const expiryNotice = 10 * time.Second

// connectionPause is what a client with too many sockets is told to wait.
const connectionPause = 5 * time.Second

// limited answers an event that comes too soon after others. It runs on the
// socket's reader, which owns the bucket.
func (h *Hub) limited(c *client, counts EventMetrics, e *socketio.Event) bool {
	wait, ok := c.events.Take(h.cfg.Limits.Events)
	if ok {
		return false
	}
	h.cfg.Metrics.RateLimited(LimitEvents)
	counts.Answered(chat.CodeRateLimited, 0)
	h.answer(nil, e, nil, chat.RateLimited(wait))
	return true
}

// tooMany says whether the user has as many sockets here as it may.
func (h *Hub) tooMany(user chat.ID) bool {
	limit := h.cfg.Limits.Connections
	if limit <= 0 || len(h.users.get(user)) < limit {
		return false
	}
	h.cfg.Metrics.RateLimited(LimitConnections)
	return true
}

// mayStay looks again at what authenticate has looked at, now that the client is in
// the table: another handshake, or a revocation, may have come between.
func (h *Hub) mayStay(c *client) bool {
	limit := h.cfg.Limits.Connections
	if limit > 0 && len(h.users.get(c.user.ID)) > limit {
		h.cfg.Metrics.RateLimited(LimitConnections)
		c.socket.Conn().Close() // the official client tries again
		return false
	}
	if h.cfg.CheckRevoked != nil && h.cfg.CheckRevoked(c.caller()) != nil {
		c.closing(ClosingRevoked, false, 0)
		return false
	}
	return true
}

// revokedBefore says whether this very revocation has been acted on: other nodes'
// reach this one through Redis and through the database.
func (h *Hub) revokedBefore(e chat.AccessRevoked) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	last, ok := h.revoked.Get(e.UserID)
	h.revoked.Add(e.UserID, e.Before)
	return ok && !e.Before.After(last)
}

// maxRevoked bounds how many users' last revocation is remembered; a forgotten one
// that comes again closes sockets that may have come back meanwhile.
const maxRevoked = 4096

// blockChanged ends what the two hear of each other's presence. A refused caller is
// told no more than that the other is offline.
func (h *Hub) blockChanged(e chat.BlockChanged) {
	h.service.ForgetBlock(e)
	for _, pair := range [][2]chat.ID{{e.A, e.B}, {e.B, e.A}} {
		room := presenceRoom(pair[1])
		for _, c := range h.users.get(pair[0]) {
			if c.socket.Leave(room); c.unwatch(room) {
				c.emit("presence", chat.PresenceState{UserID: pair[1]})
			}
		}
	}
}

// unwatch says whether the socket heard that user's presence.
func (c *client) unwatch(room string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, watched := range c.watch {
		if watched == room {
			// The slice may be in use by watchPresence: a new one.
			c.watch = append(append(make([]string, 0, len(c.watch)-1), c.watch[:i]...), c.watch[i+1:]...)
			return true
		}
	}
	return false
}

// MarshalJSON is what other nodes see of the socket: a chat.SocketSession.
func (c *client) MarshalJSON() ([]byte, error) {
	conn := c.socket.Conn()
	handshake := conn.Handshake()
	session := chat.SocketSession{
		SocketID: c.socket.ID(), Transport: conn.Transport(), Address: handshake.Address,
		UserAgent: handshake.Headers.Get("User-Agent"), ConnectedAt: chat.At(handshake.Time),
	}
	if expires := c.caller().ExpiresAt; !expires.IsZero() {
		at := chat.At(expires)
		session.ExpiresAt = &at
	}
	return json.Marshal(session)
}
