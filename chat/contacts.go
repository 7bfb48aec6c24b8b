package chat

import (
	"context"
	"slices"
)

// AddContact puts a user into the caller's list. Errors: invalid_argument,
// not_found.
func (s *Service) AddContact(ctx context.Context, actor Actor, ref UserRef) (User, error) {
	user, err := s.User(ctx, ref, "userId")
	if err != nil {
		return User{}, err
	}
	if user.ID == actor.User.ID {
		return User{}, InvalidArgument("userId", "a contact is somebody else")
	}
	return user, s.store.AddContact(ctx, actor.User.ID, user.ID)
}

// RemoveContact takes a user out of the caller's list. Whoever is not in it, be it
// because there is no such user, is no error. Errors: invalid_argument.
func (s *Service) RemoveContact(ctx context.Context, actor Actor, ref UserRef) error {
	user, found, err := s.ifFound(ctx, ref)
	if err != nil || !found {
		return err
	}
	return s.store.RemoveContact(ctx, actor.User.ID, user.ID)
}

func (s *Service) ifFound(ctx context.Context, ref UserRef) (User, bool, error) {
	user, err := s.User(ctx, ref, "userId")
	if CodeOf(err) == CodeNotFound {
		return User{}, false, nil
	}
	return user, err == nil, err
}

// Block keeps a user and the caller apart: no direct messages, no typing, no
// presence between the two. Again is no error. Errors: invalid_argument, not_found.
func (s *Service) Block(ctx context.Context, actor Actor, ref UserRef) error {
	user, err := s.User(ctx, ref, "userId")
	if err != nil {
		return err
	}
	if user.ID == actor.User.ID {
		return InvalidArgument("userId", "nobody can block oneself")
	}
	if err := s.store.Block(ctx, actor.User.ID, user.ID); err != nil {
		return err
	}
	s.blockChanged(ctx, actor.User.ID, user.ID)
	return nil
}

// Unblock ends the caller's own block. Errors: invalid_argument.
func (s *Service) Unblock(ctx context.Context, actor Actor, ref UserRef) error {
	user, found, err := s.ifFound(ctx, ref)
	if err != nil || !found {
		return err
	}
	if err := s.store.Unblock(ctx, actor.User.ID, user.ID); err != nil {
		return err
	}
	s.blockChanged(ctx, actor.User.ID, user.ID)
	return nil
}

func (s *Service) blockChanged(ctx context.Context, a, b ID) {
	event := BlockChanged{A: a, B: b}
	s.ForgetBlock(event) // before anybody is told, whatever the broadcaster does
	s.publish(ctx, event)
}

// ForgetBlock makes this node ask the store again whether the two may type to each
// other. Who hears a BlockChanged on another node calls it.
func (s *Service) ForgetBlock(e BlockChanged) {
	if id, ok := s.directs.Get(pairKey(e.A, e.B)); ok {
		s.pairs.Remove(id)
	}
}

// withoutBlocked drops from ids those with whom user has a block, in either
// direction.
func (s *Service) withoutBlocked(ctx context.Context, user ID, ids []ID) ([]ID, error) {
	blocked, err := s.store.BlockedAmong(ctx, user, ids)
	if err != nil || len(blocked) == 0 {
		return ids, err
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id ID) bool { return slices.Contains(blocked, id) }), nil
}
