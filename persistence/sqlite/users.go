package sqlite

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"xabar/chat"
)

const (
	userByID       = `SELECT ` + userColumns + ` FROM users u WHERE u.id = ?`
	userByExternal = `SELECT ` + userColumns + ` FROM users u WHERE u.external_id = ?`
)

// findUser looks a reference up.
func findUser(ctx context.Context, q queryer, ref chat.UserRef) (user chat.User, found bool, err error) {
	var u userRow
	if id, ok := ref.ID(); ok {
		found, err = one(ctx, q, userByID, []any{id[:]}, u.dest()...)
	} else {
		found, err = one(ctx, q, userByExternal, []any{string(ref)}, u.dest()...)
	}
	return u.user(), found, err
}

// EnsureUser finds or makes the user; the usual case, a known one with the same
// name, writes nothing.
func (s *Store) EnsureUser(ctx context.Context, ref chat.UserRef, name string) (chat.User, error) {
	if err := ref.Check("user"); err != nil {
		return chat.User{}, err
	}
	user, found, err := findUser(ctx, s.reader, ref)
	if err != nil || found && (name == "" || name == user.Name) {
		return user, translate(ctx, err)
	}
	return write(ctx, s, func(t *tx) (chat.User, error) { return t.ensureUser(ref, name) })
}

func (t *tx) ensureUser(ref chat.UserRef, name string) (chat.User, error) {
	user, found, err := findUser(background, t, ref)
	switch {
	case err != nil:
		return user, err
	case !found:
		return t.makeUser(ref, name)
	case name == "" || name == user.Name:
		return user, nil
	}
	user.Name = name
	return user, t.run("UPDATE users SET name = ? WHERE id = ?", name, user.ID[:])
}

func (t *tx) makeUser(ref chat.UserRef, name string) (chat.User, error) {
	if name == "" {
		name = string(ref)
	}
	user := chat.User{Name: name}
	var external any
	id, ok := ref.ID()
	if !ok {
		id = chat.NewID()
		text := string(ref)
		user.ExternalID, external = &text, text
	}
	user.ID = id
	return user, t.run("INSERT INTO users (id, external_id, name, created_at) VALUES (?, ?, ?, ?)",
		id[:], external, name, t.millis())
}

// ResolveUsers finds the users that refs name.
func (s *Store) ResolveUsers(ctx context.Context, refs []chat.UserRef) ([]chat.User, error) {
	users := make([]chat.User, 0, len(refs))
	for _, ref := range refs {
		user, found, err := findUser(ctx, s.reader, ref)
		if err != nil {
			return nil, translate(ctx, err)
		}
		if !found {
			return nil, chat.Errorf(chat.CodeNotFound, "")
		}
		users = append(users, user)
	}
	return users, nil
}

const demoPrefix = "demo:"

// AddDemoUser makes the user of a demo login and introduces it to the others.
func (s *Store) AddDemoUser(ctx context.Context, name string) (chat.User, error) {
	ref := chat.UserRef(demoPrefix + strings.ToLower(name))
	if err := ref.Check("name"); err != nil {
		return chat.User{}, err
	}
	return write(ctx, s, func(t *tx) (chat.User, error) {
		user, found, err := findUser(background, t, ref)
		if err != nil || found {
			return user, err
		}
		if user, err = t.makeUser(ref, name); err != nil {
			return user, err
		}
		// external_id >= 'demo:' and < 'demo;' is the prefix, by the index.
		err = t.run(`INSERT INTO contacts (user_id, contact_id, created_at)
			SELECT ?1, id, ?2 FROM users WHERE external_id >= 'demo:' AND external_id < 'demo;' AND id <> ?1
			UNION ALL
			SELECT id, ?1, ?2 FROM users WHERE external_id >= 'demo:' AND external_id < 'demo;' AND id <> ?1
			ON CONFLICT DO NOTHING`, user.ID[:], t.millis())
		return user, err
	})
}

// SetLastSeen stores when users were last connected.
func (s *Store) SetLastSeen(ctx context.Context, seen map[chat.ID]time.Time) error {
	_, err := write(ctx, s, func(t *tx) (struct{}, error) {
		for id, at := range seen {
			err := t.run("UPDATE users SET last_seen_at = max(coalesce(last_seen_at, 0), ?) WHERE id = ?", millis(at), id[:])
			if err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	return err
}

// idList is ids as a parameter for json_each: hexadecimal texts.
func idList(ids []chat.ID) (string, error) {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = hex.EncodeToString(id[:])
	}
	b, err := json.Marshal(texts)
	return string(b), err
}
