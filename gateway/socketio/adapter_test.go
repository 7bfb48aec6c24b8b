package socketio_test

import (
	"testing"

	"xabar/gateway/socketio"
	"xabar/rooms/roomstest"
)

func TestMemoryAdapter(t *testing.T) {
	t.Parallel()
	roomstest.Exercise(t, false, func(*testing.T, int) []socketio.AdapterFactory {
		return []socketio.AdapterFactory{socketio.NewMemoryAdapter}
	})
}
