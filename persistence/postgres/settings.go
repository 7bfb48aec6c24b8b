package postgres

import (
	"context"
	"strings"
	"time"

	"xabar/chat"
)

// settingsColumns are a user's, of a row s that may not be there.
const settingsColumns = `coalesce(s.notify, true), s.quiet_from, s.quiet_until, s.time_zone, coalesce(s.language, ''),
  coalesce(s.only_direct, false), coalesce(s.hide_text, false), coalesce(s.remind_minutes, 0), coalesce(s.channels_off, '')`

type settingsRow struct {
	set         chat.Settings
	from, until *int
	zone        *string
	remind      int
	off         string
}

func (r *settingsRow) fields() []any {
	return []any{&r.set.Notify, &r.from, &r.until, &r.zone, &r.set.Language, &r.set.OnlyDirect, &r.set.HideText, &r.remind, &r.off}
}

func (r *settingsRow) settings() chat.Settings {
	settings := r.set
	if r.from != nil && r.until != nil {
		settings.Quiet = &chat.QuietHours{From: *r.from, Until: *r.until}
		if r.zone != nil {
			settings.Quiet.TimeZone = *r.zone
		}
	}
	settings.RemindAfter = time.Duration(r.remind) * time.Minute
	if r.off != "" {
		settings.ChannelsOff = strings.Split(r.off, ",")
	}
	return settings
}

// Settings implements chat.SettingsStore.
func (s *Store) Settings(ctx context.Context, user chat.ID) (chat.Settings, error) {
	var row settingsRow
	err := s.queryRow(ctx, `SELECT `+settingsColumns+` FROM users u LEFT JOIN settings s ON s.user_id = u.id WHERE u.id = $1`,
		[]any{user}, row.fields()...)
	return row.settings(), err
}

// ChangeSettings implements chat.SettingsStore.
func (s *Store) ChangeSettings(ctx context.Context, user chat.ID, change chat.SettingsChange) (chat.Settings, error) {
	var from, until, remind *int
	var zone, off *string
	if q := change.Quiet; q != nil {
		from, until, zone = &q.From, &q.Until, &q.TimeZone
	}
	if change.RemindAfter != nil {
		minutes := int(*change.RemindAfter / time.Minute)
		remind = &minutes
	}
	if change.ChannelsOff != nil {
		names := strings.Join(*change.ChannelsOff, ",")
		off = &names
	}
	var row settingsRow
	err := s.queryRow(ctx, `
		INSERT INTO settings AS s (user_id, notify, quiet_from, quiet_until, time_zone,
		                           language, only_direct, hide_text, remind_minutes, channels_off)
		SELECT id, coalesce($2::boolean, true), $4::int4, $5::int4, $6::text,
		       coalesce($7::text, ''), coalesce($8::boolean, false), coalesce($9::boolean, false), coalesce($10::int4, 0), coalesce($11::text, '')
		FROM users WHERE id = $1
		ON CONFLICT (user_id) DO UPDATE SET
		  notify = coalesce($2, s.notify),
		  quiet_from = CASE WHEN $3 THEN $4 ELSE s.quiet_from END,
		  quiet_until = CASE WHEN $3 THEN $5 ELSE s.quiet_until END,
		  time_zone = CASE WHEN $3 THEN $6 ELSE s.time_zone END,
		  language = coalesce($7, s.language),
		  only_direct = coalesce($8, s.only_direct),
		  hide_text = coalesce($9, s.hide_text),
		  remind_minutes = coalesce($10, s.remind_minutes),
		  channels_off = coalesce($11, s.channels_off)
		RETURNING `+settingsColumns,
		[]any{user, change.Notify, change.SetQuiet, from, until, zone,
			change.Language, change.OnlyDirect, change.HideText, remind, off}, row.fields()...)
	return row.settings(), err
}

// Mute implements chat.SettingsStore.
func (s *Store) Mute(ctx context.Context, user, conversation chat.ID, until *time.Time) error {
	var at *time.Time
	if until != nil {
		whole := chat.At(*until).Time
		at = &whole
	}
	var found int
	// Whoever changes muted_until makes the row loose (000010_activity).
	return s.queryRow(ctx, `UPDATE members SET muted_until = $3, settled = false
		WHERE conversation_id = $1 AND user_id = $2 RETURNING 1`, []any{conversation, user, at}, &found)
}
