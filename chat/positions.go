package chat

import (
	"context"
	"time"
)

// MarkDelivered moves the caller's delivered position up to and including seq.
// done is called exactly once and must not block. Errors: invalid_argument,
// not_found, overloaded, timeout, unavailable.
func (s *Service) MarkDelivered(ctx context.Context, actor Actor, conversation ID, seq int64, done func(PositionResult, error)) {
	if seq < 1 {
		done(PositionResult{}, InvalidArgument("seq", "seq starts at 1"))
		return
	}
	s.move(ctx, PositionMove{Kind: Delivered, UserID: actor.User.ID, ConversationID: conversation, UpTo: seq}, actor.SocketID, done)
}

// Acknowledgement says that a device of a user holds the messages with After < seq <= UpTo.
type Acknowledgement struct {
	UserID, ConversationID ID
	After, UpTo            int64
	Socket                 string // the device's
	MemberCount            int    // of the conversation; 0 if the caller does not know
}

// Acknowledge moves the user's delivered position for a device. A claim beyond a gap moves
// nothing: the caller keeps it and claims again when the position has reached After.
func (s *Service) Acknowledge(ctx context.Context, a Acknowledgement, done func(PositionResult, error)) {
	move := PositionMove{
		Kind: Delivered, UserID: a.UserID, ConversationID: a.ConversationID, After: a.After, UpTo: a.UpTo,
		// Larger conversations hear of no position, and one message brings hundreds of these.
		Unhurried: a.MemberCount > ReceiptMembers,
	}
	s.move(ctx, move, a.Socket, done)
}

// DeviceLeft is called when a device has acknowledged its last. When it comes back it is caught up from
// the stored position, which must not be behind what it has said.
func (s *Service) DeviceLeft(user ID) { s.store.HurryPositions(user) }

// MarkRead moves the caller's read position (and with it the delivered one) up
// to and including seq, clamped to lastSeq. done is called exactly once and must
// not block. Errors: as MarkDelivered.
func (s *Service) MarkRead(ctx context.Context, actor Actor, conversation ID, seq int64, done func(PositionResult, error)) {
	if seq < 1 {
		done(PositionResult{}, InvalidArgument("seq", "seq starts at 1"))
		return
	}
	s.move(ctx, PositionMove{Kind: Read, UserID: actor.User.ID, ConversationID: conversation, UpTo: seq}, actor.SocketID, done)
}

func (s *Service) move(ctx context.Context, move PositionMove, socket string, done func(PositionResult, error)) {
	span := SpanOf(ctx)
	s.store.MovePosition(s.bound(ctx), move, func(result PositionResult, err error) {
		done(result, err)
		if err == nil {
			s.announce(uncancelled(ctx), span, move, socket, result)
		}
	})
}

// announce publishes what moved, delivered before read: the order in which it
// is true.
func (s *Service) announce(ctx context.Context, within Span, move PositionMove, socket string, r PositionResult) {
	event := PositionMoved{
		ConversationID: move.ConversationID, ConversationKind: r.Kind, UserID: move.UserID, At: r.At,
		MemberIDs: r.MemberIDs, MemberCount: r.MemberCount, OriginSocket: socket,
	}
	if r.NewDelivered > r.OldDelivered {
		event.Kind, event.Old, event.Seq = Delivered, r.OldDelivered, r.NewDelivered
		s.publishPosition(ctx, within, event)
	}
	if r.NewRead > r.OldRead {
		event.Kind, event.Old, event.Seq = Read, r.OldRead, r.NewRead
		s.publishPosition(ctx, within, event)
	}
}

func (s *Service) publishPosition(ctx context.Context, within Span, event PositionMoved) {
	span := ChildSpan(within, ProducerSpan, "position.publish")
	if span != nil {
		span.Word("xabar.position.kind", event.Kind.String())
		span.ID("xabar.user.id", event.UserID)
		span.Int("xabar.message.seq", event.Seq)
		event.Trace = span.Context()
	}
	s.publish(ctx, &event)
	EndSpan(span, nil)
}

// Receipts says which of the others has a message and has read it. Errors:
// invalid_argument, not_found.
func (s *Service) Receipts(ctx context.Context, actor Actor, conversation ID, seq int64, page PageRequest) (Page[Receipt], error) {
	if seq < 1 {
		return Page[Receipt]{}, InvalidArgument("seq", "seq starts at 1")
	}
	return s.store.Receipts(ctx, actor.User.ID, conversation, seq, page)
}

// Typing tells the other members that the caller is typing. The caller has
// throttled it. Errors: not_found, forbidden (blocked).
func (s *Service) Typing(ctx context.Context, actor Actor, conversation ID) error {
	known, ok := s.pairs.Get(conversation)
	if !ok || time.Now().After(known.until) {
		// Not a direct conversation that this node has met lately: the store knows
		// whether it is the caller's at all.
		found, err := s.store.Conversation(ctx, actor.User.ID, conversation)
		if err != nil {
			return err
		}
		if found.Kind != Direct || found.Peer == nil {
			s.publish(ctx, TypingStarted{ConversationID: conversation, UserID: actor.User.ID, OriginSocket: actor.SocketID})
			return nil
		}
		if known, err = s.meetPair(ctx, conversation, actor.User.ID, found.Peer.ID); err != nil {
			return err
		}
	}
	pair := known.users
	if pair[0] != actor.User.ID && pair[1] != actor.User.ID {
		return Errorf(CodeNotFound, "")
	}
	s.publish(ctx, TypingStarted{ConversationID: conversation, UserID: actor.User.ID, MemberIDs: pair[:], OriginSocket: actor.SocketID})
	return nil
}

// meetPair remembers a direct conversation if neither blocks the other. Errors:
// forbidden.
func (s *Service) meetPair(ctx context.Context, conversation, a, b ID) (knownPair, error) {
	talks, err := s.withoutBlocked(ctx, a, []ID{b})
	if err != nil {
		return knownPair{}, err
	}
	if len(talks) == 0 {
		return knownPair{}, Errorf(CodeForbidden, "")
	}
	known := knownPair{[2]ID{a, b}, time.Now().Add(pairTTL)}
	s.directs.Add(pairKey(a, b), conversation) // BlockChanged finds the entry by the pair
	s.pairs.Add(conversation, known)
	return known, nil
}
