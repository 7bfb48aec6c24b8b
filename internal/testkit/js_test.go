package testkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"xabar/gateway/engineio"
	"xabar/gateway/socketio"
	"xabar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// echo is a server that answers `echo` with its argument, tells back what clients acknowledge, and
// refuses the token "bad".
func echo(t *testing.T) string {
	t.Helper()
	io := socketio.NewServer(socketio.Options{Options: engineio.Options{AllowEIO3: true}})
	io.Use(func(s *socketio.Socket) error {
		var auth struct {
			Token string `json:"token"`
		}
		if json.Unmarshal(s.Auth(), &auth) == nil && auth.Token == "bad" {
			return &socketio.ConnectError{Message: "no", Data: map[string]string{"code": "unauthenticated"}}
		}
		return nil
	})
	io.OnConnection(func(s *socketio.Socket) {
		s.On("echo", func(e *socketio.Event) { check(t, e.Ack(e.Arg(0))) })
		s.On("silent", func(*socketio.Event) {})
		s.On("ask", func(*socketio.Event) {
			check(t, s.EmitAck("question", func(args socketio.Args, err error) {
				if err == nil {
					check(t, s.Emit("answered", args.Arg(0)))
				}
			}, "why"))
		})
		s.On("goodbye", func(*socketio.Event) { s.Disconnect(false) })
	})
	server := httptest.NewServer(io)
	t.Cleanup(func() {
		check(t, io.Shutdown(testkit.CleanupContext(t)))
		server.Close()
	})
	return server.URL
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, socketio.ErrDisconnected) {
		t.Error(err)
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestClientsOfEveryVersion(t *testing.T) {
	url, js := echo(t), testkit.NewJS(t)
	for _, version := range []int{4, 3, 2} {
		for _, transports := range [][]string{nil, {"websocket"}, {"polling"}} {
			t.Run(fmt.Sprint(version, transports), func(t *testing.T) {
				ctx := testkit.Context(t)
				c := js.Connected(t, testkit.ClientOptions{URL: url, Version: version, Transports: transports})
				if got := string(must[json.RawMessage](t)(c.Emit(ctx, "echo", map[string]any{"a": []int{1}}))); got != `{"a":[1]}` {
					t.Errorf("answer %s", got)
				}
				if transports == nil {
					upgraded := must[testkit.Heard](t)(c.WaitFor(ctx, "$upgrade", nil))
					if string(upgraded.Args[0]) != `"websocket"` {
						t.Errorf("upgrade to %s", upgraded.Args)
					}
				}
				state := must[testkit.State](t)(c.State(ctx))
				if !state.Connected || state.ID == "" || (transports != nil && state.Transport != transports[0]) {
					t.Errorf("state %+v", state)
				}
				check(t, c.Disconnect(ctx))
				must[testkit.Heard](t)(c.WaitFor(ctx, "disconnect", nil))
				check(t, c.Close(ctx))
			})
		}
	}
}

func TestAcknowledgementsFollowTheRules(t *testing.T) {
	url, js := echo(t), testkit.NewJS(t)
	ctx := testkit.Context(t)
	c := js.Connected(t, testkit.ClientOptions{URL: url, Acks: map[string]testkit.AckRule{"question": testkit.AckByHand}})
	check(t, c.Send(ctx, "ask", nil))
	question := must[testkit.Heard](t)(c.WaitFor(ctx, "question", nil))
	if testkit.Decode[string](question) != "why" || len(c.Events("answered")) != 0 {
		t.Fatalf("question %+v, answered %v", question, c.Events("answered"))
	}
	check(t, c.Ack(ctx, question, "because"))
	if answered := must[testkit.Heard](t)(c.WaitFor(ctx, "answered", nil)); testkit.Decode[string](answered) != "because" {
		t.Fatalf("answered %s", answered.Args)
	}
	if c.Ack(ctx, question) == nil {
		t.Error("the same acknowledgement twice")
	}
	check(t, c.SetAcks(ctx, map[string]testkit.AckRule{"question": testkit.AckAfter(30 * time.Millisecond)}))
	check(t, c.Send(ctx, "ask", nil))
	must[[]testkit.Heard](t)(c.WaitCount(ctx, "answered", 2))
	// Never: the events behind it are there, its answer is not.
	check(t, c.SetAcks(ctx, map[string]testkit.AckRule{"*": testkit.AckNever}))
	check(t, c.Send(ctx, "ask", nil))
	must[[]testkit.Heard](t)(c.WaitCount(ctx, "question", 3))
	must[json.RawMessage](t)(c.Emit(ctx, "echo", 1))
	if n := len(c.Events("answered")); n != 2 {
		t.Errorf("%d answers, want 2", n)
	}
}

func TestRefusalsTimeoutsAndCutConnections(t *testing.T) {
	url, js := echo(t), testkit.NewJS(t)
	ctx := testkit.Context(t)
	c := js.Client(t, testkit.ClientOptions{URL: url, AuthSequence: []map[string]any{{"token": "bad"}, {"token": "good"}}})
	var refused *testkit.Refused
	if err := c.Connect(ctx); !errors.As(err, &refused) || string(refused.Data) != `{"code":"unauthenticated"}` {
		t.Fatalf("refusal %v", err)
	}
	check(t, c.Connect(ctx))

	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if _, err := c.Emit(short, "silent", 1); err == nil {
		t.Error("an answer from nowhere")
	}
	mark := c.Mark()
	check(t, c.Kill(ctx))
	must[testkit.Heard](t)(c.WaitAfter(ctx, mark, "disconnect", nil))
	must[testkit.Heard](t)(c.WaitAfter(ctx, mark, "connect", nil)) // it comes back by itself
	mark = c.Mark()
	check(t, c.Send(ctx, "goodbye", nil))
	gone := must[testkit.Heard](t)(c.WaitAfter(ctx, mark, "disconnect", nil))
	if testkit.Decode[string](gone) != "io server disconnect" {
		t.Errorf("reason %s", gone.Args)
	}
}

func TestManyEmitsInOneTurn(t *testing.T) {
	url, js := echo(t), testkit.NewJS(t)
	ctx := testkit.Context(t)
	c := js.Connected(t, testkit.ClientOptions{URL: url, Transports: []string{"websocket"}})
	payloads := make([]any, 200)
	for i := range payloads {
		payloads[i] = i
	}
	for i, answer := range must[[]testkit.Answer](t)(c.EmitAll(ctx, "echo", payloads...)) {
		if answer.Err != nil || string(answer.Value) != fmt.Sprint(i) {
			t.Fatalf("answer %d: %s %v", i, answer.Value, answer.Err)
		}
	}
	check(t, c.Pause(ctx))
	check(t, c.Resume(ctx))
	binary := map[string]string{"$binary": "AAEC"}
	if got := string(must[json.RawMessage](t)(c.Emit(ctx, "echo", binary))); got != `{"$binary":"AAEC"}` {
		t.Errorf("binary came back as %s", got)
	}
}
