package socketio_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xabar/gateway/socketio"
)

// traveller is a client that can come back.
type traveller struct {
	*client
	sid, pid, offset string
}

func travel(t *testing.T, url string) *traveller {
	t.Helper()
	v := &traveller{client: dial(t, url)}
	v.connect(t, "")
	return v
}

func (v *traveller) connect(t *testing.T, auth string) {
	t.Helper()
	v.Send("0" + auth)
	var p struct{ SID, PID string }
	m := v.Next()
	if !strings.HasPrefix(m, "40{") || json.Unmarshal([]byte(m[2:]), &p) != nil || p.PID == "" {
		t.Fatalf("got %q, want CONNECT with sid and pid", m)
	}
	v.sid, v.pid = p.SID, p.PID
}

// event returns the next event without its offset, which it remembers.
func (v *traveller) event(t *testing.T) string {
	t.Helper()
	m := v.Next()
	var args []json.RawMessage
	if !strings.HasPrefix(m, "42[") || json.Unmarshal([]byte(m[2:]), &args) != nil {
		t.Fatalf("got %q, want an event", m)
	}
	must(t, json.Unmarshal(args[len(args)-1], &v.offset))
	parts := make([]string, len(args)-1)
	for i := range parts {
		parts[i] = string(args[i])
	}
	return strings.Join(parts, " ")
}

// comeBack reconnects with what the client knows.
func (v *traveller) comeBack(t *testing.T, url string) *traveller {
	t.Helper()
	w := &traveller{client: dial(t, url), offset: v.offset}
	w.connect(t, fmt.Sprintf(`{"pid":%q,"offset":%q}`, v.pid, v.offset))
	return w
}

func TestRecovery(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{Recovery: &socketio.Recovery{}})
	middleware := make(chan struct{}, 10)
	io.Use(func(s *socketio.Socket) error {
		middleware <- struct{}{}
		s.SetData("mine")
		return nil
	})
	v := travel(t, url)
	s := io.Socket(v.sid)
	must(t, s.Join("in"))
	if s.Recovered() {
		t.Error("a new socket is recovered")
	}
	must(t, s.Emit("first", 1))
	if got := v.event(t); got != `"first" 1` {
		t.Errorf("got %s", got)
	}
	v.Drop()
	recv(t, s.Context().Done())
	eventually(t, "the session is kept", func() bool { return io.AwaySessions() == 1 })
	must(t, io.Emit("all", 2))
	must(t, io.To("in").Emit("room", 3, []byte{7}))
	must(t, io.To("out").Emit("not mine"))
	must(t, io.Except("in").Emit("not mine"))
	must(t, io.To("in", "out").Except(v.sid).Emit("not mine"))
	must(t, io.Volatile().Emit("volatile"))
	must(t, io.To(v.sid).Emit("direct", 4))

	w := v.comeBack(t, url)
	if w.sid != v.sid || w.pid != v.pid {
		t.Fatal("the socket has another identity")
	}
	if got := w.event(t); got != `"all" 2` {
		t.Errorf("got %s", got)
	}
	if got := w.Next(); !strings.HasPrefix(got, `451-["room",3,{"_placeholder":true,"num":0},"`) {
		t.Errorf("got %s", got)
	}
	w.ExpectBinary([]byte{7})
	if got := w.event(t); got != `"direct" 4` {
		t.Errorf("got %s", got)
	}
	w.Sync()
	back := io.Socket(v.sid)
	if !back.Recovered() || back.Data() != "mine" || !slices.Contains(back.Rooms(), "in") || len(middleware) != 1 {
		t.Errorf("recovered %v, data %v, rooms %v, %d middleware runs", back.Recovered(), back.Data(), back.Rooms(), len(middleware))
	}
	must(t, io.To("in").Emit("live"))
	if got := w.event(t); got != `"live"` {
		t.Errorf("got %s", got)
	}
	twice := v.comeBack(t, url) // a session is recovered once
	if twice.sid == v.sid {
		t.Error("the session was recovered twice")
	}
}

