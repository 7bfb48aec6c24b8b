package socketiotest

import (
	"context"
	"net/http/httptest"
	"testing"

	"xabar/gateway/socketio"
)

// Start serves io on 127.0.0.1, shuts it down when the test ends, and returns its URL.
func Start(t testing.TB, io *socketio.Server) string {
	t.Helper()
	hs := httptest.NewServer(io)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Wait)
		defer cancel()
		if err := io.Shutdown(ctx); err != nil && err != socketio.ErrServerClosed {
			t.Errorf("shutdown: %v", err)
		}
		hs.Close()
	})
	return hs.URL
}

// Answer makes a namespace answer the event "sync", for Client.Sync.
func Answer(ns *socketio.Namespace) {
	ns.Handle("sync", func(ev *socketio.Event) { _ = ev.Ack() })
}
