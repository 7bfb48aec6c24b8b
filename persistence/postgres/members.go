package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
	"xabar/persistence/internal/cursor"
)

// Members implements chat.ConversationStore.
func (s *Store) Members(ctx context.Context, user, conversation chat.ID, page chat.PageRequest) (chat.Page[chat.Member], error) {
	result := chat.Page[chat.Member]{Items: []chat.Member{}}
	after, more, err := cursor.Decode(cursor.Members, page.Cursor)
	if err != nil {
		return result, err
	}
	type member struct {
		chat.Member
		joined chat.Time
	}
	// The caller's own membership is the left side, so that a stranger gets no row
	// and a member past the last page gets one.
	found := false
	all, err := collect(ctx, s, func(rows pgx.Rows) (*member, error) {
		found = true
		var m member
		var id *chat.ID
		var name, role *string
		var delivered, read *int64
		var joined *chat.Time
		if err := rows.Scan(&id, &m.User.ExternalID, &name, &m.User.AvatarURL, &role, &delivered, &read, scanOptional{&joined}); err != nil || id == nil {
			return nil, err
		}
		m.User.ID, m.User.Name, m.Role, m.joined = *id, *name, chat.Role(*role), *joined
		m.LastDeliveredSeq, m.LastReadSeq = *delivered, *read
		return &m, nil
	}, `SELECT u.id, u.external_id, u.name, u.avatar_url, m.role, m.last_delivered_seq, m.last_read_seq, m.joined_at
		FROM (SELECT 1 FROM members WHERE conversation_id = $2 AND user_id = $1 LIMIT 1) me
		LEFT JOIN LATERAL (
		  SELECT * FROM members y
		  WHERE y.conversation_id = $2 AND (y.joined_at, y.user_id) > (CASE WHEN $3 THEN $4::timestamptz ELSE '-infinity' END, $5::uuid)
		  ORDER BY y.joined_at, y.user_id LIMIT $6) m ON true
		LEFT JOIN LATERAL (SELECT * FROM users x WHERE x.id = m.user_id LIMIT 1) u ON true
		ORDER BY m.joined_at, m.user_id`, user, conversation, more, millis(after.At), after.ID, page.Size()+1)
	if err != nil {
		return result, err
	}
	if !found {
		return result, chat.Errorf(chat.CodeNotFound, "")
	}
	all, more = trim(all, page.Size())
	for _, m := range all {
		if m != nil {
			result.Items = append(result.Items, m.Member)
		}
	}
	if more {
		last := all[len(all)-1]
		result.NextCursor = cursor.Encode(cursor.Members, cursor.Cursor{At: last.joined.UnixMilli(), ID: last.User.ID})
	}
	return result, nil
}

// group is a group's row, locked.
type group struct {
	kind        chat.Kind
	memberCount int
	lastSeq     int64
	role        chat.Role // the caller's
}

// lockGroup locks the conversation against sends and other changes of its members
// and says what by may do in it. Errors: not_found.
func lockGroup(ctx context.Context, tx pgx.Tx, by, conversation chat.ID) (g group, err error) {
	err = tx.QueryRow(ctx, `SELECT kind, member_count, last_seq FROM conversations WHERE id = $1 FOR NO KEY UPDATE`,
		conversation).Scan(&g.kind, &g.memberCount, &g.lastSeq)
	if err != nil {
		return g, notFoundRow(err)
	}
	err = tx.QueryRow(ctx, `SELECT role FROM members WHERE conversation_id = $1 AND user_id = $2`, conversation, by).Scan(&g.role)
	return g, notFoundRow(err)
}

// AddMembers implements chat.ConversationStore.
func (s *Store) AddMembers(ctx context.Context, by, conversation chat.ID, users []chat.ID) (added []chat.ID, err error) {
	all := map[chat.ID]bool{}
	for _, id := range users {
		all[id] = true
	}
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		g, err := lockGroup(ctx, tx, by, conversation)
		if err != nil {
			return err
		}
		if g.kind != chat.Group || g.role != chat.RoleOwner && g.role != chat.RoleAdmin {
			return chat.Errorf(chat.CodeForbidden, "")
		}
		rows, err := tx.Query(ctx, `
			INSERT INTO members (conversation_id, user_id, role, joined_at, joined_seq, last_delivered_seq, last_read_seq)
			SELECT $1, u, 'member', $3, $4, $4, $4 FROM unnest($2::uuid[]) AS u
			ON CONFLICT DO NOTHING RETURNING user_id`, conversation, sortedIDs(all), s.now(), g.lastSeq)
		if err != nil {
			return err
		}
		if added, err = pgx.CollectRows(rows, pgx.RowTo[chat.ID]); err != nil {
			return err
		}
		if g.memberCount+len(added) > chat.MaxGroupMembers {
			return chat.InvalidArgument("userIds", "a group has at most %d members", chat.MaxGroupMembers)
		}
		if len(added) == 0 {
			return nil
		}
		// A change of the conversation itself counts its version up, so that sync shows it.
		_, err = tx.Exec(ctx, `UPDATE conversations SET member_count = member_count + $2, version = version + 1 WHERE id = $1`, conversation, len(added))
		return err
	})
	if hasState(err, stateForeignKey) {
		err = chat.Errorf(chat.CodeNotFound, "there is no such user")
	}
	if err != nil {
		return nil, err
	}
	return added, nil
}

// RemoveMember implements chat.ConversationStore.
func (s *Store) RemoveMember(ctx context.Context, by, conversation, user chat.ID) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockOf(user)); err != nil {
			return err
		}
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
		if by != user && g.role != chat.RoleOwner && (g.role != chat.RoleAdmin || target != chat.RoleMember) {
			return chat.Errorf(chat.CodeForbidden, "")
		}
		if err := dropMember(ctx, tx, conversation, user); err != nil {
			return err
		}
		if target != chat.RoleOwner {
			return nil
		}
		return passOwnership(ctx, tx, conversation)
	})
}

// dropMember removes the row and everything that is counted with it. The caller
// holds the user's advisory lock and the conversation's row.
func dropMember(ctx context.Context, tx pgx.Tx, conversation, user chat.ID) error {
	_, err := tx.Exec(ctx, `
		WITH gone AS (
		  DELETE FROM members WHERE conversation_id = $1 AND user_id = $2 RETURNING settled_unread
		), log AS (
		  DELETE FROM receipts WHERE conversation_id = $1 AND user_id = $2
		), count AS (
		  UPDATE conversations SET member_count = member_count - (SELECT count(*) FROM gone), version = version + 1 WHERE id = $1
		)
		UPDATE users SET settled_unread = settled_unread - (SELECT settled_unread FROM gone)
		WHERE id = $2 AND EXISTS (SELECT 1 FROM gone WHERE settled_unread <> 0)`, conversation, user)
	return err
}

// passOwnership gives a group without an owner the longest admin as one, else the
// longest member.
func passOwnership(ctx context.Context, tx pgx.Tx, conversation chat.ID) error {
	_, err := tx.Exec(ctx, `
		UPDATE members m SET role = 'owner'
		FROM (SELECT user_id FROM members WHERE conversation_id = $1
		      ORDER BY role <> 'admin', joined_at, user_id LIMIT 1) heir
		WHERE m.conversation_id = $1 AND m.user_id = heir.user_id
		  AND NOT EXISTS (SELECT 1 FROM members o WHERE o.conversation_id = $1 AND o.role = 'owner')`, conversation)
	return err
}
