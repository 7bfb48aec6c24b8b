package sqlite

import (
	"context"

	"xabar/chat"
	"xabar/persistence/internal/cursor"
)

// Block keeps blocked away from user.
func (s *Store) Block(ctx context.Context, user, blocked chat.ID) error {
	return s.change(ctx, func(t *tx) error {
		for _, id := range []chat.ID{user, blocked} {
			if err := t.checkUser(id); err != nil {
				return err
			}
		}
		return t.run("INSERT INTO blocks (user_id, blocked_id, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
			user[:], blocked[:], t.millis())
	})
}

// Unblock ends user's own block.
func (s *Store) Unblock(ctx context.Context, user, blocked chat.ID) error {
	return s.change(ctx, func(t *tx) error {
		return t.run("DELETE FROM blocks WHERE user_id = ? AND blocked_id = ?", user[:], blocked[:])
	})
}

const blocksQuery = `SELECT ` + userColumns + ` FROM blocks b JOIN users u ON u.id = b.blocked_id
WHERE b.user_id = ?1 AND b.blocked_id > ?2 ORDER BY b.blocked_id LIMIT ?3`

// Blocks lists whom user blocks, by id.
func (s *Store) Blocks(ctx context.Context, user chat.ID, page chat.PageRequest) (chat.Page[chat.User], error) {
	var result chat.Page[chat.User]
	after, _, err := cursor.Decode(cursor.Blocks, page.Cursor)
	if err != nil {
		return result, err
	}
	size := page.Size()
	result.Items, err = all(ctx, s.reader, scanUser, blocksQuery, user[:], after.ID[:], size+1)
	if err != nil {
		return result, translate(ctx, err)
	}
	if len(result.Items) > size {
		result.Items = result.Items[:size]
		result.NextCursor = cursor.Encode(cursor.Blocks, cursor.Cursor{ID: result.Items[size-1].ID})
	}
	return result, nil
}

const blockedAmongQuery = `
SELECT u.id FROM json_each(?2) ask JOIN users u ON u.id = unhex(ask.value)
WHERE ` + blockedByMe + ` OR ` + blockedByThem

// BlockedAmong returns those of others with a block between them and user.
func (s *Store) BlockedAmong(ctx context.Context, user chat.ID, others []chat.ID) ([]chat.ID, error) {
	ids, err := idList(others)
	if err != nil {
		return nil, translate(ctx, err)
	}
	blocked, err := all(ctx, s.reader, scanID, blockedAmongQuery, user[:], ids)
	return blocked, translate(ctx, err)
}
