package events

import (
	"context"
	"encoding/json"
	"fmt"

	"xabar/chat"
	"xabar/gateway/socketio"
)

// Sessions implements chat.Sessions: it asks every node for the sockets in the
// user's room.
func (h *Hub) Sessions(ctx context.Context, user chat.ID) ([]chat.SocketSession, error) {
	var sockets []*socketio.RemoteSocket
	for _, space := range h.spaces {
		some, err := space.In(userRoom(user)).FetchSockets(ctx)
		if err != nil {
			return nil, chat.Wrap(chat.CodeUnavailable, err)
		}
		sockets = append(sockets, some...)
	}
	sessions := make([]chat.SocketSession, len(sockets))
	for i, socket := range sockets {
		if err := json.Unmarshal(socket.Data, &sessions[i]); err != nil {
			return nil, fmt.Errorf("the data of socket %s: %w", socket.ID, err)
		}
		sessions[i].SocketID = socket.ID
	}
	return sessions, nil
}
