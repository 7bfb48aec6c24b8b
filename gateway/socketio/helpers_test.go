package socketio_test

import (
	"log/slog"
	"testing"
	"time"

	"xabar/gateway/socketio"
	"xabar/gateway/socketio/socketiotest"
)

type (
	client = socketiotest.Client
	dialer = socketiotest.Options
)

var quiet = slog.New(slog.DiscardHandler)

// start serves a new server whose namespace "/" answers "sync".
func start(t testing.TB, opts socketio.Options) (*socketio.Server, string) {
	t.Helper()
	if opts.Logger == nil {
		opts.Logger = quiet
	}
	io := socketio.NewServer(opts)
	socketiotest.Answer(io.Namespace)
	return io, socketiotest.Start(t, io)
}

func dial(t testing.TB, url string) *client {
	t.Helper()
	return socketiotest.Dial(t, url, dialer{})
}

// join dials and joins a namespace.
func join(t testing.TB, url, namespace string) (*client, string) {
	t.Helper()
	c := dial(t, url)
	return c, c.Connect(namespace, "")
}

// joinSocket is join that also returns the server's side.
func joinSocket(t testing.TB, ns *socketio.Namespace, url string) (*client, *socketio.Socket) {
	t.Helper()
	c, id := join(t, url, ns.Name())
	s := ns.Socket(id)
	if s == nil {
		t.Fatalf("the server has no socket %q", id)
	}
	return c, s
}

// recv returns what comes from ch.
func recv[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	timer := time.NewTimer(socketiotest.Wait)
	defer timer.Stop()
	select {
	case v := <-ch:
		return v
	case <-timer.C:
		t.Fatal("nothing came")
	}
	panic("unreachable")
}

// eventually waits until f is true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(socketiotest.Wait)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in time", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
