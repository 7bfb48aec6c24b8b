package sqlite

import (
	"context"

	"xabar/chat"
	"xabar/persistence/internal/cursor"
)

const membersQuery = `
SELECT ` + userColumns + `, o.role, o.last_delivered_seq, o.last_read_seq, o.joined_at
FROM members me
JOIN members o ON o.conversation_id = me.conversation_id AND (o.joined_at, o.user_id) > (?3, ?4)
JOIN users u ON u.id = o.user_id
WHERE me.conversation_id = ?1 AND me.user_id = ?2
ORDER BY o.joined_at, o.user_id
LIMIT ?5`

// Members lists a conversation's members.
func (s *Store) Members(ctx context.Context, user, conversation chat.ID, page chat.PageRequest) (chat.Page[chat.Member], error) {
	result := chat.Page[chat.Member]{Items: []chat.Member{}}
	after, ok, err := cursor.Decode(cursor.Members, page.Cursor)
	if err != nil {
		return result, err
	}
	if !ok {
		after.At = -1
	}
	size := page.Size()
	var joined int64
	err = each(ctx, s.reader, func(row scanner) error {
		if len(result.Items) == size {
			last := result.Items[size-1].User.ID
			result.NextCursor = cursor.Encode(cursor.Members, cursor.Cursor{At: joined, ID: last})
			return nil
		}
		var u userRow
		var m chat.Member
		err := row.Scan(append(u.dest(), &m.Role, &m.LastDeliveredSeq, &m.LastReadSeq, &joined)...)
		m.User = u.user()
		result.Items = append(result.Items, m)
		return err
	}, membersQuery, conversation[:], user[:], after.At, after.ID[:], size+1)
	if err == nil && len(result.Items) == 0 {
		err = s.checkMember(ctx, user, conversation)
	}
	return result, translate(ctx, err)
}

// checkMember is not_found unless user is a member.
func (s *Store) checkMember(ctx context.Context, user, conversation chat.ID) error {
	var is int
	found, err := one(ctx, s.reader, "SELECT 1 FROM members WHERE conversation_id = ? AND user_id = ?",
		[]any{conversation[:], user[:]}, &is)
	if err == nil && !found {
		err = chat.Errorf(chat.CodeNotFound, "")
	}
	return err
}

// MemberIDs are all members' ids, none for a conversation that does not exist.
func (s *Store) MemberIDs(ctx context.Context, conversation chat.ID) ([]chat.ID, error) {
	ids, err := all(ctx, s.reader, scanID, "SELECT user_id FROM members WHERE conversation_id = ?", conversation[:])
	return ids, translate(ctx, err)
}

// role is what by may do in the group. Errors: not_found, forbidden (direct).
func (t *tx) role(by, conversation chat.ID) (role chat.Role, lastSeq int64, members int, err error) {
	var kind chat.Kind
	found, err := t.one(`SELECT m.role, c.kind, c.last_seq, c.member_count
		FROM members m JOIN conversations c ON c.id = m.conversation_id
		WHERE m.conversation_id = ? AND m.user_id = ?`, []any{conversation[:], by[:]}, &role, &kind, &lastSeq, &members)
	switch {
	case err != nil:
		return role, 0, 0, err
	case !found:
		return role, 0, 0, chat.Errorf(chat.CodeNotFound, "")
	case kind != chat.Group:
		return role, 0, 0, chat.Errorf(chat.CodeForbidden, "a direct conversation's members don't change")
	}
	return role, lastSeq, members, nil
}

// AddMembers adds users to a group.
func (s *Store) AddMembers(ctx context.Context, by, conversation chat.ID, users []chat.ID) ([]chat.ID, error) {
	return write(ctx, s, func(t *tx) ([]chat.ID, error) {
		role, lastSeq, members, err := t.role(by, conversation)
		if err != nil {
			return nil, err
		}
		if role != chat.RoleOwner && role != chat.RoleAdmin {
			return nil, chat.Errorf(chat.CodeForbidden, "")
		}
		var added []chat.ID
		for _, user := range distinct(users) {
			if err := t.checkUser(user); err != nil {
				return nil, err
			}
			isNew, err := t.addMember(conversation, user, chat.RoleMember, lastSeq)
			if err != nil {
				return nil, err
			}
			if isNew {
				added = append(added, user)
			}
		}
		if members+len(added) > chat.MaxGroupMembers {
			return nil, chat.InvalidArgument("memberIds", "a group has at most %d members", chat.MaxGroupMembers)
		}
		return added, t.countMembers(conversation, len(added))
	})
}

// countMembers takes a change of membership into the conversation's count and
// version, so that sync shows it.
func (t *tx) countMembers(conversation chat.ID, change int) error {
	if change == 0 {
		return nil
	}
	return t.run("UPDATE conversations SET member_count = member_count + ?, version = version + 1 WHERE id = ?",
		change, conversation[:])
}

// RemoveMember takes user out of a group.
func (s *Store) RemoveMember(ctx context.Context, by, conversation, user chat.ID) error {
	_, err := write(ctx, s, func(t *tx) (struct{}, error) {
		return struct{}{}, t.removeMember(by, conversation, user)
	})
	return err
}

func (t *tx) removeMember(by, conversation, user chat.ID) error {
	role, _, _, err := t.role(by, conversation)
	if err != nil {
		return err
	}
	theirs, _, _, err := t.role(user, conversation)
	if err != nil {
		return err
	}
	allowed := by == user || role == chat.RoleOwner || role == chat.RoleAdmin && theirs == chat.RoleMember
	if !allowed {
		return chat.Errorf(chat.CodeForbidden, "")
	}
	if err := t.run("DELETE FROM members WHERE conversation_id = ? AND user_id = ?", conversation[:], user[:]); err != nil {
		return err
	}
	if err := t.countMembers(conversation, -1); err != nil {
		return err
	}
	if theirs != chat.RoleOwner {
		return nil
	}
	return t.succeed(conversation)
}

// succeed makes the longest admin, else the longest member, the owner of a group
// without one.
func (t *tx) succeed(conversation chat.ID) error {
	return t.run(`UPDATE members SET role = 'owner'
		WHERE conversation_id = ?1
			AND NOT EXISTS (SELECT 1 FROM members o WHERE o.conversation_id = ?1 AND o.role = 'owner')
			AND user_id = (SELECT h.user_id FROM members h WHERE h.conversation_id = ?1
				ORDER BY h.role <> 'admin', h.joined_at, h.user_id LIMIT 1)`, conversation[:])
}
