package sqlite

import (
	"context"
	"database/sql"
	"strings"
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
SELECT ` + settingsColumns + `
FROM users u LEFT JOIN settings s ON s.user_id = u.id
WHERE u.id = ?`

// settingsColumns are a user's, of the table under the name s, which may have no row.
const settingsColumns = `coalesce(s.notify, 1), s.quiet_from, s.quiet_until, coalesce(s.time_zone, ''),
	coalesce(s.language, ''), coalesce(s.only_direct, 0), coalesce(s.hide_text, 0), coalesce(s.remind_minutes, 0),
	coalesce(s.channels_off, '')`

type settingsRow struct {
	set             chat.Settings
	from, until     sql.NullInt64
	zone, off       string
	remindInMinutes int64
}

func (r *settingsRow) dest() []any {
	return []any{&r.set.Notify, &r.from, &r.until, &r.zone,
		&r.set.Language, &r.set.OnlyDirect, &r.set.HideText, &r.remindInMinutes, &r.off}
}

func (r *settingsRow) settings() chat.Settings {
	set := r.set
	if r.from.Valid {
		set.Quiet = &chat.QuietHours{From: int(r.from.Int64), Until: int(r.until.Int64), TimeZone: r.zone}
	}
	set.RemindAfter = time.Duration(r.remindInMinutes) * time.Minute
	if r.off != "" {
		set.ChannelsOff = strings.Split(r.off, ",")
	}
	return set
}

func settings(ctx context.Context, q queryer, user chat.ID) (chat.Settings, error) {
	var row settingsRow
	found, err := one(ctx, q, settingsQuery, []any{user[:]}, row.dest()...)
	if err == nil && !found {
		err = chat.Errorf(chat.CodeNotFound, "")
	}
	return row.settings(), err
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
		if err := t.changeSettings(user, change); err != nil {
			return chat.Settings{}, err
		}
		return settings(background, t, user)
	})
}

// changeSettings keeps what the change leaves nil.
func (t *tx) changeSettings(user chat.ID, change chat.SettingsChange) error {
	var notify, onlyDirect, hideText, remind, off any
	if change.Notify != nil {
		notify = *change.Notify
	}
	if change.OnlyDirect != nil {
		onlyDirect = *change.OnlyDirect
	}
	if change.HideText != nil {
		hideText = *change.HideText
	}
	if change.RemindAfter != nil {
		remind = int64(*change.RemindAfter / time.Minute)
	}
	if change.ChannelsOff != nil {
		off = strings.Join(*change.ChannelsOff, ",")
	}
	err := t.run(`UPDATE settings SET notify = coalesce(?, notify), language = coalesce(?, language),
			only_direct = coalesce(?, only_direct), hide_text = coalesce(?, hide_text),
			remind_minutes = coalesce(?, remind_minutes), channels_off = coalesce(?, channels_off)
		WHERE user_id = ?`, notify, optionalArg(change.Language), onlyDirect, hideText, remind, off, user[:])
	if err != nil || !change.SetQuiet {
		return err
	}
	return t.setQuiet(user, change.Quiet)
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
