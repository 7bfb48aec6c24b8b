package sqlite

import (
	"context"

	"xabar/chat"
)

// RenameGroup gives a group a title.
func (s *Store) RenameGroup(ctx context.Context, by, conversation chat.ID, title string) error {
	return s.change(ctx, func(t *tx) error {
		role, _, _, err := t.role(by, conversation)
		if err != nil {
			return err
		}
		if role != chat.RoleOwner && role != chat.RoleAdmin {
			return chat.Errorf(chat.CodeForbidden, "")
		}
		return t.run("UPDATE conversations SET title = ?, version = version + 1 WHERE id = ?", title, conversation[:])
	})
}

// SetRole gives a member a role; a group keeps an owner.
func (s *Store) SetRole(ctx context.Context, by, conversation, user chat.ID, role chat.Role) error {
	return s.change(ctx, func(t *tx) error {
		own, _, _, err := t.role(by, conversation)
		if err != nil {
			return err
		}
		if _, _, _, err := t.role(user, conversation); err != nil {
			return err
		}
		if own != chat.RoleOwner {
			return chat.Errorf(chat.CodeForbidden, "")
		}
		err = t.run("UPDATE members SET role = ? WHERE conversation_id = ? AND user_id = ?", string(role), conversation[:], user[:])
		if err != nil {
			return err
		}
		var is int
		owned, err := t.one("SELECT 1 FROM members WHERE conversation_id = ? AND role = 'owner' LIMIT 1", []any{conversation[:]}, &is)
		if err == nil && !owned { // the failure takes the change back
			err = chat.Errorf(chat.CodeForbidden, "a group keeps an owner")
		}
		return err
	})
}
