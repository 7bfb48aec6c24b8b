package socketio_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xabar/gateway/socketio"
)

type ackAnswer struct {
	raw string
	err error
}

func TestEmitAck(t *testing.T) {
	t.Parallel()
	var pending atomic.Int64
	timeouts := make(chan string, 10)
	io, url := start(t, socketio.Options{Hooks: socketio.Hooks{
		PendingAcks: func(d int) { pending.Add(int64(d)) },
		AckTimeout:  func(ns string) { timeouts <- ns },
	}})
	c, s := joinSocket(t, io.Namespace, url)
	got := make(chan ackAnswer, 10)
	ack := func(a socketio.Args, err error) { got <- ackAnswer{string(a.Arg(0).Raw()), err} }

	must(t, s.EmitAck("q", ack, "x"))
	c.Expect(`20["q","x"]`)
	c.Send(`30["answer"]`)
	if a := recv(t, got); a.raw != `"answer"` || a.err != nil {
		t.Errorf("got %v", a)
	}
	c.Send(`30["again"]`) // nobody's
	c.Send(`399["never asked"]`)
	c.Send(`3["no id"]`)
	c.Sync()

	must(t, s.Timeout(time.Minute).EmitAck("q", ack))
	c.Expect(`21["q"]`)
	c.Send(`31`)
	if a := recv(t, got); a.raw != `null` || a.err != nil {
		t.Errorf("an acknowledgement without payload: %v", a)
	}

	must(t, s.Timeout(20*time.Millisecond).EmitAck("q", ack))
	c.Expect(`22["q"]`)
	if a := recv(t, got); !errors.Is(a.err, socketio.ErrAckTimeout) {
		t.Errorf("got %v, want ErrAckTimeout", a)
	}
	recv(t, timeouts)
	c.Send(`32["late"]`)
	c.Sync()

	must(t, s.EmitAck("q", ack))
	must(t, s.Timeout(time.Hour).EmitAck("q", ack))
	if n := s.PendingAcks(); n != 2 || pending.Load() != 2 {
		t.Errorf("%d pending, the hook says %d; want 2", n, pending.Load())
	}
	c.Drop()
	for range 2 {
		if a := recv(t, got); !errors.Is(a.err, socketio.ErrDisconnected) {
			t.Errorf("got %v, want ErrDisconnected", a)
		}
	}
	if err := s.EmitAck("q", ack); !errors.Is(err, socketio.ErrDisconnected) {
		t.Errorf("EmitAck after the end: %v", err)
	}
	if n := s.PendingAcks(); n != 0 || pending.Load() != 0 {
		t.Errorf("%d pending, the hook says %d", n, pending.Load())
	}
	select {
	case a := <-got:
		t.Errorf("one more: %v", a)
	default:
	}
}

