package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"xabar/chat"
)

const targetColumns = "t.id, t.user_id, t.channel, t.address, t.target, t.created_at"

func scanTarget(row scanner) (t chat.NotifyTarget, err error) {
	var text string
	var created int64
	err = row.Scan(&t.ID, &t.UserID, &t.Channel, &t.Address, &text, &created)
	t.Target, t.CreatedAt = json.RawMessage(text), chat.FromMillis(created)
	return t, err
}

// AddNotifyTarget stores a target; the user's oldest of the channel make room.
func (s *Store) AddNotifyTarget(ctx context.Context, user chat.ID, channel, address string, target json.RawMessage) (chat.NotifyTarget, error) {
	return write(ctx, s, func(t *tx) (chat.NotifyTarget, error) {
		added := chat.NotifyTarget{ID: chat.NewID(), UserID: user, Channel: channel, Address: address, Target: target, CreatedAt: t.now}
		if err := t.checkUser(user); err != nil {
			return added, err
		}
		for _, change := range []struct {
			query string
			args  []any
		}{
			{"DELETE FROM notify_targets WHERE channel = ? AND address = ?", []any{channel, address}},
			{"INSERT INTO notify_targets (id, user_id, channel, address, target, created_at) VALUES (?, ?, ?, ?, ?, ?)",
				[]any{added.ID[:], user[:], channel, address, string(target), t.millis()}},
			{`DELETE FROM notify_targets WHERE id IN (SELECT id FROM notify_targets WHERE user_id = ? AND channel = ?
				ORDER BY created_at DESC, id DESC LIMIT -1 OFFSET ?)`, []any{user[:], channel, chat.MaxNotifyTargets}},
		} {
			if err := t.run(change.query, change.args...); err != nil {
				return added, err
			}
		}
		return added, nil
	})
}

// RemoveNotifyTarget takes user's target, or all of a channel, away.
func (s *Store) RemoveNotifyTarget(ctx context.Context, user chat.ID, channel, address string) error {
	return s.change(ctx, func(t *tx) error {
		return t.run("DELETE FROM notify_targets WHERE user_id = ?1 AND channel = ?2 AND (?3 = '' OR address = ?3)", user[:], channel, address)
	})
}

// DropNotifyTarget removes the target of that id.
func (s *Store) DropNotifyTarget(ctx context.Context, target chat.ID) error {
	return s.change(ctx, func(t *tx) error { return t.run("DELETE FROM notify_targets WHERE id = ?", target[:]) })
}

// NotifyTargets lists user's, the oldest first.
func (s *Store) NotifyTargets(ctx context.Context, user chat.ID) ([]chat.NotifyTarget, error) {
	targets, err := all(ctx, s.reader, scanTarget,
		"SELECT "+targetColumns+" FROM notify_targets t WHERE t.user_id = ? ORDER BY t.created_at, t.id", user[:])
	return targets, translate(ctx, err)
}

// AddLinkCode keeps a code for user instead of the one before. Codes that have expired
// are in nobody's way.
func (s *Store) AddLinkCode(ctx context.Context, user chat.ID, channel, code string, expires time.Time) error {
	return s.change(ctx, func(t *tx) error {
		if err := t.checkUser(user); err != nil {
			return err
		}
		if err := t.run("DELETE FROM link_codes WHERE channel = ? AND (user_id = ? OR expires_at <= ?)", channel, user[:], t.millis()); err != nil {
			return err
		}
		n, err := t.exec("INSERT INTO link_codes (channel, code, user_id, expires_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
			channel, code, user[:], millis(expires))
		if err == nil && n == 0 {
			err = chat.Errorf(chat.CodeConflict, "")
		}
		return err
	})
}

// TakeLinkCode uses a code up.
func (s *Store) TakeLinkCode(ctx context.Context, channel, code string) (chat.ID, error) {
	return write(ctx, s, func(t *tx) (user chat.ID, err error) {
		found, err := t.one("DELETE FROM link_codes WHERE channel = ? AND code = ? AND expires_at > ? RETURNING user_id",
			[]any{channel, code, t.millis()}, &user)
		if err == nil && !found {
			err = chat.Errorf(chat.CodeNotFound, "")
		}
		return user, err
	})
}

// Secret is the secret of that name.
func (s *Store) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	return write(ctx, s, func(t *tx) (value []byte, err error) {
		if err := t.run("INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", name, fresh); err != nil {
			return nil, err
		}
		_, err = t.one("SELECT value FROM secrets WHERE name = ?", []any{name}, &value)
		return value, err
	})
}

// TakeLease makes holder the only one of its name.
func (s *Store) TakeLease(ctx context.Context, name string, holder chat.ID, ttl time.Duration) (bool, error) {
	return write(ctx, s, func(t *tx) (bool, error) {
		n, err := t.exec(`INSERT INTO leases (name, holder, expires_at) VALUES (?1, ?2, ?3)
			ON CONFLICT DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
			WHERE holder = excluded.holder OR expires_at <= ?4`, name, holder[:], t.now.Add(ttl).UnixMilli(), t.millis())
		return n > 0, err
	})
}
