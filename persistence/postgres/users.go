package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
	"xabar/persistence/internal/cursor"
)

const userColumns = `u.id, u.external_id, u.name, u.avatar_url`

func userFields(u *chat.User) []any { return []any{&u.ID, &u.ExternalID, &u.Name, &u.AvatarURL} }

func scanUser(rows pgx.Rows) (u chat.User, err error) {
	return u, rows.Scan(userFields(&u)...)
}

// EnsureUser implements chat.UserStore. A user who stands and keeps the name costs
// one look-up; only news are written.
func (s *Store) EnsureUser(ctx context.Context, ref chat.UserRef, name string) (chat.User, error) {
	if err := ref.Check("user"); err != nil {
		return chat.User{}, err
	}
	found, err := s.findUsers(ctx, []chat.UserRef{ref})
	if err != nil {
		return chat.User{}, err
	}
	if u, ok := found[ref]; ok && (name == "" || u.Name == name) {
		return u, nil
	}
	id, byID := ref.ID()
	var external *string
	if !byID {
		id, external = chat.NewID(), new(string)
		*external = string(ref)
	}
	first := name
	if first == "" {
		first = string(ref)
	}
	// $3 is the name of a new user, $4 that of one who stands ("": as it is).
	target := "(id)"
	if !byID {
		target = "(external_id)"
	}
	var u chat.User
	err = s.queryRow(ctx, `
		INSERT INTO users AS u (id, external_id, name, created_at) VALUES ($1, $2, $3, $5)
		ON CONFLICT `+target+` DO UPDATE SET name = coalesce(nullif($4, ''), u.name)
		RETURNING `+userColumns, []any{id, external, first, name, s.now()}, userFields(&u)...)
	return u, err
}

// ResolveUsers implements chat.UserStore.
func (s *Store) ResolveUsers(ctx context.Context, refs []chat.UserRef) ([]chat.User, error) {
	found, err := s.findUsers(ctx, refs)
	if err != nil {
		return nil, err
	}
	users := make([]chat.User, len(refs))
	for i, ref := range refs {
		u, ok := found[ref]
		if !ok {
			return nil, chat.Errorf(chat.CodeNotFound, "there is no such user")
		}
		users[i] = u
	}
	return users, nil
}

func (s *Store) findUsers(ctx context.Context, refs []chat.UserRef) (map[chat.UserRef]chat.User, error) {
	ids, externals := make([]*chat.ID, len(refs)), make([]*string, len(refs))
	for i, ref := range refs {
		if id, ok := ref.ID(); ok {
			ids[i] = &id
		} else {
			text := string(ref)
			externals[i] = &text
		}
	}
	type hit struct {
		ord  int
		user chat.User
	}
	hits, err := collect(ctx, s, func(rows pgx.Rows) (h hit, err error) {
		return h, rows.Scan(append([]any{&h.ord}, userFields(&h.user)...)...)
	}, `SELECT i.ord, `+userColumns+`
		FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS i (id, external, ord)
		CROSS JOIN LATERAL (
		  (SELECT * FROM users x WHERE x.id = i.id)
		  UNION ALL
		  (SELECT * FROM users x WHERE x.external_id = i.external)
		  LIMIT 1) u`, ids, externals)
	if err != nil {
		return nil, err
	}
	found := make(map[chat.UserRef]chat.User, len(hits))
	for _, h := range hits {
		found[refs[h.ord-1]] = h.user
	}
	return found, nil
}

// AddDemoUser implements chat.UserStore.
func (s *Store) AddDemoUser(ctx context.Context, name string) (chat.User, error) {
	u, err := s.EnsureUser(ctx, chat.UserRef("demo:"+strings.ToLower(name)), name)
	if err != nil {
		return chat.User{}, err
	}
	// One at a time: two new ones at once would not see each other.
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, demoLock); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			INSERT INTO contacts (user_id, contact_id, created_at)
			SELECT p.a, p.b, $2 FROM users o CROSS JOIN LATERAL (VALUES ($1::uuid, o.id), (o.id, $1::uuid)) AS p (a, b)
			WHERE o.external_id >= 'demo:' AND o.external_id < 'demo;' AND o.id <> $1::uuid
			ON CONFLICT DO NOTHING`, u.ID, s.now())
		return err
	})
	return u, err
}

// demoLock is the advisory lock of AddDemoUser: "xabardem".
const demoLock int64 = 0x786162617264656d

// AddContact implements chat.UserStore.
func (s *Store) AddContact(ctx context.Context, user, contact chat.ID) error {
	err := again(ctx, func() error {
		_, err := s.read.Exec(ctx, `
			INSERT INTO contacts (user_id, contact_id, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
			user, contact, s.now())
		return err
	})
	if hasState(err, stateForeignKey) {
		return chat.Errorf(chat.CodeNotFound, "there is no such user")
	}
	return err
}

