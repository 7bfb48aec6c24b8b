package rooms

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"xabar/gateway/socketio"
)

// randomID names an adapter or a request. It never looks like a socket's id.
func randomID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}

// expect has f called with each answer to a request, on the reader, until forget.
func (a *redisAdapter) expect(request string, f func(*message)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.requests[request] = f
	}
}

func (a *redisAdapter) forget(request string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.requests, request)
}

// answered hands an answer to who waits for it.
func (a *redisAdapter) answered(m *message) {
	a.mu.Lock()
	f := a.requests[m.request]
	a.mu.Unlock()
	if f != nil {
		f(m)
	}
}

// ask sends a request to the other servers and calls each with their answers, one after the
// other, until all have come. Errors: ErrUnavailable, ErrOverloaded, socketio.ErrAckTimeout when
// not all came in time.
func (a *redisAdapter) ask(ctx context.Context, m *message, each func(*message)) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	count, err := a.ServerCount(ctx)
	if err != nil {
		return err
	}
	others := count - 1
	if others <= 0 {
		return nil
	}
	var mu sync.Mutex // guards got and each's results
	got := 0
	done := make(chan struct{})
	m.request = randomID()
	a.expect(m.request, func(answer *message) {
		mu.Lock()
		defer mu.Unlock()
		if got == others {
			return
		}
		each(answer)
		if got++; got == others {
			close(done)
		}
	})
	defer func() {
		a.forget(m.request)
		mu.Lock() // no answer is being taken when this returns, and none will be
		got = others
		mu.Unlock()
	}()
	if err := a.publish(m); err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return timedOut(ctx)
	case <-a.ctx.Done():
		return socketio.ErrServerClosed
	}
}

func timedOut(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return fmt.Errorf("rooms: other servers have not answered: %w", socketio.ErrAckTimeout)
}

// Sockets implements socketio.Adapter.
func (a *redisAdapter) Sockets(ctx context.Context, opts *socketio.BroadcastOptions) ([]string, error) {
	ids, err := a.MemoryAdapter.Sockets(ctx, opts)
	if err != nil || opts.Flags.Local {
		return ids, err
	}
	err = a.ask(ctx, &message{kind: kindSocketIDs, opts: *opts}, func(answer *message) {
		ids = append(ids, answer.ids...)
	})
	return ids, err
}

// FetchSockets implements socketio.Adapter.
func (a *redisAdapter) FetchSockets(ctx context.Context, opts *socketio.BroadcastOptions) ([]socketio.SocketDetails, error) {
	list, err := a.MemoryAdapter.FetchSockets(ctx, opts)
	if err != nil || opts.Flags.Local {
		return list, err
	}
	err = a.ask(ctx, &message{kind: kindFetch, opts: *opts}, func(answer *message) {
		list = append(list, answer.sockets...)
	})
	return list, err
}

// ServerSideEmitWithAck implements socketio.Adapter.
func (a *redisAdapter) ServerSideEmitWithAck(ctx context.Context, event string, args socketio.Args) ([]socketio.Args, error) {
	data, err := eventArray(event, args)
	if err != nil {
		return nil, err
	}
	var answers []socketio.Args
	m := &message{kind: kindServerSide, data: data, attachments: args.Attachments()}
	err = a.ask(ctx, m, func(answer *message) {
		answers = append(answers, socketio.NewArgs(oneArg(answer.data), answer.attachments))
	})
	return answers, err
}

// oneArg is the single argument that Node's adapters carry of an acknowledgement.
func oneArg(raw json.RawMessage) []json.RawMessage {
	if raw == nil {
		return nil
	}
	return []json.RawMessage{raw}
}

// eventArray is the JSON array of an event's name and arguments.
func eventArray(event string, args socketio.Args) (json.RawMessage, error) {
	name, err := marshal(event)
	if err != nil {
		return nil, err
	}
	list := []json.RawMessage{name}
	for i := range args.Len() {
		list = append(list, args.Arg(i).Raw())
	}
	return marshal(list)
}
