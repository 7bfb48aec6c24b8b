package chat

import "context"

// RenameGroup gives a group a title; all members hear of it. Errors:
// invalid_argument, not_found, forbidden.
func (s *Service) RenameGroup(ctx context.Context, actor Actor, conversation ID, title string) (Conversation, error) {
	title, err := CheckLabel("title", title, MaxTitleLength)
	if err != nil {
		return Conversation{}, err
	}
	if err := s.store.RenameGroup(ctx, actor.User.ID, conversation, title); err != nil {
		return Conversation{}, err
	}
	s.publish(ctx, ConversationChanged{ConversationID: conversation})
	return s.store.Conversation(ctx, actor.User.ID, conversation)
}

// SetRole gives a member of a group a role. Errors: invalid_argument, not_found,
// forbidden.
func (s *Service) SetRole(ctx context.Context, actor Actor, conversation ID, ref UserRef, role Role) error {
	if role != RoleOwner && role != RoleAdmin && role != RoleMember {
		return InvalidArgument("role", "role is owner, admin or member")
	}
	user, err := s.User(ctx, ref, "userId")
	if err != nil {
		return err
	}
	return s.store.SetRole(ctx, actor.User.ID, conversation, user.ID, role)
}