func TestRecoveryRefuses(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{Recovery: &socketio.Recovery{MaxSessions: 2, MaxBytes: 4096, RunMiddlewares: true}})
	io.Use(func(s *socketio.Socket) error {
		if s.Recovered() && s.Data() == "barred" {
			return errors.New("barred")
		}
		return nil
	})
	leave := func(v *traveller, how func(s *socketio.Socket)) {
		s := io.Socket(v.sid)
		must(t, s.Emit("hello"))
		v.event(t)
		how(s)
		recv(t, s.Context().Done())
	}
	drop := func(v *traveller) func(*socketio.Socket) { return func(*socketio.Socket) { v.Drop() } }
	isNew := func(name string, v *traveller) {
		t.Helper()
		if w := v.comeBack(t, url); w.sid == v.sid {
			t.Errorf("%s: the session was recovered", name)
		}
	}
	v := travel(t, url)
	leave(v, func(s *socketio.Socket) { s.Disconnect(false) })
	isNew("disconnected by the server", v)

	v = travel(t, url)
	leave(v, func(*socketio.Socket) { v.Send("1") })
	isNew("left", v)

	v = travel(t, url)
	leave(v, drop(v))
	eventually(t, "kept", func() bool { return io.AwaySessions() == 1 })
	good := v.offset
	for _, bad := range []string{"", "x", good + "0", "other." + strings.SplitN(good, ".", 2)[1], good[:len(good)-1] + "~"} {
		v.offset = bad
		isNew("offset "+bad, v)
	}
	v.offset = good
	must(t, io.Emit("big", strings.Repeat("x", 5000))) // the event at its offset is no longer kept
	isNew("too much has happened", v)

	v = travel(t, url)
	io.Socket(v.sid).SetData("barred")
	leave(v, drop(v))
	eventually(t, "kept", func() bool { return io.AwaySessions() == 2 })
	c := dial(t, url)
	c.Send(fmt.Sprintf(`0{"pid":%q,"offset":%q}`, v.pid, v.offset))
	c.Expect(`4{"message":"barred"}`)

	first := travel(t, url)
	leave(first, drop(first))
	for range 2 {
		v = travel(t, url)
		leave(v, drop(v))
	}
	eventually(t, "kept", func() bool { return io.AwaySessions() == 2 })
	first.offset = v.offset
	isNew("the oldest of too many", first)
	if w := v.comeBack(t, url); w.sid != v.sid {
		t.Error("the newest was not recovered")
	}
}

func TestRecoveryExpires(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{Recovery: &socketio.Recovery{MaxDisconnection: 30 * time.Millisecond}})
	v := travel(t, url)
	s := io.Socket(v.sid)
	must(t, s.Emit("hello"))
	v.event(t)
	v.Drop()
	recv(t, s.Context().Done())
	<-time.After(50 * time.Millisecond) // the time itself is what is tested
	if w := v.comeBack(t, url); w.sid == v.sid {
		t.Error("the session was recovered after its time")
	}
}

// A client that is cut off again and again while others emit gets every event once, in order.
func TestRecoveryLosesNothing(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{Recovery: &socketio.Recovery{}})
	v := travel(t, url)
	sid := v.sid
	must(t, io.Socket(sid).Join("in"))
	const n = 400
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			if i%2 == 0 {
				must(t, io.To("in").Emit("n", i))
			} else {
				must(t, io.Emit("n", i))
			}
			if i%10 == 0 {
				time.Sleep(time.Millisecond) // spreads the events over the outages
			}
		}
	})
	defer wg.Wait()
	for i := range n {
		if got := v.event(t); got != fmt.Sprintf(`"n" %d`, i) {
			t.Fatalf("got %s, want event %d", got, i)
		}
		if i%37 == 36 {
			s := io.Socket(sid)
			v.Drop()
			recv(t, s.Context().Done())
			eventually(t, "the session is kept", func() bool { return io.AwaySessions() == 1 })
			if v = v.comeBack(t, url); v.sid != sid {
				t.Fatal("the session was not recovered")
			}
		}
	}
}

// Handlers of OnAnyOutgoing may emit, with recovery too.
func TestRecoveryAndOnAnyOutgoing(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{Recovery: &socketio.Recovery{}})
	v := travel(t, url)
	s := io.Socket(v.sid)
	s.OnAnyOutgoing(func(event string, args socketio.Args) {
		if event == "a" {
			must(t, s.Emit("seen", args.Len()))
		}
	})
	must(t, s.Emit("a", 1, 2))
	must(t, io.Emit("a", 1))
	for _, want := range []string{`"seen" 2`, `"a" 1 2`, `"seen" 1`, `"a" 1`} {
		if got := v.event(t); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
