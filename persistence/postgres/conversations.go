package postgres

import (
	"bytes"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
)

// sortedIDs gives a map's keys in order: the order of locks.
func sortedIDs[V any](m map[chat.ID]V) []chat.ID {
	ids := make([]chat.ID, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b chat.ID) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

// openSQL finds the pair's conversation or makes it, with both members. A pair
// that is being made elsewhere at the same moment is waited for and then not
// visible to this statement: the answer is empty, and the next try finds it.
const openSQL = `
WITH found AS MATERIALIZED (
  SELECT c.id FROM conversations c WHERE c.kind = 'direct' AND c.user_low = $2 AND c.user_high = $3 LIMIT 1
), made AS (
  INSERT INTO conversations (id, kind, user_low, user_high, member_count, created_at)
  SELECT $1, 'direct', $2, $3, 2, $4 WHERE NOT EXISTS (SELECT 1 FROM found)
  ON CONFLICT (user_low, user_high) WHERE kind = 'direct' DO NOTHING
  RETURNING id
), joined AS (
  INSERT INTO members (conversation_id, user_id, peer_id, role, joined_at)
  SELECT made.id, p.a, p.b, 'member', $4 FROM made CROSS JOIN (VALUES ($2::uuid, $3::uuid), ($3::uuid, $2::uuid)) AS p (a, b)
)
SELECT id, false FROM found UNION ALL SELECT id, true FROM made`

// OpenDirect implements chat.ConversationStore.
func (s *Store) OpenDirect(ctx context.Context, a, b chat.ID) (conversation chat.Conversation, created bool, err error) {
	if a == b {
		return conversation, false, chat.InvalidArgument("userId", "a conversation needs somebody else")
	}
	if err := s.mayOpen(ctx, a, b); err != nil {
		return conversation, false, err
	}
	users := pair(a, b)
	var id chat.ID
	for range attempts {
		err = again(ctx, func() error {
			return notFoundRow(s.read.QueryRow(ctx, openSQL, chat.NewID(), users[0], users[1], s.now()).Scan(&id, &created))
		})
		if chat.CodeOf(err) != chat.CodeNotFound {
			break
		}
	}
	switch {
	case hasState(err, stateForeignKey): // a is no user; b has been looked for
		return conversation, false, chat.Errorf(chat.CodeNotFound, "")
	case chat.CodeOf(err) == chat.CodeNotFound: // made and gone again, each time
		return conversation, false, chat.Errorf(chat.CodeUnavailable, "")
	case err != nil:
		return conversation, false, err
	}
	conversation, err = s.Conversation(ctx, a, id)
	return conversation, created, err
}

// mayOpen says whether a may write to b. Errors: not_found, forbidden.
func (s *Store) mayOpen(ctx context.Context, a, b chat.ID) error {
	var blocked bool
	err := s.queryRow(ctx, `
		SELECT coalesce(
		  (SELECT 1 FROM blocks WHERE user_id = $1 AND blocked_id = $2 LIMIT 1),
		  (SELECT 1 FROM blocks WHERE user_id = $2 AND blocked_id = $1 LIMIT 1)) IS NOT NULL
		FROM users WHERE id = $2`, []any{a, b}, &blocked)
	if err == nil && blocked {
		return chat.Errorf(chat.CodeForbidden, "")
	}
	return err
}

// CreateGroup implements chat.ConversationStore.
func (s *Store) CreateGroup(ctx context.Context, owner chat.ID, title string, members []chat.ID) (chat.Conversation, error) {
	all := map[chat.ID]bool{owner: true}
	for _, id := range members {
		all[id] = true
	}
	if len(all) < 2 || len(all) > chat.MaxGroupMembers {
		return chat.Conversation{}, chat.InvalidArgument("memberIds", "a group has 2 to %d members", chat.MaxGroupMembers)
	}
	id, now := chat.NewID(), s.now()
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			INSERT INTO conversations (id, kind, title, member_count, created_at) VALUES ($1, 'group', $2, $3, $4)`,
			id, title, len(all), now)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			INSERT INTO members (conversation_id, user_id, role, joined_at)
			SELECT $1, u, CASE WHEN u = $3 THEN 'owner' ELSE 'member' END, $4 FROM unnest($2::uuid[]) AS u`,
			id, sortedIDs(all), owner, now)
		return err
	})
	if hasState(err, stateForeignKey) {
		return chat.Conversation{}, chat.Errorf(chat.CodeNotFound, "there is no such user")
	}
	if err != nil {
		return chat.Conversation{}, err
	}
	return s.Conversation(ctx, owner, id)
}

// Conversation implements chat.ConversationStore.
func (s *Store) Conversation(ctx context.Context, user, conversation chat.ID) (chat.Conversation, error) {
	found, err := collect(ctx, s, func(rows pgx.Rows) (chat.Conversation, error) { return *row(rows.RawValues()).view(0), nil },
		`SELECT `+viewColumns+` FROM (SELECT $1::uuid AS user_id, $2::uuid AS conversation_id) v `+viewJoins, user, conversation)
	switch {
	case err != nil:
		return chat.Conversation{}, err
	case len(found) == 0:
		return chat.Conversation{}, chat.Errorf(chat.CodeNotFound, "")
	}
	unmuted(&found[0], s.now())
	return found[0], nil
}

// MemberIDs implements chat.ConversationStore.
func (s *Store) MemberIDs(ctx context.Context, conversation chat.ID) ([]chat.ID, error) {
	return collect(ctx, s, func(rows pgx.Rows) (id chat.ID, err error) { return id, rows.Scan(&id) }, `SELECT user_id FROM members WHERE conversation_id = $1 ORDER BY user_id`, conversation)
}
