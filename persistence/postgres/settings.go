package postgres

import (
	"context"
	"time"

	"xabar/chat"
)

type settingsRow struct {
	notify      bool
	from, until *int
	zone        *string
}

func (r *settingsRow) fields() []any { return []any{&r.notify, &r.from, &r.until, &r.zone} }

func (r *settingsRow) settings() chat.Settings {
	settings := chat.Settings{Notify: r.notify}
	if r.from != nil && r.until != nil {
		settings.Quiet = &chat.QuietHours{From: *r.from, Until: *r.until}
		if r.zone != nil {
			settings.Quiet.TimeZone = *r.zone
		}
	}
	return settings
}

// Settings implements chat.SettingsStore.
func (s *Store) Settings(ctx context.Context, user chat.ID) (chat.Settings, error) {
	var row settingsRow
	err := s.queryRow(ctx, `SELECT coalesce(s.notify, true), s.quiet_from, s.quiet_until, s.time_zone
		FROM users u LEFT JOIN settings s ON s.user_id = u.id WHERE u.id = $1`, []any{user}, row.fields()...)
	return row.settings(), err
}

// ChangeSettings implements chat.SettingsStore.
func (s *Store) ChangeSettings(ctx context.Context, user chat.ID, change chat.SettingsChange) (chat.Settings, error) {
	var from, until *int
	var zone *string
	if q := change.Quiet; q != nil {
		from, until, zone = &q.From, &q.Until, &q.TimeZone
	}
	var row settingsRow
	err := s.queryRow(ctx, `
		INSERT INTO settings AS s (user_id, notify, quiet_from, quiet_until, time_zone)
		SELECT id, coalesce($2::boolean, true), $4::int4, $5::int4, $6::text FROM users WHERE id = $1
		ON CONFLICT (user_id) DO UPDATE SET
		  notify = coalesce($2, s.notify),
		  quiet_from = CASE WHEN $3 THEN $4 ELSE s.quiet_from END,
		  quiet_until = CASE WHEN $3 THEN $5 ELSE s.quiet_until END,
		  time_zone = CASE WHEN $3 THEN $6 ELSE s.time_zone END
		RETURNING notify, quiet_from, quiet_until, time_zone`,
		[]any{user, change.Notify, change.SetQuiet, from, until, zone}, row.fields()...)
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
