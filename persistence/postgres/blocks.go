package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
	"xabar/persistence/internal/cursor"
)

// Block implements chat.BlockStore.
func (s *Store) Block(ctx context.Context, user, blocked chat.ID) error {
	err := again(ctx, func() error {
		_, err := s.read.Exec(ctx, `INSERT INTO blocks (user_id, blocked_id, created_at) VALUES ($1, $2, $3)
			ON CONFLICT DO NOTHING`, user, blocked, s.now())
		return err
	})
	if hasState(err, stateForeignKey) {
		return chat.Errorf(chat.CodeNotFound, "there is no such user")
	}
	return err
}

// Unblock implements chat.BlockStore.
func (s *Store) Unblock(ctx context.Context, user, blocked chat.ID) error {
	return again(ctx, func() error {
		_, err := s.read.Exec(ctx, `DELETE FROM blocks WHERE user_id = $1 AND blocked_id = $2`, user, blocked)
		return err
	})
}

// Blocks implements chat.BlockStore.
func (s *Store) Blocks(ctx context.Context, user chat.ID, page chat.PageRequest) (chat.Page[chat.User], error) {
	var result chat.Page[chat.User]
	after, _, err := cursor.Decode(cursor.Blocks, page.Cursor)
	if err != nil {
		return result, err
	}
	all, err := collect(ctx, s, scanUser, `SELECT `+userColumns+`
		FROM (SELECT blocked_id FROM blocks WHERE user_id = $1 AND blocked_id > $2 ORDER BY blocked_id LIMIT $3) b
		CROSS JOIN LATERAL (SELECT * FROM users x WHERE x.id = b.blocked_id LIMIT 1) u
		ORDER BY b.blocked_id`, user, after.ID, page.Size()+1)
	if err != nil {
		return result, err
	}
	var more bool
	if result.Items, more = trim(all, page.Size()); more {
		result.NextCursor = cursor.Encode(cursor.Blocks, cursor.Cursor{ID: result.Items[len(result.Items)-1].ID})
	}
	return result, nil
}

// BlockedAmong implements chat.BlockStore.
func (s *Store) BlockedAmong(ctx context.Context, user chat.ID, others []chat.ID) ([]chat.ID, error) {
	return collect(ctx, s, func(rows pgx.Rows) (id chat.ID, err error) { return id, rows.Scan(&id) }, `
		SELECT o.id FROM unnest($2::uuid[]) AS o (id)
		WHERE coalesce(
		  (SELECT 1 FROM blocks b WHERE b.user_id = $1 AND b.blocked_id = o.id LIMIT 1),
		  (SELECT 1 FROM blocks b WHERE b.user_id = o.id AND b.blocked_id = $1 LIMIT 1)) IS NOT NULL`, user, others)
}
