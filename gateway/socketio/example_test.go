package socketio_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"regexp"
	"time"

	"xabar/gateway/engineio"
	"xabar/gateway/socketio"
)

// A server with a room, an acknowledgement and a broadcast.
func Example() {
	io := socketio.NewServer(socketio.Options{
		Options: engineio.Options{Origins: []string{"https://app.example"}},
	})
	io.OnConnection(func(s *socketio.Socket) {
		s.On("join", func(ev *socketio.Event) {
			var room string
			if err := ev.Arg(0).Decode(&room); err != nil {
				_ = ev.Ack(map[string]string{"error": "a room's name is wanted"})
				return
			}
			if err := s.Join(room); err != nil {
				log.Print(err)
				return
			}
			_ = ev.Ack(map[string]bool{"ok": true})
			_ = s.To(room).Emit("joined", s.ID())
		})
	})
	http.Handle("/socket.io/", io)
	// http.ListenAndServe(":3000", nil), and io.Shutdown at the end
}

// A middleware that checks the token of the handshake.
func ExampleNamespace_Use() {
	io := socketio.NewServer(socketio.Options{})
	io.Use(func(s *socketio.Socket) error {
		var auth struct{ Token string }
		if err := json.Unmarshal(s.Auth(), &auth); err != nil || auth.Token != "secret" {
			return &socketio.ConnectError{
				Message: "not authorized",
				Data:    map[string]string{"code": "unauthenticated"},
			}
		}
		s.SetData("alice")
		return nil
	})
}

// An event that is answered later, while the next ones are handled.
func ExampleEvent_Retain() {
	io := socketio.NewServer(socketio.Options{})
	jobs := make(chan *socketio.Event, 100)
	io.Handle("work", func(ev *socketio.Event) {
		select {
		case jobs <- ev.Retain(): // the arguments outlive the handler
		default:
			_ = ev.Ack(map[string]string{"error": "overloaded"})
		}
	})
	go func() {
		for ev := range jobs {
			_ = ev.Ack(fmt.Sprint("done: ", string(ev.Arg(0).Raw())))
		}
	}()
}

// One packet for many sockets, with one record for all their acknowledgements.
func ExampleNamespace_Prepare() {
	io := socketio.NewServer(socketio.Options{})
	p, err := io.Prepare("message", receipts{}, map[string]any{"seq": 17, "text": "hello"})
	if err != nil {
		log.Print(err)
		return
	}
	io.To("conversation:1").Range(func(s *socketio.Socket) bool {
		_, _ = s.QueuePrepared(p) // a socket that is gone is nobody's loss
		return true
	})
	time.AfterFunc(time.Minute, p.Release)
}

type receipts struct{}

func (receipts) Ack(s *socketio.Socket, args socketio.Args) { log.Print(s.ID(), " has it") }

// Asking all sockets of a room, with a timeout.
func ExampleBroadcastOperator_EmitWithAck() {
	io := socketio.NewServer(socketio.Options{})
	defer func() { _ = io.Shutdown(context.Background()) }() // fails only when called twice
	answers, err := io.To("voters").Timeout(50*time.Millisecond).EmitWithAck(context.Background(), "vote", "tea or coffee?")
	if errors.Is(err, socketio.ErrAckTimeout) {
		fmt.Println("not all have answered")
	}
	fmt.Println(len(answers), "answers")
	// Output: 0 answers
}

// Namespaces that are made when clients ask for them.
func ExampleServer_OfPattern() {
	io := socketio.NewServer(socketio.Options{})
	shops := io.OfPattern(regexp.MustCompile(`^/shop-\d+$`))
	shops.OnConnection(func(s *socketio.Socket) {
		_ = s.Namespace().Emit("visitor", s.ID())
	})
}
