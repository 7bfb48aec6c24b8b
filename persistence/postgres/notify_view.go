package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
)

// fresh are the messages of others beyond a position; deleted ones are nothing new.
const fresh = `FROM messages y WHERE y.conversation_id = m.conversation_id AND y.sender_id <> m.user_id AND y.deleted_at IS NULL AND y.seq > `

// notifySQL is what chat.NotifyView needs but the targets, for the keys whose users are
// members: the user u, the member m, a direct conversation's other user p, the last
// message of others x, its sender f.
const notifySQL = `
SELECT k.ord, u.id, u.external_id, u.name, u.avatar_url, ` + settingsColumns + `,
  c.kind, coalesce(p.name, c.title), m.muted_until, c.last_seq, m.last_delivered_seq, m.last_read_seq, m.notified_seq,
  coalesce((SELECT true FROM blocks b WHERE b.user_id = u.id AND b.blocked_id = p.id LIMIT 1),
           (SELECT true FROM blocks b WHERE b.user_id = p.id AND b.blocked_id = u.id LIMIT 1), false),
  (SELECT count(*) FROM (SELECT 1 ` + fresh + `greatest(m.last_delivered_seq, m.joined_seq) LIMIT $3) y),
  (SELECT count(*) FROM (SELECT 1 ` + fresh + `greatest(m.last_read_seq, m.joined_seq) LIMIT $3) y),
  coalesce(f.name, ''), coalesce(x.text, ''), coalesce(x.created_at, c.created_at)
FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS k (usr, conv, ord)
CROSS JOIN LATERAL (SELECT * FROM members y WHERE y.conversation_id = k.conv AND y.user_id = k.usr LIMIT 1) m
CROSS JOIN LATERAL (SELECT * FROM users y WHERE y.id = k.usr LIMIT 1) u
CROSS JOIN LATERAL (SELECT * FROM conversations y WHERE y.id = k.conv LIMIT 1) c
LEFT JOIN LATERAL (SELECT * FROM settings y WHERE y.user_id = k.usr LIMIT 1) s ON true
LEFT JOIN LATERAL (SELECT * FROM users y WHERE y.id = m.peer_id LIMIT 1) p ON true
LEFT JOIN LATERAL (SELECT y.sender_id, y.text, y.created_at ` + fresh + `m.joined_seq ORDER BY y.seq DESC LIMIT 1) x ON true
LEFT JOIN LATERAL (SELECT * FROM users y WHERE y.id = x.sender_id LIMIT 1) f ON true`

// targetsSQL has no targets' secrets.
const targetsSQL = `
SELECT t.id, t.user_id, t.channel, t.address, '', t.created_at
FROM (SELECT DISTINCT usr FROM unnest($1::uuid[]) AS k (usr)) k
CROSS JOIN LATERAL (SELECT * FROM notify_targets y WHERE y.user_id = k.usr OFFSET 0) t
ORDER BY t.user_id, t.created_at, t.id`

// NotifyViews implements chat.NotifyStore.
func (s *Store) NotifyViews(ctx context.Context, keys []chat.DueKey) ([]chat.NotifyView, error) {
	views := make([]chat.NotifyView, len(keys))
	users, conversations := make([]chat.ID, len(keys)), make([]chat.ID, len(keys))
	for i, key := range keys {
		views[i].DueKey = key
		users[i], conversations[i] = key.UserID, key.ConversationID
	}
	_, err := collect(ctx, s, func(rows pgx.Rows) (struct{}, error) { return struct{}{}, scanNotifyView(rows, views) },
		notifySQL, users, conversations, chat.MaxCounted)
	if err != nil {
		return nil, err
	}
	targets, err := collect(ctx, s, scanTarget, targetsSQL, users)
	if err != nil {
		return nil, err
	}
	byUser := map[chat.ID][]chat.NotifyTarget{}
	for _, t := range targets {
		byUser[t.UserID] = append(byUser[t.UserID], t)
	}
	for i := range views {
		if v := &views[i]; v.Member {
			v.Channels = byUser[v.UserID]
		}
	}
	return views, nil
}

func scanNotifyView(rows pgx.Rows, views []chat.NotifyView) error {
	var ord int
	var v chat.NotifyView
	var set settingsRow
	into := append([]any{&ord, &v.User.ID, &v.User.ExternalID, &v.User.Name, &v.User.AvatarURL}, set.fields()...)
	err := rows.Scan(append(into, &v.Kind, &v.Title, scanOptional{&v.MutedUntil}, &v.LastSeq, &v.Delivered, &v.Read, &v.Notified,
		&v.Blocked, &v.Undelivered, &v.Unread, &v.SenderName, &v.Text, scanTime{&v.LastAt})...)
	if err != nil {
		return err
	}
	v.Member, v.Settings, v.DueKey = true, set.settings(), views[ord-1].DueKey
	views[ord-1] = v
	return nil
}
