package sqlite

import (
	"context"
	"database/sql"

	"xabar/chat"
	"xabar/persistence/internal/cursor"
)

// AddContact puts contact into user's list.
func (s *Store) AddContact(ctx context.Context, user, contact chat.ID) error {
	_, err := write(ctx, s, func(t *tx) (struct{}, error) {
		for _, id := range []chat.ID{user, contact} {
			if err := t.checkUser(id); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, t.run(`INSERT INTO contacts (user_id, contact_id, created_at) VALUES (?, ?, ?)
			ON CONFLICT DO NOTHING`, user[:], contact[:], t.millis())
	})
	return err
}

// checkUser is not_found unless there is such a user.
func (t *tx) checkUser(id chat.ID) error {
	var is int
	found, err := t.one("SELECT 1 FROM users WHERE id = ?", []any{id[:]}, &is)
	if err == nil && !found {
		return chat.Errorf(chat.CodeNotFound, "")
	}
	return err
}

// RemoveContact takes contact out of user's list.
func (s *Store) RemoveContact(ctx context.Context, user, contact chat.ID) error {
	_, err := write(ctx, s, func(t *tx) (struct{}, error) {
		return struct{}{}, t.run("DELETE FROM contacts WHERE user_id = ? AND contact_id = ?", user[:], contact[:])
	})
	return err
}

// blocked is true of two users (their ids' expressions) when one has blocked the
// other.
const (
	blockedByMe   = `EXISTS (SELECT 1 FROM blocks b WHERE b.user_id = ?1 AND b.blocked_id = u.id)`
	blockedByThem = `EXISTS (SELECT 1 FROM blocks b WHERE b.user_id = u.id AND b.blocked_id = ?1)`
)

const contactsQuery = `
SELECT ` + userColumns + `, CASE WHEN ` + blockedByMe + ` OR ` + blockedByThem + ` THEN NULL ELSE u.last_seen_at END
FROM contacts k JOIN users u ON u.id = k.contact_id
WHERE k.user_id = ?1 AND (u.name, u.id) > (?2, ?3)
ORDER BY u.name, u.id
LIMIT ?4`

// Contacts lists user's contacts by name (as bytes), then id.
func (s *Store) Contacts(ctx context.Context, user chat.ID, page chat.PageRequest) (chat.Page[chat.Contact], error) {
	var result chat.Page[chat.Contact]
	after, _, err := cursor.Decode(cursor.Contacts, page.Cursor)
	if err != nil {
		return result, err
	}
	size := page.Size()
	result.Items, err = all(ctx, s.reader, func(row scanner) (chat.Contact, error) {
		var u userRow
		var seen sql.NullInt64
		err := row.Scan(append(u.dest(), &seen)...)
		return chat.Contact{User: u.user(), LastSeenAt: optionalTime(seen)}, err
	}, contactsQuery, user[:], after.Name, after.ID[:], size+1)
	if err != nil {
		return result, translate(ctx, err)
	}
	if len(result.Items) > size {
		result.Items = result.Items[:size]
		last := result.Items[size-1].User
		result.NextCursor = cursor.Encode(cursor.Contacts, cursor.Cursor{ID: last.ID, Name: last.Name})
	}
	return result, nil
}

const acquaintedQuery = `
SELECT u.id, u.last_seen_at
FROM json_each(?2) ask JOIN users u ON u.id = unhex(ask.value)
WHERE (EXISTS (SELECT 1 FROM contacts k WHERE k.user_id = ?1 AND k.contact_id = u.id)
		OR EXISTS (SELECT 1 FROM members theirs CROSS JOIN members mine
			ON mine.conversation_id = theirs.conversation_id AND mine.user_id = ?1
			WHERE theirs.user_id = u.id))
	AND NOT ` + blockedByMe + ` AND NOT ` + blockedByThem

// Acquainted returns those whose presence user may see.
func (s *Store) Acquainted(ctx context.Context, user chat.ID, others []chat.ID) ([]chat.PresenceState, error) {
	ids, err := idList(others)
	if err != nil {
		return nil, translate(ctx, err)
	}
	states, err := all(ctx, s.reader, func(row scanner) (chat.PresenceState, error) {
		var p chat.PresenceState
		var seen sql.NullInt64
		err := row.Scan(&p.UserID, &seen)
		p.LastSeenAt = optionalTime(seen)
		return p, err
	}, acquaintedQuery, user[:], ids)
	return states, translate(ctx, err)
}
