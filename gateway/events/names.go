package events

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"xabar/chat"
	"xabar/gateway/dialect"
)

const (
	maxNames = 1 << 14 // users whose names are remembered
	// namesFresh is for how long: an external id is for good, the name that people see
	// may change.
	namesFresh = time.Minute
)

// nameTable remembers what dialects call users.
type nameTable struct {
	hub   *Hub
	known *lru.Cache[chat.ID, knownName]
}

type knownName struct {
	user *dialect.User
	at   time.Time
}

func newNameTable(h *Hub) *nameTable {
	known, err := lru.New[chat.ID, knownName](maxNames)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &nameTable{h, known}
}

// find gives every user. One that is nobody's any more has its id.
func (t *nameTable) find(ctx context.Context, ids ...chat.ID) (map[chat.ID]*dialect.User, error) {
	found := make(map[chat.ID]*dialect.User, len(ids))
	var missing []chat.ID
	for _, id := range ids {
		if found[id] != nil {
			continue
		}
		if known, ok := t.known.Get(id); ok && time.Since(known.at) < namesFresh {
			found[id] = known.user
			continue
		}
		found[id] = &dialect.User{User: chat.User{ID: id}}
		missing = append(missing, id)
	}
	if len(missing) == 0 {
		return found, nil
	}
	users, err := t.ask(ctx, missing)
	for _, user := range users {
		found[user.ID] = t.add(user)
	}
	return found, err
}

func (t *nameTable) add(user chat.User) *dialect.User {
	named := &dialect.User{User: user}
	t.known.Add(user.ID, knownName{named, time.Now()})
	return named
}

// ask leaves out who does not exist.
func (t *nameTable) ask(ctx context.Context, ids []chat.ID) ([]chat.User, error) {
	users, err := t.hub.service.Users(ctx, ids)
	if chat.CodeOf(err) != chat.CodeNotFound {
		return users, err
	}
	users = nil
	for _, id := range ids {
		one, err := t.hub.service.Users(ctx, []chat.ID{id})
		switch {
		case err == nil:
			users = append(users, one...)
		case chat.CodeOf(err) != chat.CodeNotFound:
			return nil, err
		}
	}
	return users, nil
}
