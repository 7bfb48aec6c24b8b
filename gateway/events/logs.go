package events

import (
	"log/slog"

	"xabar/gateway/socketio"
)

// who is whom a line of the log is about: the connection, the socket on it, and its
// user.
func (c *client) who() slog.Attr { return slog.Any("", loggedClient{c}) }

// loggedClient costs nothing where the line is not written.
type loggedClient struct{ c *client }

// LogValue implements slog.LogValuer.
func (l loggedClient) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("sid", l.c.socket.Conn().ID()), slog.String("socket", l.c.socket.ID()), slog.String("user", l.c.user.ID.String()))
}

// whose is who for a socket that may have no client yet.
func whose(s *socketio.Socket) slog.Attr {
	if c := clientOf(s); c != nil {
		return c.who()
	}
	return slog.Group("", slog.String("sid", s.Conn().ID()), slog.String("socket", s.ID()))
}

// logged is an event's name as the log may have it: others are what a client wrote.
func (h *Hub) logged(e *socketio.Event) string {
	name := e.Name()
	if _, ok := h.actions[name]; ok {
		return name
	}
	if c := clientOf(e.Socket()); c != nil && c.view != nil && c.view.d.Client[name] != nil {
		return name
	}
	return OtherEvents
}
