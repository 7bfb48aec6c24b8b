package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
	"xabar/persistence/internal/cursor"
)

// UpdateUser implements chat.AdminStore.
func (s *Store) UpdateUser(ctx context.Context, user chat.ID, change chat.UserChange) (chat.User, error) {
	var u chat.User
	err := s.queryRow(ctx, `
		UPDATE users u SET name = coalesce($2::text, u.name),
		  avatar_url = CASE WHEN $3::text IS NULL THEN u.avatar_url ELSE nullif($3, '') END
		WHERE u.id = $1 RETURNING `+userColumns, []any{user, change.Name, change.AvatarURL}, userFields(&u)...)
	return u, err
}

func scanMessage(rows pgx.Rows) (m chat.Message, err error) {
	return m, rows.Scan(messageFields(&m)...)
}

// MessagesOf implements chat.AdminStore: first the messages with an id of the
// client's, by that, then the archived ones.
func (s *Store) MessagesOf(ctx context.Context, user chat.ID, page chat.PageRequest) (chat.Page[chat.Message], error) {
	result := chat.Page[chat.Message]{Items: []chat.Message{}}
	after, more, err := cursor.Decode(cursor.Sent, page.Cursor)
	if err != nil {
		return result, err
	}
	size := page.Size()
	if !more || after.Name != "" {
		all, err := collect(ctx, s, scanMessage, `SELECT `+messageColumns+` FROM messages x
			WHERE x.sender_id = $1 AND x.client_msg_id > $2 ORDER BY x.client_msg_id LIMIT $3`, user, after.Name, size+1)
		if err != nil {
			return result, err
		}
		if result.Items, more = trim(all, size); more {
			result.NextCursor = cursor.Encode(cursor.Sent, cursor.Cursor{Name: result.Items[size-1].ClientMsgID})
			return result, nil
		}
		after = cursor.Cursor{}
	}
	room := size - len(result.Items)
	archived, err := collect(ctx, s, scanMessage, `SELECT `+messageColumns+` FROM messages x
		WHERE x.sender_id = $1 AND x.client_msg_id IS NULL AND (x.conversation_id, x.seq) > ($2::uuid, $3::int8)
		ORDER BY x.conversation_id, x.seq LIMIT $4`, user, after.ID, after.At, room+1)
	if err != nil {
		return result, err
	}
	if archived, more = trim(archived, room); more {
		if room > 0 {
			last := archived[room-1]
			after = cursor.Cursor{ID: last.ConversationID, At: last.Seq}
		}
		result.NextCursor = cursor.Encode(cursor.Sent, after)
	}
	result.Items = append(result.Items, archived...)
	return result, nil
}

// Revoke implements chat.AdminStore. Its time is later than that of the user's
// revocation before, whatever the clocks of the nodes say.
func (s *Store) Revoke(ctx context.Context, user chat.ID, tokens bool, subject []byte) (chat.Revocation, error) {
	var r revocationRow
	err := s.queryRow(ctx, `
		INSERT INTO revocations AS r (user_id, at, tokens_before, subject_hash)
		SELECT id, $2::timestamptz, CASE WHEN $3 THEN $2::timestamptz END, $4::bytea FROM users WHERE id = $1
		ON CONFLICT (user_id) DO UPDATE SET at = greatest($2, r.at + interval '1 millisecond'),
		  tokens_before = CASE WHEN $3 THEN greatest($2, r.at + interval '1 millisecond') ELSE r.tokens_before END,
		  subject_hash = coalesce(excluded.subject_hash, r.subject_hash)
		RETURNING user_id, at, tokens_before, subject_hash`, []any{user, s.now(), tokens, subject}, r.fields()...)
	return r.revocation(), err
}

type revocationRow struct {
	user   chat.ID
	at     chat.Time
	before *chat.Time
	hash   []byte
}

func (r *revocationRow) fields() []any {
	return []any{&r.user, scanTime{&r.at}, scanOptional{&r.before}, &r.hash}
}

func (r *revocationRow) revocation() chat.Revocation {
	revocation := chat.Revocation{UserID: r.user, At: r.at.Time, Subject: r.hash}
	if r.before != nil {
		revocation.TokensBefore = r.before.Time
	}
	return revocation
}

// Revocations implements chat.AdminStore.
func (s *Store) Revocations(ctx context.Context, since time.Time) ([]chat.Revocation, error) {
	return collect(ctx, s, func(rows pgx.Rows) (chat.Revocation, error) {
		var r revocationRow
		err := rows.Scan(r.fields()...)
		return r.revocation(), err
	}, `SELECT user_id, at, tokens_before, subject_hash FROM revocations WHERE at >= $1`, since.UTC())
}

// EraseMessages implements chat.AdminStore.
func (s *Store) EraseMessages(ctx context.Context, user chat.ID, limit int) (n int, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		n = 0
		for _, which := range []string{"IS NOT NULL", "IS NULL"} {
			tag, err := tx.Exec(ctx, `
				DELETE FROM messages m
				USING (SELECT x.conversation_id, x.seq FROM messages x
				       WHERE x.sender_id = $1 AND x.client_msg_id `+which+` LIMIT $2) x
				WHERE m.conversation_id = x.conversation_id AND m.seq = x.seq`, user, limit-n)
			if err != nil {
				return err
			}
			n += int(tag.RowsAffected())
		}
		return nil
	})
	return n, err
}

// ErasePerson implements chat.AdminStore.
func (s *Store) ErasePerson(ctx context.Context, user chat.ID) ([]chat.ID, error) {
	groups, err := collect(ctx, s, func(rows pgx.Rows) (id chat.ID, err error) { return id, rows.Scan(&id) },
		`SELECT conversation_id FROM members WHERE user_id = $1 AND peer_id IS NULL ORDER BY conversation_id`, user)
	if err != nil {
		return nil, err
	}
	for _, group := range groups {
		// Somebody else may have taken it out meanwhile.
		if err := s.RemoveMember(ctx, user, group, user); err != nil && chat.CodeOf(err) != chat.CodeNotFound {
			return nil, err
		}
	}
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE users SET name = $2, external_id = NULL, avatar_url = NULL, last_seen_at = NULL WHERE id = $1`,
			user, chat.ErasedName)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return chat.Errorf(chat.CodeNotFound, "")
		}
		for _, statement := range []string{
			`DELETE FROM contacts WHERE user_id = $1`, `DELETE FROM contacts WHERE contact_id = $1`,
			`DELETE FROM blocks WHERE user_id = $1`, `DELETE FROM blocks WHERE blocked_id = $1`,
			`DELETE FROM settings WHERE user_id = $1`, `DELETE FROM notify_targets WHERE user_id = $1`,
			`DELETE FROM link_codes WHERE user_id = $1`, `DELETE FROM notification_due WHERE user_id = $1`,
		} {
			if _, err := tx.Exec(ctx, statement, user); err != nil {
				return err
			}
		}
		return nil
	})
	return groups, err
}