func TestEmitWithAck(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	c, s := joinSocket(t, io.Namespace, url)
	got := make(chan ackAnswer, 1)
	ask := func(f func() (socketio.Args, error)) {
		go func() {
			a, err := f()
			got <- ackAnswer{string(a.Arg(0).Raw()), err}
		}()
	}
	ask(func() (socketio.Args, error) { return s.EmitWithAck(t.Context(), "q") })
	c.Expect(`20["q"]`)
	c.Send(`30[{"a":1}]`)
	c.Sync() // the read buffer is used again
	if a := recv(t, got); a.raw != `{"a":1}` || a.err != nil {
		t.Errorf("got %v", a)
	}
	ask(func() (socketio.Args, error) { return s.Timeout(10*time.Millisecond).EmitWithAck(t.Context(), "q") })
	c.Expect(`21["q"]`)
	if a := recv(t, got); !errors.Is(a.err, socketio.ErrAckTimeout) {
		t.Errorf("got %v, want ErrAckTimeout", a)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ask(func() (socketio.Args, error) { return s.EmitWithAck(ctx, "q") })
	c.Expect(`22["q"]`)
	cancel()
	if a := recv(t, got); !errors.Is(a.err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", a)
	}
	ask(func() (socketio.Args, error) { return s.EmitWithAck(t.Context(), "q", []byte{1}) })
	c.Expect(`51-3["q",{"_placeholder":true,"num":0}]`)
	c.ExpectBinary([]byte{1})
	s.Disconnect(false)
	if a := recv(t, got); !errors.Is(a.err, socketio.ErrDisconnected) {
		t.Errorf("got %v, want ErrDisconnected", a)
	}
	if n := s.PendingAcks(); n != 0 {
		t.Errorf("%d pending", n)
	}
}

func TestMaxPendingAcks(t *testing.T) {
	t.Parallel()
	bounds := make(chan string, 10)
	io, url := start(t, socketio.Options{MaxPendingAcks: 2, Hooks: socketio.Hooks{Bound: func(b string) { bounds <- b }}})
	c, s := joinSocket(t, io.Namespace, url)
	ack := func(socketio.Args, error) {}
	must(t, s.EmitAck("q", ack))
	must(t, s.EmitAck("q", ack))
	if err := s.EmitAck("q", ack); !errors.Is(err, socketio.ErrTooManyAcks) {
		t.Errorf("third: %v, want ErrTooManyAcks", err)
	}
	if b := recv(t, bounds); b != "MaxPendingAcks" {
		t.Errorf("bound %q", b)
	}
	c.Expect(`20["q"]`)
	c.Expect(`21["q"]`)
	c.Send(`30[]`)
	c.Sync()
	must(t, s.EmitAck("q", ack))
}

// Acknowledgements, timeouts and the end of the socket race: each callback is called once.
func TestAckRaces(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	for round := range 20 {
		c, s := joinSocket(t, io.Namespace, url)
		var called, refused atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 50 {
					err := s.Timeout(time.Millisecond).EmitAck("q", func(socketio.Args, error) { called.Add(1) })
					if err != nil {
						refused.Add(1)
					}
				}
			})
		}
		wg.Go(func() {
			for i := range 100 {
				c.Send(fmt.Sprintf("3%d[]", round*200+i))
			}
			c.Drop()
		})
		wg.Wait()
		eventually(t, "every callback was called", func() bool { return called.Load()+refused.Load() == 200 })
		c.Close()
		if n := s.PendingAcks(); n != 0 {
			t.Fatalf("%d pending", n)
		}
	}
}

func TestPreparedSharedAck(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	c1, s1 := joinSocket(t, io.Namespace, url)
	c2, s2 := joinSocket(t, io.Namespace, url)
	type answer struct {
		s   *socketio.Socket
		raw string
	}
	got := make(chan answer, 10)
	sink := sinkFunc(func(s *socketio.Socket, a socketio.Args) { got <- answer{s, string(a.Arg(0).Raw())} })
	p, err := io.Prepare("message", sink, map[string]int{"seq": 1})
	must(t, err)
	if string(p.MarshalledArgs()) != `["message",{"seq":1}]` || p.Event() != "message" || p.Size() == 0 {
		t.Errorf("prepared %s %s %d", p.Event(), p.MarshalledArgs(), p.Size())
	}
	for _, s := range []*socketio.Socket{s1, s2} {
		if sent, err := s.EmitPrepared(p); !sent || err != nil {
			t.Fatalf("EmitPrepared: %v, %v", sent, err)
		}
	}
	c1.Expect(`20["message",{"seq":1}]`)
	c2.Expect(`20["message",{"seq":1}]`)
	c2.Send(`30[2]`)
	if a := recv(t, got); a.s != s2 || a.raw != "2" {
		t.Errorf("got %v", a)
	}
	c1.Send(`30[1]`)
	if a := recv(t, got); a.s != s1 || a.raw != "1" {
		t.Errorf("got %v", a)
	}
	p.Release()
	p.Release()
	c1.Send(`30[3]`)
	c1.Sync()
	raw, err := io.PrepareRaw("raw", sink, []byte(`{"a":1},2`))
	must(t, err)
	must(t, io.EmitPrepared(raw))
	c1.Expect(`21["raw",{"a":1},2]`)
	none, err := io.PrepareRaw("none", nil, nil)
	must(t, err)
	must(t, io.EmitPrepared(none))
	c1.Expect(`2["none"]`)
	none.Release()
	if len(got) != 0 {
		t.Errorf("an acknowledgement after Release: %v", recv(t, got))
	}
	s1.Disconnect(false)
	if sent, err := s1.EmitPrepared(p); sent || !errors.Is(err, socketio.ErrDisconnected) {
		t.Errorf("EmitPrepared after the end: %v, %v", sent, err)
	}
}
