package chat

import (
	"context"
	"time"
)

// SendRequest is what a client asks: exactly one of ConversationID and ToUser
// says where.
type SendRequest struct {
	ConversationID *ID
	ToUser         *UserRef
	ClientMsgID    string
	Text           string
	ReplyToSeq     *int64
}

// Sent is the answer to a send: the message as stored, also in its wire form.
type Sent struct {
	Message   Message
	Duplicate bool
	JSON      []byte
}

// Send stores a message, answers, and shows it to the members. It returns before
// the message is stored: done is called exactly once, maybe before Send returns,
// and must not block. Sends of one caller keep the order of their calls; only the
// first one to a user whose conversation this node has not met yet waits for the
// database itself.
//
// Errors: invalid_argument, text_empty, text_too_long, invalid_text, not_found,
// conflict, forbidden, rate_limited, overloaded, timeout, unavailable.
func (s *Service) Send(ctx context.Context, actor Actor, req SendRequest, done func(Sent, error)) {
	s.send(ctx, actor, req, false, done)
}

func (s *Service) send(ctx context.Context, actor Actor, req SendRequest, system bool, done func(Sent, error)) {
	span := SpanOf(ctx)
	validating := ChildSpan(span, InternalSpan, "message.validate")
	cmd, err := s.command(ctx, actor, req)
	EndSpan(validating, err)
	if err != nil {
		done(Sent{}, err)
		return
	}
	cmd.System = system
	s.sending.Add(1)
	s.store.Send(s.bound(ctx), cmd, func(result SendResult, err error) {
		defer s.sending.Add(-1)
		if err != nil {
			done(Sent{}, err)
			return
		}
		describe(span, &result)
		raw := result.Message.AppendJSON(make([]byte, 0, 320+len(result.Message.Text)))
		done(Sent{result.Message, result.Duplicate, raw}, nil)
		if !result.Duplicate {
			s.show(uncancelled(ctx), span, actor.SocketID, result, raw)
		}
	})
}

// uncancelled is ctx without its end, for what follows from something that is stored.
func uncancelled(ctx context.Context) context.Context {
	if ctx.Done() == nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// Sending is the number of sends that are handed to the store and not answered and
// shown yet.
func (s *Service) Sending() int64 { return s.sending.Load() }

// Settle returns when every send has been answered and shown, for the end of a node
// that takes no more of them; else with ctx's error.
func (s *Service) Settle(ctx context.Context) error {
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for s.Sending() > 0 {
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// command checks the request and turns it into what the store takes.
func (s *Service) command(ctx context.Context, actor Actor, req SendRequest) (SendMessage, error) {
	if (req.ConversationID == nil) == (req.ToUser == nil) {
		return SendMessage{}, InvalidArgument("conversationId", "either conversationId or toUserId is required")
	}
	if err := CheckClientMsgID(req.ClientMsgID); err != nil {
		return SendMessage{}, err
	}
	if req.ReplyToSeq != nil && *req.ReplyToSeq < 1 {
		return SendMessage{}, InvalidArgument("replyToSeq", "replyToSeq is a seq, from 1")
	}
	text, err := CheckText(req.Text)
	if err != nil {
		return SendMessage{}, err
	}
	if wait, ok := s.sends.Take(actor.User.ID); !ok {
		return SendMessage{}, RateLimited(wait)
	}
	cmd := SendMessage{SenderID: actor.User.ID, ClientMsgID: req.ClientMsgID, Text: text, ReplyToSeq: req.ReplyToSeq}
	if req.ConversationID != nil {
		cmd.ConversationID = *req.ConversationID
		return cmd, nil
	}
	cmd.ConversationID, err = s.directWith(ctx, actor, *req.ToUser)
	return cmd, err
}

// directWith finds the direct conversation with the user, from memory if it can.
func (s *Service) directWith(ctx context.Context, actor Actor, ref UserRef) (ID, error) {
	if peer, ok := ref.ID(); ok {
		if id, ok := s.directs.Get(pairKey(actor.User.ID, peer)); ok {
			return id, nil
		}
	}
	peer, err := s.User(ctx, ref, "toUserId")
	if err != nil {
		return ID{}, err
	}
	if peer.ID == actor.User.ID {
		return ID{}, InvalidArgument("toUserId", "a conversation needs somebody else")
	}
	if id, ok := s.directs.Get(pairKey(actor.User.ID, peer.ID)); ok {
		return id, nil
	}
	conversation, _, err := s.openDirect(ctx, actor.User.ID, peer.ID)
	return conversation.ID, err
}

// show publishes a message that has just been stored and, once that is done,
// closes its outbox event.
func (s *Service) show(ctx context.Context, within Span, socket string, result SendResult, raw []byte) {
	m := &result.Message
	publishing := ChildSpan(within, ProducerSpan, "message.publish")
	s.publish(ctx, &MessageStored{
		Message: *m, Kind: result.Kind, MemberIDs: result.MemberIDs, MemberCount: result.MemberCount,
		OriginSocket: socket, JSON: raw, Sender: result.Sender, Trace: TraceOf(publishing),
	})
	EndSpan(publishing, nil)
	// Answering is reading. That the sender has read its own message is no news.
	if sender := result.Sender; sender.NewRead > sender.OldRead && sender.OldRead < m.Seq-1 {
		sender.Kind, sender.MemberIDs, sender.MemberCount = result.Kind, result.MemberIDs, result.MemberCount
		s.announce(ctx, within, PositionMove{UserID: m.SenderID, ConversationID: m.ConversationID}, socket, sender)
	}
}

// TakeOver fans out again what a dead node, or this one before a crash, stored
// and may not have shown. It returns how many events it took; the caller calls
// again at once while that is limit, else after a while.
func (s *Service) TakeOver(ctx context.Context, limit int) (int, error) {
	events, err := s.store.ClaimOutbox(ctx, limit)
	for i := range events {
		e := &events[i]
		s.publish(ctx, &MessageStored{
			Message: e.Message, Kind: e.Kind, MemberIDs: e.MemberIDs, MemberCount: e.MemberCount,
			JSON: e.Message.AppendJSON(nil),
		})
	}
	return len(events), err
}
