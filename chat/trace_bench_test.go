package chat_test

import (
	"context"
	"testing"

	"xabar/chat"
)

// instantStore stores nothing and answers at once: what is left is the service's share.
type instantStore struct {
	chat.Store
	result chat.SendResult
}

func (s *instantStore) Send(_ context.Context, _ chat.SendMessage, done func(chat.SendResult, error)) {
	done(s.result, nil)
}

// deaf is a Broadcaster without sockets.
type deaf struct{ heard *chat.Event }

func (d deaf) Publish(_ context.Context, event chat.Event) error {
	*d.heard = event
	return nil
}

// sending makes a function that sends one message through a service.
func sending(tb testing.TB) func() {
	conversation, sender := chat.NewID(), chat.User{ID: chat.NewID()}
	store := &instantStore{result: chat.SendResult{
		Message: chat.Message{ID: chat.NewID(), ConversationID: conversation, Seq: 7, SenderID: sender.ID, ClientMsgID: "m7", Text: "a message of common length, say"},
		Kind:    chat.Direct, MemberIDs: []chat.ID{sender.ID, chat.NewID()}, MemberCount: 2,
	}}
	var heard chat.Event
	service := chat.NewService(chat.ServiceConfig{Store: store, Broadcaster: deaf{&heard}})
	actor := chat.Actor{User: sender, SocketID: "a socket"}
	req := chat.SendRequest{ConversationID: &conversation, ClientMsgID: "m7", Text: "a message of common length, say"}
	return func() {
		service.Send(context.Background(), actor, req, func(_ chat.Sent, err error) {
			if err != nil {
				tb.Error(err)
			}
		})
	}
}

// BenchmarkSend is the service's share of a send while nothing is recorded.
func BenchmarkSend(b *testing.B) {
	send := sending(b)
	b.ReportAllocs()
	for b.Loop() {
		send()
	}
}
