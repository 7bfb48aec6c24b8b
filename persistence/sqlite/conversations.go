package sqlite

import (
	"bytes"
	"context"

	"xabar/chat"
)

var conversationQuery = `SELECT ` + viewColumns + ` FROM ` + viewFrom + ` WHERE m.user_id = ?1 AND m.conversation_id = ?2`

func conversation(ctx context.Context, q queryer, user, id chat.ID) (chat.Conversation, error) {
	var v viewRow
	found, err := one(ctx, q, conversationQuery, []any{user[:], id[:]}, v.dest()...)
	if err == nil && !found {
		err = chat.Errorf(chat.CodeNotFound, "")
	}
	return v.conversation(), err
}

// Conversation is one of user's conversations.
func (s *Store) Conversation(ctx context.Context, user, id chat.ID) (chat.Conversation, error) {
	c, err := conversation(ctx, s.reader, user, id)
	return c, translate(ctx, err)
}

// findDirect also says whether one of the pair has blocked the other.
func findDirect(ctx context.Context, q queryer, a, b chat.ID) (id chat.ID, found, blocked bool, err error) {
	low, high := sorted(a, b)
	found, err = one(ctx, q, `SELECT id FROM conversations WHERE kind = 'direct' AND user_low = ? AND user_high = ?`,
		[]any{low[:], high[:]}, &id)
	if err != nil {
		return id, false, false, err
	}
	var is int
	blocked, err = one(ctx, q, `SELECT 1 FROM blocks WHERE (user_id, blocked_id) IN (VALUES (?1, ?2), (?2, ?1))`,
		[]any{a[:], b[:]}, &is)
	return id, found, blocked, err
}

func sorted(a, b chat.ID) (low, high chat.ID) {
	if bytes.Compare(a[:], b[:]) < 0 {
		return a, b
	}
	return b, a
}

type opened struct {
	conversation chat.Conversation
	created      bool
}

// OpenDirect finds or makes the direct conversation; finding writes nothing.
func (s *Store) OpenDirect(ctx context.Context, a, b chat.ID) (chat.Conversation, bool, error) {
	if a == b {
		return chat.Conversation{}, false, chat.InvalidArgument("userId", "a conversation needs somebody else")
	}
	o, done, err := openFound(ctx, s.reader, a, b)
	if err != nil || done {
		return o.conversation, false, translate(ctx, err)
	}
	o, err = write(ctx, s, func(t *tx) (opened, error) {
		if o, done, err := openFound(background, t, a, b); err != nil || done {
			return o, err
		}
		return t.makeDirect(a, b)
	})
	return o.conversation, o.created, err
}

func openFound(ctx context.Context, q queryer, a, b chat.ID) (o opened, done bool, err error) {
	id, found, blocked, err := findDirect(ctx, q, a, b)
	switch {
	case err != nil:
		return o, false, err
	case blocked:
		return o, false, chat.Errorf(chat.CodeForbidden, "")
	case !found:
		return o, false, nil
	}
	o.conversation, err = conversation(ctx, q, a, id)
	return o, true, err
}

func (t *tx) makeDirect(a, b chat.ID) (opened, error) {
	for _, user := range []chat.ID{a, b} {
		if err := t.checkUser(user); err != nil {
			return opened{}, err
		}
	}
	id := chat.NewID()
	low, high := sorted(a, b)
	err := t.run(`INSERT INTO conversations (id, kind, user_low, user_high, member_count, created_at)
		VALUES (?, 'direct', ?, ?, 2, ?)`, id[:], low[:], high[:], t.millis())
	if err != nil {
		return opened{}, err
	}
	for _, user := range []chat.ID{a, b} {
		if _, err := t.addMember(id, user, chat.RoleMember, 0); err != nil {
			return opened{}, err
		}
	}
	c, err := conversation(background, t, a, id)
	return opened{c, true}, err
}

// addMember makes user a member who sees what comes after seq; new is false when
// it is one already.
func (t *tx) addMember(conversation, user chat.ID, role chat.Role, seq int64) (isNew bool, err error) {
	n, err := t.exec(`INSERT INTO members
			(conversation_id, user_id, role, joined_seq, last_delivered_seq, last_read_seq, joined_at)
		VALUES (?1, ?2, ?3, ?4, ?4, ?4, ?5) ON CONFLICT DO NOTHING`,
		conversation[:], user[:], string(role), seq, t.millis())
	return n == 1, err
}

// CreateGroup makes a group.
func (s *Store) CreateGroup(ctx context.Context, owner chat.ID, title string, members []chat.ID) (chat.Conversation, error) {
	users := distinct(append([]chat.ID{owner}, members...))
	if len(users) < 2 || len(users) > chat.MaxGroupMembers {
		return chat.Conversation{}, chat.InvalidArgument("memberIds", "a group has 2 to %d members", chat.MaxGroupMembers)
	}
	return write(ctx, s, func(t *tx) (chat.Conversation, error) {
		id := chat.NewID()
		err := t.run(`INSERT INTO conversations (id, kind, title, member_count, created_at) VALUES (?, 'group', ?, ?, ?)`,
			id[:], title, len(users), t.millis())
		if err != nil {
			return chat.Conversation{}, err
		}
		role := chat.RoleOwner
		for _, user := range users {
			if err := t.checkUser(user); err != nil {
				return chat.Conversation{}, err
			}
			if _, err := t.addMember(id, user, role, 0); err != nil {
				return chat.Conversation{}, err
			}
			role = chat.RoleMember
		}
		return conversation(background, t, owner, id)
	})
}

// distinct keeps the first of equal ids, in order.
func distinct(ids []chat.ID) []chat.ID {
	seen := make(map[chat.ID]bool, len(ids))
	kept := ids[:0:0]
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			kept = append(kept, id)
		}
	}
	return kept
}
