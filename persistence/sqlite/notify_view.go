package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"xabar/chat"
)

// fresh are the messages of others beyond a position; deleted ones are nothing new.
const fresh = `FROM messages x WHERE x.conversation_id = c.id AND x.sender_id <> m.user_id AND x.deleted_at IS NULL AND x.seq > `

// notifyQuery is what chat.NotifyView needs but the targets: the member's row is m, its
// user u, a direct conversation's other user p, the last message of others msg, its
// sender f.
var notifyQuery = `SELECT ` + userColumns + `, ` + settingsColumns + `,
	c.kind, coalesce(p.name, c.title), m.muted_until, c.last_seq, m.last_delivered_seq, m.last_read_seq, m.notified_seq,
	EXISTS (SELECT 1 FROM blocks b WHERE (b.user_id = u.id AND b.blocked_id = p.id) OR (b.user_id = p.id AND b.blocked_id = u.id)),
	(SELECT count(*) FROM (SELECT 1 ` + fresh + `max(m.last_delivered_seq, m.joined_seq) LIMIT ?3)),
	(SELECT count(*) FROM (SELECT 1 ` + fresh + `max(m.last_read_seq, m.joined_seq) LIMIT ?3)),
	f.name, msg.text, coalesce(msg.created_at, 0)
FROM members m
JOIN users u ON u.id = m.user_id
JOIN conversations c ON c.id = m.conversation_id
LEFT JOIN settings s ON s.user_id = m.user_id
LEFT JOIN users p ON p.id = CASE m.user_id WHEN c.user_low THEN c.user_high WHEN c.user_high THEN c.user_low END
LEFT JOIN messages msg ON msg.conversation_id = c.id AND msg.seq = (SELECT x.seq ` + fresh + `m.joined_seq ORDER BY x.seq DESC LIMIT 1)
LEFT JOIN users f ON f.id = msg.sender_id
WHERE m.conversation_id = ?1 AND m.user_id = ?2`

// targetsQuery has no targets' secrets.
const targetsQuery = `SELECT t.id, t.user_id, t.channel, t.address, '', t.created_at FROM notify_targets t
WHERE t.user_id = ? ORDER BY t.created_at, t.id`

// NotifyViews looks at members' conversations, each on one state of the database.
func (s *Store) NotifyViews(ctx context.Context, keys []chat.DueKey) ([]chat.NotifyView, error) {
	views := make([]chat.NotifyView, len(keys))
	targets := map[chat.ID][]chat.NotifyTarget{}
	err := s.reader.snapshot(ctx, []string{notifyQuery, targetsQuery}, func(q queryer) error {
		for i, key := range keys {
			v := &views[i]
			v.DueKey = key
			if err := notifyView(ctx, q, v); err != nil {
				return err
			}
			if !v.Member {
				continue
			}
			known, ok := targets[key.UserID]
			if !ok {
				var err error
				if known, err = all(ctx, q, scanTarget, targetsQuery, key.UserID[:]); err != nil {
					return err
				}
				targets[key.UserID] = known
			}
			v.Channels = known
		}
		return nil
	})
	if err != nil {
		return nil, translate(ctx, fmt.Errorf("look at waiting notifications: %w", err))
	}
	return views, nil
}

func notifyView(ctx context.Context, q queryer, v *chat.NotifyView) (err error) {
	var user userRow
	var set settingsRow
	var title, sender, text sql.NullString
	var muted sql.NullInt64
	var at int64
	dest := append(append(user.dest(), set.dest()...), &v.Kind, &title, &muted, &v.LastSeq, &v.Delivered, &v.Read, &v.Notified,
		&v.Blocked, &v.Undelivered, &v.Unread, &sender, &text, &at)
	v.Member, err = one(ctx, q, notifyQuery, []any{v.ConversationID[:], v.UserID[:], chat.MaxCounted}, dest...)
	v.User, v.Settings = user.user(), set.settings()
	v.Title, v.SenderName, v.Text, v.MutedUntil = title.String, sender.String, text.String, optionalTime(muted)
	v.LastAt = chat.FromMillis(at)
	return err
}
