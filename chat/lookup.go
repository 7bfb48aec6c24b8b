package chat

import (
	"context"
	"time"
)

// LookupStore finds conversations and messages by the names that clients of other
// vocabularies have for them.
type LookupStore interface {
	// FindDirect is the direct conversation of user and peer; it makes none. Errors:
	// not_found.
	FindDirect(ctx context.Context, user, peer ID) (ID, error)
	// MessageByNumber is the message with this Number, among those that user can see.
	// Errors: not_found.
	MessageByNumber(ctx context.Context, user ID, number int64) (Message, error)
	// DirectReceipts tells of each message with from <= seq <= upTo of a direct
	// conversation of user's when the one to whom it was sent has received and read it,
	// oldest first, at most PageLimit. Of a group, and of a conversation that is not
	// user's, it tells nothing.
	DirectReceipts(ctx context.Context, user, conversation ID, from, upTo int64) ([]DirectReceipt, error)
}

// DirectReceipt is when a message of a direct conversation was received and read;
// nil where it has not been yet.
type DirectReceipt struct {
	Seq                 int64
	DeliveredAt, ReadAt *Time
}

// NewDirectReceipt puts together what a store knows of a message: whether the
// recipient's positions have reached it, and the times of the first advances that
// did, if they were logged. Positions without a time are an archive's, from before
// there were receipts: there the time is that of the message. A read is not shown
// before its delivery, which a clock that was stepped back in between could do.
func NewDirectReceipt(seq int64, createdAt Time, delivered, read bool, deliveredAt, readAt *Time) DirectReceipt {
	r := DirectReceipt{Seq: seq}
	if delivered || read {
		r.DeliveredAt = orTime(deliveredAt, createdAt)
	}
	if read {
		if r.ReadAt = orTime(readAt, createdAt); r.ReadAt.Before(r.DeliveredAt.Time) {
			r.ReadAt = r.DeliveredAt
		}
	}
	return r
}

func orTime(t *Time, otherwise Time) *Time {
	if t == nil {
		return &otherwise
	}
	return t
}

// FindDirect is the caller's direct conversation with the user, if there is one.
// Errors: invalid_argument, not_found.
func (s *Service) FindDirect(ctx context.Context, actor Actor, ref UserRef, field string) (conversation ID, peer User, err error) {
	if peer, err = s.User(ctx, ref, field); err != nil {
		return ID{}, User{}, err
	}
	if id, ok := s.directs.Get(pairKey(actor.User.ID, peer.ID)); ok {
		return id, peer, nil
	}
	if conversation, err = s.store.FindDirect(ctx, actor.User.ID, peer.ID); err != nil {
		return ID{}, User{}, err
	}
	s.directs.Add(pairKey(actor.User.ID, peer.ID), conversation)
	return conversation, peer, nil
}

// Message is the message with this Number, if the caller can see it. Errors:
// not_found.
func (s *Service) Message(ctx context.Context, actor Actor, number int64) (Message, error) {
	return s.store.MessageByNumber(ctx, actor.User.ID, number)
}

// DirectReceipts tells when messages of a direct conversation of the caller's were
// received and read: see LookupStore.
func (s *Service) DirectReceipts(ctx context.Context, actor Actor, conversation ID, from, upTo int64) ([]DirectReceipt, error) {
	return s.store.DirectReceipts(ctx, actor.User.ID, conversation, from, upTo)
}

// Pair are the members of a direct conversation of the caller's; nil for a group.
// Errors: not_found.
func (s *Service) Pair(ctx context.Context, actor Actor, conversation ID) ([]ID, error) {
	if known, ok := s.pairs.Get(conversation); ok {
		if known.users[0] == actor.User.ID || known.users[1] == actor.User.ID {
			return known.users[:], nil
		}
		return nil, Errorf(CodeNotFound, "")
	}
	found, err := s.store.Conversation(ctx, actor.User.ID, conversation)
	if err != nil || found.Kind != Direct || found.Peer == nil {
		return nil, err
	}
	users := [2]ID{actor.User.ID, found.Peer.ID}
	// Whether one blocks the other is not known here: for that it is over at once.
	s.pairs.Add(conversation, knownPair{users, time.Time{}})
	return users[:], nil
}

// Users finds users by their ids, in the same order. Errors: not_found when one of
// them is nobody's.
func (s *Service) Users(ctx context.Context, ids []ID) ([]User, error) {
	refs := make([]UserRef, len(ids))
	for i, id := range ids {
		refs[i] = UserRef(id.String())
	}
	return s.store.ResolveUsers(ctx, refs)
}
