package loadtest_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"xabar/gateway/socketio"
	"xabar/gateway/socketio/socketiotest"
)

// toy is a chat server of one conversation for each pair, right but for its fault.
type toy struct {
	fault string
	mu    sync.Mutex // guards what follows, and is held while messages go out
	users map[string]*socketio.Socket
	rooms map[string]*toyRoom
}

type toyRoom struct {
	members [2]string
	seq     int64
	sent    int
	held    *toyMessage
}

type toyMessage struct {
	ConversationID string `json:"conversationId"`
	Seq            int64  `json:"seq"`
	Text           string `json:"text"`
}

// every so manieth message meets the fault.
const every = 20

func startToy(t *testing.T, fault string) string {
	toy := &toy{fault: fault, users: map[string]*socketio.Socket{}, rooms: map[string]*toyRoom{}}
	io := socketio.NewServer(socketio.Options{})
	io.Use(func(s *socketio.Socket) error {
		var auth struct{ Token string }
		if err := json.Unmarshal(s.Auth(), &auth); err != nil {
			return err
		}
		toy.mu.Lock()
		defer toy.mu.Unlock()
		s.SetData(auth.Token)
		toy.users[auth.Token] = s
		return nil
	})
	io.Handle("sync", func(ev *socketio.Event) { _ = ev.Ack(map[string]any{"ok": true, "conversations": []any{}}) })
	io.Handle("conversation:open", toy.open)
	io.Handle("message:send", toy.send)
	return socketiotest.Start(t, io)
}

func (y *toy) open(ev *socketio.Event) {
	var payload struct{ UserID string }
	if err := ev.Arg(0).Decode(&payload); err != nil {
		panic(err)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	id := fmt.Sprintf("c%d", len(y.rooms))
	y.rooms[id] = &toyRoom{members: [2]string{ev.Socket().Data().(string), payload.UserID}}
	_ = ev.Ack(map[string]any{"ok": true, "conversation": map[string]any{"id": id}})
}

func (y *toy) send(ev *socketio.Event) {
	var payload struct{ ConversationID, Text string }
	if err := ev.Arg(0).Decode(&payload); err != nil {
		panic(err)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	room := y.rooms[payload.ConversationID]
	room.seq++
	room.sent++
	m := toyMessage{payload.ConversationID, room.seq, payload.Text}
	unlucky := room.sent%every == 0
	if unlucky && y.fault == "answers nothing" {
		return
	}
	answered := m
	if unlucky && y.fault == "numbers backwards" {
		answered.Seq -= every / 2
	}
	_ = ev.Ack(map[string]any{"ok": true, "message": answered})
	if unlucky {
		y.misbehave(room, m)
	} else {
		y.deliver(room, m)
	}
	if room.held != nil && room.held.Seq < m.Seq {
		held := *room.held
		room.held = nil
		y.deliver(room, held)
	}
}

func (y *toy) misbehave(room *toyRoom, m toyMessage) {
	switch y.fault {
	case "loses":
		return
	case "doubles":
		y.deliver(room, m)
	case "reorders":
		room.held = &m
		return
	case "repeats a seq":
		m.Seq--
	}
	y.deliver(room, m)
}

func (y *toy) deliver(room *toyRoom, m toyMessage) {
	recipient, sender := y.users[room.members[1]], y.users[room.members[0]]
	_ = recipient.EmitAck("message", func(_ socketio.Args, err error) {
		if err == nil && !(y.fault == "forgets deliveries" && m.Seq > every) {
			_ = sender.Emit("message:delivered", m)
		}
	}, m)
}
