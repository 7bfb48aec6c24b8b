package lightclient_test

import (
	"errors"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"xabar/gateway/engineio"
	"xabar/gateway/socketio"
	"xabar/internal/testkit"
	"xabar/internal/testkit/lightclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) (*socketio.Server, string) {
	t.Helper()
	io := socketio.NewServer(socketio.Options{Options: engineio.Options{
		Logger: slog.New(slog.DiscardHandler), PingInterval: 50 * time.Millisecond,
	}})
	server := httptest.NewServer(io)
	t.Cleanup(func() {
		if err := io.Shutdown(testkit.CleanupContext(t)); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	return io, server.URL
}

func TestEventsAndAcknowledgementsBothWays(t *testing.T) {
	io, url := start(t)
	acknowledged := make(chan error, 1)
	io.Handle("hello", func(ev *socketio.Event) {
		if err := ev.Ack(ev.Arg(0)); err != nil {
			t.Error(err)
		}
		err := ev.Socket().Timeout(testkit.Patience).EmitAck("hello", func(_ socketio.Args, err error) {
			acknowledged <- err
		}, ev.Arg(0))
		if err != nil {
			t.Error(err)
		}
	})
	heard := make(chan string, 1)
	c, err := lightclient.Dial(testkit.Context(t), lightclient.Options{URL: url, Event: func(name string, args []byte, acknowledge func()) {
		acknowledge()
		heard <- name + string(args)
	}})
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ A int }
	if err := c.Ask(testkit.Context(t), "hello", map[string]int{"a": 7}, &answer); err != nil || answer.A != 7 {
		t.Errorf("%+v, %v", answer, err)
	}
	if got := <-heard; got != `hello{"a":7}` {
		t.Errorf("heard %s", got)
	}
	if err := <-acknowledged; err != nil {
		t.Error(err)
	}
	c.Close()
	if c.Err() == nil {
		t.Error("it ended without a reason")
	}
	if err := c.Emit("hello", 1, func([]byte) {}); err == nil {
		t.Error("an emit on a closed connection is no error")
	}
}

func TestARefusalIsTold(t *testing.T) {
	io, url := start(t)
	io.Use(func(*socketio.Socket) error { return errors.New("not you") })
	_, err := lightclient.Dial(testkit.Context(t), lightclient.Options{URL: url})
	var refused *lightclient.Refused
	if !errors.As(err, &refused) || refused.Payload != `{"message":"not you"}` {
		t.Errorf("%v", err)
	}
}
