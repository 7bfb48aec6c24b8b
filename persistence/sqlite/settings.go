package sqlite

import (
	"context"
	"database/sql"
	"time"

	"xabar/chat"
)

var (
	_ chat.SettingsStore = (*Store)(nil)
	_ chat.BlockStore    = (*Store)(nil)
	_ chat.GroupStore    = (*Store)(nil)
	_ chat.AdminStore    = (*Store)(nil)
)

// change is write for changes without an answer.
func (s *Store) change(ctx context.Context, do func(*tx) error) error {
	_, err := write(ctx, s, func(t *tx) (struct{}, error) { return struct{}{}, do(t) })
	return err
}

// settingsQuery has a row for every user, with what it has set.
const settingsQuery = `
SELECT coalesce(s.notify, 1), s.quiet_from, s.quiet_until, coalesce(s.time_zone, '')
FROM users u LEFT JOIN settings s ON s.user_id = u.id
WHERE u.id = ?`

func settings(ctx context.Context, q queryer, user chat.ID) (chat.Settings, error) {
	var set chat.Settings
	var from, until sql.NullInt64
	var zone string
	found, err := one(ctx, q, settingsQuery, []any{user[:]}, &set.Notify, &from, &until, &zone)
	if err == nil && !found {
		err = chat.Errorf(chat.CodeNotFound, "")
	}
	if from.Valid {
		set.Quiet = &chat.QuietHours{From: int(from.Int64), Until: int(until.Int64), TimeZone: zone}
	}
	return set, err
}

// Settings are user's.
func (s *Store) Settings(ctx context.Context, user chat.ID) (chat.Settings, error) {
	set, err := settings(ctx, s.reader, user)
	return set, translate(ctx, err)
}

// ChangeSettings changes what is not nil.
func (s *Store) ChangeSettings(ctx context.Context, user chat.ID, change chat.SettingsChange) (chat.Settings, error) {
	return write(ctx, s, func(t *tx) (chat.Settings, error) {
		if err := t.checkUser(user); err != nil {
			return chat.Settings{}, err
		}
		if err := t.run("INSERT INTO settings (user_id) VALUES (?) ON CONFLICT DO NOTHING", user[:]); err != nil {
			return chat.Settings{}, err
		}
		if change.Notify != nil {
			if err := t.run("UPDATE settings SET notify = ? WHERE user_id = ?", *change.Notify, user[:]); err != nil {
				return chat.Settings{}, err
			}
		}
		if change.SetQuiet {
			if err := t.setQuiet(user, change.Quiet); err != nil {
				return chat.Settings{}, err
			}
		}
		return settings(background, t, user)
	})
}

func (t *tx) setQuiet(user chat.ID, quiet *chat.QuietHours) error {
	const set = "UPDATE settings SET quiet_from = ?, quiet_until = ?, time_zone = ? WHERE user_id = ?"
	if quiet == nil {
		return t.run(set, nil, nil, nil, user[:])
	}
	return t.run(set, quiet.From, quiet.Until, quiet.TimeZone, user[:])
}

// Mute sets until when user hears nothing of the conversation.
func (s *Store) Mute(ctx context.Context, user, conversation chat.ID, until *time.Time) error {
	var at any
	if until != nil {
		at = millis(*until)
	}
	return s.change(ctx, func(t *tx) error {
		n, err := t.exec("UPDATE members SET muted_until = ? WHERE conversation_id = ? AND user_id = ?", at, conversation[:], user[:])
		return changed(n, err)
	})
}

// changed is not_found when a statement found no row.
func changed(rows int64, err error) error {
	if err == nil && rows == 0 {
		return chat.Errorf(chat.CodeNotFound, "")
	}
	return err
}
