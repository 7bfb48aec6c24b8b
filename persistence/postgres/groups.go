package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
)

// RenameGroup implements chat.GroupStore.
func (s *Store) RenameGroup(ctx context.Context, by, conversation chat.ID, title string) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		g, err := lockGroup(ctx, tx, by, conversation)
		if err != nil {
			return err
		}
		if g.kind != chat.Group || g.role != chat.RoleOwner && g.role != chat.RoleAdmin {
			return chat.Errorf(chat.CodeForbidden, "")
		}
		_, err = tx.Exec(ctx, `UPDATE conversations SET title = $2, version = version + 1 WHERE id = $1`, conversation, title)
		return err
	})
}

// SetRole implements chat.GroupStore.
func (s *Store) SetRole(ctx context.Context, by, conversation, user chat.ID, role chat.Role) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		g, err := lockGroup(ctx, tx, by, conversation)
		if err != nil {
			return err
		}
		if g.kind != chat.Group {
			return chat.Errorf(chat.CodeForbidden, "")
		}
		var target chat.Role
		err = tx.QueryRow(ctx, `SELECT role FROM members WHERE conversation_id = $1 AND user_id = $2`, conversation, user).Scan(&target)
		if err != nil {
			return notFoundRow(err)
		}
		if g.role != chat.RoleOwner {
			return chat.Errorf(chat.CodeForbidden, "")
		}
		if _, err := tx.Exec(ctx, `UPDATE members SET role = $3 WHERE conversation_id = $1 AND user_id = $2`, conversation, user, role); err != nil {
			return err
		}
		var owned bool
		err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM members WHERE conversation_id = $1 AND role = 'owner')`, conversation).Scan(&owned)
		if err == nil && !owned {
			err = chat.Errorf(chat.CodeForbidden, "a group needs an owner")
		}
		return err
	})
}