// RemoveContact implements chat.UserStore.
func (s *Store) RemoveContact(ctx context.Context, user, contact chat.ID) error {
	return again(ctx, func() error {
		_, err := s.read.Exec(ctx, `DELETE FROM contacts WHERE user_id = $1 AND contact_id = $2`, user, contact)
		return err
	})
}

// Contacts implements chat.UserStore. A user's list is sorted as a whole for each
// page: names change, and an index by name would have to follow.
func (s *Store) Contacts(ctx context.Context, user chat.ID, page chat.PageRequest) (chat.Page[chat.Contact], error) {
	after, more, err := cursor.Decode(cursor.Contacts, page.Cursor)
	if err != nil {
		return chat.Page[chat.Contact]{}, err
	}
	all, err := collect(ctx, s, func(rows pgx.Rows) (c chat.Contact, err error) {
		return c, rows.Scan(append(userFields(&c.User), scanOptional{&c.LastSeenAt})...)
	}, `SELECT `+userColumns+`, u.last_seen_at
		FROM contacts c JOIN users u ON u.id = c.contact_id
		WHERE c.user_id = $1 AND (NOT $2 OR (u.name COLLATE "C", u.id) > ($3, $4))
		ORDER BY u.name COLLATE "C", u.id LIMIT $5`, user, more, after.Name, after.ID, page.Size()+1)
	if err != nil {
		return chat.Page[chat.Contact]{}, err
	}
	var result chat.Page[chat.Contact]
	result.Items, more = trim(all, page.Size())
	if more {
		last := result.Items[len(result.Items)-1].User
		result.NextCursor = cursor.Encode(cursor.Contacts, cursor.Cursor{ID: last.ID, Name: last.Name})
	}
	return result, nil
}

// Acquainted implements chat.UserStore.
func (s *Store) Acquainted(ctx context.Context, user chat.ID, others []chat.ID) ([]chat.PresenceState, error) {
	return collect(ctx, s, func(rows pgx.Rows) (p chat.PresenceState, err error) {
		return p, rows.Scan(&p.UserID, scanOptional{&p.LastSeenAt})
	}, `SELECT u.id, u.last_seen_at
		FROM unnest($2::uuid[]) AS o (id)
		CROSS JOIN LATERAL (SELECT * FROM users x WHERE x.id = o.id LIMIT 1) u
		WHERE coalesce(
		    (SELECT 1 FROM blocks b WHERE b.user_id = $1 AND b.blocked_id = o.id LIMIT 1),
		    (SELECT 1 FROM blocks b WHERE b.user_id = o.id AND b.blocked_id = $1 LIMIT 1)) IS NULL
		  AND coalesce(
		    (SELECT 1 FROM contacts c WHERE c.user_id = $1 AND c.contact_id = o.id LIMIT 1),
		    (SELECT 1 FROM conversations c WHERE c.kind = 'direct' AND c.user_low = least($1, o.id) AND c.user_high = greatest($1, o.id) LIMIT 1),
		    (SELECT 1 FROM members a CROSS JOIN LATERAL (
		       SELECT 1 FROM members b WHERE b.conversation_id = a.conversation_id AND b.user_id = o.id LIMIT 1) b
		     WHERE a.user_id = $1 AND a.peer_id IS NULL LIMIT 1)) IS NOT NULL`, user, others)
}

// SetLastSeen implements chat.UserStore.
func (s *Store) SetLastSeen(ctx context.Context, seen map[chat.ID]time.Time) error {
	ids, times := make([]chat.ID, 0, len(seen)), make([]time.Time, 0, len(seen))
	for _, id := range sortedIDs(seen) {
		ids, times = append(ids, id), append(times, chat.At(seen[id]).Time)
	}
	return again(ctx, func() error {
		_, err := s.read.Exec(ctx, `
			UPDATE users u SET last_seen_at = i.at
			FROM (SELECT * FROM unnest($1::uuid[], $2::timestamptz[]) AS i (id, at) OFFSET 0) i
			WHERE u.id >= i.id AND u.id <= i.id AND (u.last_seen_at IS NULL OR u.last_seen_at < i.at)`, ids, times)
		return err
	})
}
