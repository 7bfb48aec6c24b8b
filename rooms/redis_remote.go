package rooms

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"xabar/gateway/socketio"
)

// receive implements sink: it does what another server asks, in the order in which it came.
// What runs application code, or may take long, goes to a goroutine of the adapter's own.
func (a *redisAdapter) receive(channel string, payload []byte) {
	m, err := a.dialect.decode(channel, slices.Clone(payload)) // the message keeps parts of it
	if err != nil {
		a.log.Warn("a message from another server was dropped", "channel", channel, "error", err)
		return
	}
	if m.from == a.uid || m.namespace != a.ns.Name() {
		return
	}
	if m.kind >= kindCount {
		a.answered(m)
		return
	}
	if err := a.perform(m); err != nil {
		a.log.Warn("what another server asked for failed", "channel", channel, "error", err)
	}
}

func (a *redisAdapter) perform(m *message) error {
	switch m.kind {
	case kindBroadcast:
		return a.broadcastHere(m)
	case kindJoin:
		return a.MemoryAdapter.AddSockets(&m.opts, m.rooms)
	case kindLeave:
		return a.MemoryAdapter.DelSockets(&m.opts, m.rooms)
	case kindDisconnect:
		a.later(m, func() error { return a.MemoryAdapter.DisconnectSockets(&m.opts, m.close) })
	case kindSocketIDs, kindFetch, kindRooms:
		a.later(m, func() error { return a.describe(m) })
	case kindServerSide:
		a.later(m, func() error { return a.serverSide(m) })
	case kindSocket:
		return a.single(m)
	}
	return nil
}

// later has f run behind what was asked before.
func (a *redisAdapter) later(m *message, f func() error) {
	ok := a.slow.do(func() {
		if err := f(); err != nil {
			a.log.Warn("what another server asked for failed", "error", err)
		}
	})
	if !ok {
		a.log.Warn("a request of another server was dropped: too many wait", "kind", m.kind)
	}
}

// broadcastHere emits to the sockets of this server.
func (a *redisAdapter) broadcastHere(m *message) error {
	event, _, err := splitEvent(m.data)
	if err != nil {
		return err
	}
	if m.request != "" {
		return a.broadcastForAck(event, m)
	}
	p, err := a.ns.PrepareData(event, m.data, m.attachments, &m.opts.Flags)
	if err != nil {
		return err
	}
	return a.MemoryAdapter.Broadcast(p, &m.opts)
}

func (a *redisAdapter) broadcastForAck(event string, m *message) error {
	p, err := a.ns.PrepareForAck(event, m.data, m.attachments, &m.opts.Flags)
	if err != nil {
		return err
	}
	timeout := m.opts.Flags.Timeout
	if timeout <= 0 {
		timeout = requestTimeout
	}
	ctx, cancel := context.WithTimeout(a.ctx, timeout)
	context.AfterFunc(ctx, cancel)
	return a.MemoryAdapter.BroadcastWithAck(ctx, p, &m.opts,
		func(sockets int) { a.answer(&message{kind: kindCount, request: m.request, to: m.from, count: sockets}) },
		func(args socketio.Args) {
			answer := &message{kind: kindAck, request: m.request, to: m.from, data: args.Arg(0).Raw()}
			answer.attachments = args.Attachments()
			a.answer(answer)
		})
}

// answer publishes an answer; who asked has a timeout if it does not get there.
func (a *redisAdapter) answer(m *message) {
	if err := a.publish(m); err != nil {
		a.log.Warn("an answer to another server was not sent", "error", err)
	}
}

// describe answers what sockets or rooms there are.
func (a *redisAdapter) describe(m *message) error {
	answer := &message{kind: kindAnswer, action: m.kind, request: m.request, to: m.from}
	var err error
	switch m.kind {
	case kindSocketIDs:
		answer.ids, err = a.MemoryAdapter.Sockets(a.ctx, &m.opts)
	case kindRooms:
		answer.ids = a.Rooms()
	default:
		answer.sockets, err = a.MemoryAdapter.FetchSockets(a.ctx, &m.opts)
	}
	if err != nil {
		return err
	}
	a.answer(answer)
	return nil
}

// serverSide fires the handlers of a ServerSideEmit.
func (a *redisAdapter) serverSide(m *message) error {
	event, args, err := splitEvent(m.data)
	if err != nil {
		return err
	}
	var ack func(args ...any) error
	if m.request != "" {
		var once sync.Once
		ack = func(args ...any) error {
			err := socketio.ErrAlreadyAcked
			once.Do(func() { err = a.acknowledge(m, args) })
			return err
		}
	}
	a.ns.HandleServerSide(event, socketio.NewArgs(args, m.attachments), ack)
	return nil
}

// acknowledge answers a ServerSideEmitWithAck with the first argument, as Node's adapters do.
func (a *redisAdapter) acknowledge(m *message, args []any) error {
	answer := &message{kind: kindAnswer, action: kindServerSide, request: m.request, to: m.from, data: json.RawMessage("null")}
	if len(args) > 0 {
		encoded, err := a.ns.EncodeArgs(args[0])
		if err != nil {
			return err
		}
		answer.data, answer.attachments = encoded.Arg(0).Raw(), encoded.Attachments()
	}
	return a.publish(answer)
}

// single does what adapters before 7 ask of one socket, named by its id.
func (a *redisAdapter) single(m *message) error {
	s := a.ns.Socket(m.sid)
	if s == nil {
		return nil
	}
	switch m.action {
	case kindJoin:
		if err := s.Join(m.rooms...); err != nil {
			return err
		}
	case kindLeave:
		for _, room := range m.rooms {
			s.Leave(room)
		}
	case kindDisconnect:
		a.later(m, func() error { s.Disconnect(m.close); return nil })
	}
	a.answer(&message{kind: kindAnswer, request: m.request, to: m.from})
	return nil
}

// splitEvent takes an event's name off its arguments.
func splitEvent(data json.RawMessage) (event string, args []json.RawMessage, err error) {
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return "", nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	if len(list) == 0 {
		return "", nil, fmt.Errorf("%w: an event without a name", errMalformed)
	}
	if err := json.Unmarshal(list[0], &event); err != nil {
		return "", nil, fmt.Errorf("%w: an event's name: %w", errMalformed, err)
	}
	return event, list[1:], nil
}
