package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
)

const targetColumns = `t.id, t.user_id, t.channel, t.address, t.target, t.created_at`

func scanTarget(rows pgx.Rows) (t chat.NotifyTarget, err error) {
	var text string
	err = rows.Scan(&t.ID, &t.UserID, &t.Channel, &t.Address, &text, scanTime{&t.CreatedAt})
	t.Target = json.RawMessage(text)
	return t, err
}

// AddNotifyTarget implements chat.NotifyTargetStore.
func (s *Store) AddNotifyTarget(ctx context.Context, user chat.ID, channel, address string, target json.RawMessage) (chat.NotifyTarget, error) {
	added := chat.NotifyTarget{ID: chat.NewID(), UserID: user, Channel: channel, Address: address, Target: target, CreatedAt: chat.At(s.now())}
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			INSERT INTO notify_targets (id, user_id, channel, address, target, created_at)
			SELECT $2, u.id, $3, $4, $5, $6 FROM users u WHERE u.id = $1
			ON CONFLICT (channel, address) DO UPDATE SET id = excluded.id, user_id = excluded.user_id,
			  target = excluded.target, created_at = excluded.created_at`,
			user, added.ID, channel, address, string(target), added.CreatedAt.Time)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return chat.Errorf(chat.CodeNotFound, "")
		}
		_, err = tx.Exec(ctx, `
			DELETE FROM notify_targets t USING (
			  SELECT id FROM notify_targets WHERE user_id = $1 AND channel = $2
			  ORDER BY created_at DESC, id DESC OFFSET $3) old
			WHERE t.id = old.id`, user, channel, chat.MaxNotifyTargets)
		return err
	})
	return added, err
}

// RemoveNotifyTarget implements chat.NotifyTargetStore.
func (s *Store) RemoveNotifyTarget(ctx context.Context, user chat.ID, channel, address string) error {
	return s.do(ctx, `DELETE FROM notify_targets WHERE user_id = $1 AND channel = $2 AND ($3 = '' OR address = $3)`, user, channel, address)
}

// DropNotifyTarget implements chat.NotifyTargetStore.
func (s *Store) DropNotifyTarget(ctx context.Context, target chat.ID) error {
	return s.do(ctx, `DELETE FROM notify_targets WHERE id = $1`, target)
}

// do runs a statement that may be repeated.
func (s *Store) do(ctx context.Context, sql string, args ...any) error {
	return again(ctx, func() error {
		_, err := s.read.Exec(ctx, sql, args...)
		return err
	})
}

// NotifyTargets implements chat.NotifyTargetStore.
func (s *Store) NotifyTargets(ctx context.Context, user chat.ID) ([]chat.NotifyTarget, error) {
	return collect(ctx, s, scanTarget,
		`SELECT `+targetColumns+` FROM notify_targets t WHERE t.user_id = $1 ORDER BY t.created_at, t.id`, user)
}

// AddLinkCode implements chat.NotifyTargetStore.
func (s *Store) AddLinkCode(ctx context.Context, user chat.ID, channel, code string, expires time.Time) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		// Locked, so that two requests of one user come one after the other.
		var found int
		err := tx.QueryRow(ctx, `SELECT 1 FROM users WHERE id = $1 FOR UPDATE`, user).Scan(&found)
		if err != nil {
			return notFoundRow(err)
		}
		_, err = tx.Exec(ctx, `DELETE FROM link_codes WHERE channel = $1 AND (user_id = $2 OR expires_at <= $3)`, channel, user, s.now())
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `INSERT INTO link_codes (channel, code, user_id, expires_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT DO NOTHING`, channel, code, user, expires.UTC())
		if err == nil && tag.RowsAffected() == 0 {
			err = chat.Errorf(chat.CodeConflict, "")
		}
		return err
	})
}

// TakeLinkCode implements chat.NotifyTargetStore.
func (s *Store) TakeLinkCode(ctx context.Context, channel, code string) (user chat.ID, err error) {
	err = s.queryRow(ctx, `DELETE FROM link_codes WHERE channel = $1 AND code = $2 AND expires_at > $3 RETURNING user_id`,
		[]any{channel, code, s.now()}, &user)
	return user, err
}

// Secret implements chat.NotifyTargetStore.
func (s *Store) Secret(ctx context.Context, name string, fresh []byte) (value []byte, err error) {
	if err := s.do(ctx, `INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`, name, fresh); err != nil {
		return nil, err
	}
	err = s.queryRow(ctx, `SELECT value FROM secrets WHERE name = $1`, []any{name}, &value)
	return value, err
}

// TakeLease implements chat.NotifyTargetStore.
func (s *Store) TakeLease(ctx context.Context, name string, holder chat.ID, ttl time.Duration) (bool, error) {
	var holds int
	err := s.queryRow(ctx, `
		INSERT INTO leases AS l (name, holder, expires_at) VALUES ($1, $2, $3)
		ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
		WHERE l.holder = excluded.holder OR l.expires_at <= $4
		RETURNING 1`, []any{name, holder, s.now().Add(ttl), s.now()}, &holds)
	if chat.CodeOf(err) == chat.CodeNotFound {
		return false, nil
	}
	return err == nil, err
}
