package sqlite

import (
	"context"
	"errors"

	"xabar/chat"
	"xabar/persistence/internal/cursor"
)

// newsQuery lists user's conversations after a key with what tells whether there
// is news.
const newsQuery = `
SELECT m.conversation_id, c.last_seq, c.version, m.joined_seq
FROM members m CROSS JOIN conversations c ON c.id = m.conversation_id
WHERE m.user_id = ?1 AND m.conversation_id > ?2
ORDER BY m.conversation_id`

// changesQuery finds, through the index of changed messages alone, those with
// ?2 < seq <= ?3 that have changed since version ?4.
const changesQuery = `SELECT ` + messageColumns + ` FROM messages msg
WHERE msg.conversation_id = ?1 AND msg.changed_at IS NOT NULL AND msg.version > ?4 AND msg.seq > ?2 AND msg.seq <= ?3
ORDER BY msg.version LIMIT ?5`

const afterQuery = `SELECT ` + messageColumns + ` FROM messages msg
WHERE msg.conversation_id = ? AND msg.seq > ? ORDER BY msg.seq LIMIT ?`

// hasNews says whether a client that holds p lacks anything; named is false when
// the client doesn't know the conversation.
func hasNews(p chat.SyncPosition, named bool, lastSeq, version int64) bool {
	return !named || lastSeq > p.Seq || p.Version > 0 && version > p.Version
}

var syncQueries = []string{newsQuery, conversationQuery, afterQuery, changesQuery}

// found is a conversation with news, and from where on.
type found struct {
	id     chat.ID
	joined int64
	held   chat.SyncPosition
}

// Sync gives what came after the positions, by conversation id, all from one
// state of the database.
func (s *Store) Sync(ctx context.Context, user chat.ID, q chat.SyncQuery) (chat.SyncPage, error) {
	page := chat.SyncPage{Conversations: []chat.SyncConversation{}}
	after, _, err := cursor.Decode(cursor.Sync, q.Cursor)
	if err != nil {
		return page, err
	}
	err = s.reader.snapshot(ctx, syncQueries, func(db queryer) error {
		news, more, err := findNews(ctx, db, user, q, after.ID)
		if err != nil {
			return err
		}
		for _, f := range news {
			c, err := syncOne(ctx, db, user, f)
			if err != nil {
				return err
			}
			page.Conversations = append(page.Conversations, c)
		}
		if more {
			page.NextCursor = cursor.Encode(cursor.Sync, cursor.Cursor{ID: news[len(news)-1].id})
		}
		return nil
	})
	return page, translate(ctx, err)
}

// findNews stops at the first conversation beyond the page.
func findNews(ctx context.Context, db queryer, user chat.ID, q chat.SyncQuery, after chat.ID) (news []found, more bool, err error) {
	rows, err := db.query(ctx, newsQuery, user[:], after[:])
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var f found
		var lastSeq, version int64
		if err := rows.Scan(&f.id, &lastSeq, &version, &f.joined); err != nil {
			return nil, false, err
		}
		held, named := q.Positions[f.id]
		if !hasNews(held, named, lastSeq, version) {
			continue
		}
		if len(news) == chat.PageLimit {
			return news, true, nil
		}
		f.held = held
		news = append(news, f)
	}
	return news, false, rows.Err()
}

func syncOne(ctx context.Context, db queryer, user chat.ID, f found) (c chat.SyncConversation, err error) {
	if c.Conversation, err = conversation(ctx, db, user, f.id); err != nil {
		return c, err
	}
	c.Messages, err = all(ctx, db, scanMessage, afterQuery, f.id[:], max(f.held.Seq, f.joined), chat.PageLimit+1)
	if err != nil {
		return c, err
	}
	if len(c.Messages) > chat.PageLimit {
		c.Messages, c.HasMore = c.Messages[:chat.PageLimit], true
	}
	c.Changes = []chat.Message{}
	if f.held.Version > 0 {
		c.Changes, err = all(ctx, db, scanMessage, changesQuery, f.id[:], f.joined, f.held.Seq, f.held.Version, chat.PageLimit)
	}
	return c, err
}
