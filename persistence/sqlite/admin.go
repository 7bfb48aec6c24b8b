package sqlite

import (
	"context"
	"database/sql"
	"time"

	"xabar/chat"
	"xabar/persistence/internal/cursor"
)

// UpdateUser changes what is not nil.
func (s *Store) UpdateUser(ctx context.Context, user chat.ID, change chat.UserChange) (chat.User, error) {
	return write(ctx, s, func(t *tx) (chat.User, error) {
		n, err := t.exec(`UPDATE users SET name = coalesce(?2, name),
				avatar_url = CASE WHEN ?3 IS NULL THEN avatar_url ELSE nullif(?3, '') END
			WHERE id = ?1`, user[:], optionalArg(change.Name), optionalArg(change.AvatarURL))
		if err := changed(n, err); err != nil {
			return chat.User{}, err
		}
		var u userRow
		_, err = t.one(userByID, []any{user[:]}, u.dest()...)
		return u.user(), err
	})
}

func optionalArg(s *string) any {
	if s == nil {
		return nil
	}
	return *s
}

// The messages of one sender, first those with a client's id, by that, then the
// older ones: each part comes from an index of its own.
const (
	messagesOfQuery = `SELECT ` + messageColumns + ` FROM messages msg
WHERE msg.sender_id = ?1 AND msg.client_msg_id > ?2 ORDER BY msg.client_msg_id LIMIT ?3`
	olderOfQuery = `SELECT ` + messageColumns + ` FROM messages msg
WHERE msg.sender_id = ?1 AND msg.client_msg_id IS NULL AND (msg.conversation_id, msg.seq) > (?2, ?3)
ORDER BY msg.conversation_id, msg.seq LIMIT ?4`
)

// MessagesOf lists the messages that user sent.
func (s *Store) MessagesOf(ctx context.Context, user chat.ID, page chat.PageRequest) (chat.Page[chat.Message], error) {
	result := chat.Page[chat.Message]{Items: []chat.Message{}}
	after, _, err := cursor.Decode(cursor.Sent, page.Cursor)
	if err != nil {
		return result, err
	}
	size := page.Size()
	if after.At == 0 { // a seq only in the second part
		result.Items, err = all(ctx, s.reader, scanMessage, messagesOfQuery, user[:], after.Name, size+1)
	}
	if err == nil && len(result.Items) <= size {
		var older []chat.Message
		older, err = all(ctx, s.reader, scanMessage, olderOfQuery, user[:], after.ID[:], after.At, size+1-len(result.Items))
		result.Items = append(result.Items, older...)
	}
	if err != nil {
		return result, translate(ctx, err)
	}
	if len(result.Items) > size {
		result.Items = result.Items[:size]
		last, c := result.Items[size-1], cursor.Cursor{}
		if c.Name = last.ClientMsgID; c.Name == "" {
			c.At, c.ID = last.Seq, last.ConversationID
		}
		result.NextCursor = cursor.Encode(cursor.Sent, c)
	}
	return result, nil
}

// Revoke records that user's sockets are to be closed. Times of one user's
// revocations rise, whatever the clock does: by them other nodes know what is new.
func (s *Store) Revoke(ctx context.Context, user chat.ID, tokens bool, subject []byte) (chat.Revocation, error) {
	return write(ctx, s, func(t *tx) (chat.Revocation, error) {
		if err := t.checkUser(user); err != nil {
			return chat.Revocation{}, err
		}
		var r revocationRow
		_, err := t.one(`INSERT INTO revocations (user_id, at, tokens_before, subject_hash) VALUES (?1, ?2, CASE WHEN ?3 THEN ?2 END, ?4)
			ON CONFLICT DO UPDATE SET at = max(excluded.at, at + 1),
				tokens_before = CASE WHEN ?3 THEN max(excluded.at, at + 1) ELSE tokens_before END,
				subject_hash = coalesce(excluded.subject_hash, subject_hash)
			RETURNING user_id, tokens_before, at, subject_hash`, []any{user[:], t.millis(), tokens, subject}, r.dest()...)
		return r.revocation(), err
	})
}

type revocationRow struct {
	user   chat.ID
	tokens sql.NullInt64
	at     int64
	hash   []byte
}

func (r *revocationRow) dest() []any { return []any{&r.user, &r.tokens, &r.at, &r.hash} }

func (r *revocationRow) revocation() chat.Revocation {
	revocation := chat.Revocation{UserID: r.user, At: chat.FromMillis(r.at).Time, Subject: r.hash}
	if r.tokens.Valid {
		revocation.TokensBefore = chat.FromMillis(r.tokens.Int64).Time
	}
	return revocation
}

// Revocations are those recorded at or after since.
func (s *Store) Revocations(ctx context.Context, since time.Time) ([]chat.Revocation, error) {
	revocations, err := all(ctx, s.reader, func(row scanner) (chat.Revocation, error) {
		var r revocationRow
		err := row.Scan(r.dest()...)
		return r.revocation(), err
	}, "SELECT user_id, tokens_before, at, subject_hash FROM revocations WHERE at >= ?", millis(since))
	return revocations, translate(ctx, err)
}

// EraseMessages deletes messages of user's; what the outbox has of them goes too.
func (s *Store) EraseMessages(ctx context.Context, user chat.ID, limit int) (int, error) {
	return write(ctx, s, func(t *tx) (int, error) {
		erased := int64(0)
		for _, which := range []string{"IS NOT NULL", "IS NULL"} { // one index each
			n, err := t.exec(`DELETE FROM messages WHERE (conversation_id, seq) IN
				(SELECT m.conversation_id, m.seq FROM messages m WHERE m.sender_id = ? AND m.client_msg_id `+which+` LIMIT ?)`,
				user[:], max(int64(limit)-erased, 0))
			if err != nil {
				return 0, err
			}
			erased += n
		}
		return int(erased), nil
	})
}

// ErasePerson replaces the name and takes the user out of everything that is not a
// direct conversation.
func (s *Store) ErasePerson(ctx context.Context, user chat.ID) ([]chat.ID, error) {
	return write(ctx, s, func(t *tx) ([]chat.ID, error) {
		if err := t.checkUser(user); err != nil {
			return nil, err
		}
		groups, err := all(background, t, scanID, `SELECT c.id FROM members m JOIN conversations c ON c.id = m.conversation_id
			WHERE m.user_id = ? AND c.kind = 'group'`, user[:])
		if err != nil {
			return nil, err
		}
		for _, group := range groups {
			if err := t.removeMember(user, group, user); err != nil {
				return nil, err
			}
		}
		for _, forget := range []string{
			"DELETE FROM contacts WHERE user_id = ?1 OR contact_id = ?1",
			"DELETE FROM blocks WHERE user_id = ?1 OR blocked_id = ?1",
			"DELETE FROM settings WHERE user_id = ?1",
			"DELETE FROM notify_targets WHERE user_id = ?1",
			"DELETE FROM link_codes WHERE user_id = ?1",
			"DELETE FROM notification_due WHERE user_id = ?1",
			"UPDATE users SET name = '" + chat.ErasedName + "', external_id = NULL, avatar_url = NULL, last_seen_at = NULL WHERE id = ?1",
		} {
			if err := t.run(forget, user[:]); err != nil {
				return nil, err
			}
		}
		return groups, nil
	})
}
