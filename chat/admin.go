package chat

import (
	"context"
	"net/url"
	"strings"
)

// SystemUserID is the user that system messages come from. No token speaks for it.
var SystemUserID = ID{6: 0x70, 8: 0x80}

// SystemUserName is its name.
const SystemUserName = "System"

// The methods below serve the operators' own programs; their callers have shown the
// server key.

// CreateUser makes the user that ref names, or gives the one that is there the name.
// Errors: invalid_argument.
func (s *Service) CreateUser(ctx context.Context, ref UserRef, change UserChange) (User, error) {
	if err := ref.Check("user"); err != nil {
		return User{}, err
	}
	if id, ok := ref.ID(); ok && id == SystemUserID {
		return User{}, InvalidArgument("user", "this id is the system's own")
	}
	name := ""
	if change.Name != nil {
		var err error
		if name, err = CheckLabel("name", *change.Name, MaxNameLength); err != nil {
			return User{}, err
		}
	}
	if err := checkAvatar(change.AvatarURL); err != nil {
		return User{}, err
	}
	user, err := s.store.EnsureUser(ctx, ref, name)
	if err != nil || change.AvatarURL == nil {
		return user, err
	}
	return s.store.UpdateUser(ctx, user.ID, UserChange{AvatarURL: change.AvatarURL})
}

// UpdateUser changes a user. Errors: invalid_argument, not_found.
func (s *Service) UpdateUser(ctx context.Context, ref UserRef, change UserChange) (User, error) {
	user, err := s.User(ctx, ref, "userId")
	if err != nil {
		return User{}, err
	}
	return s.updateUser(ctx, user.ID, change)
}

func (s *Service) updateUser(ctx context.Context, id ID, change UserChange) (User, error) {
	if change.Name != nil {
		name, err := CheckLabel("name", *change.Name, MaxNameLength)
		if err != nil {
			return User{}, err
		}
		change.Name = &name
	}
	if err := checkAvatar(change.AvatarURL); err != nil {
		return User{}, err
	}
	return s.store.UpdateUser(ctx, id, change)
}

// checkAvatar takes only what a page can show as a picture without running it.
func checkAvatar(address *string) error {
	const maxLength = 2048
	if address == nil || *address == "" {
		return nil
	}
	u, err := url.Parse(*address)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" ||
		len(*address) > maxLength || strings.ContainsRune(*address, 0) {
		return InvalidArgument("avatarUrl", "avatarUrl must be an http or https URL of at most %d bytes", maxLength)
	}
	return nil
}

// SendAsSystem sends a message from the system: to a user, in its direct
// conversation with the system, or into a group. The rest is as with Send.
func (s *Service) SendAsSystem(ctx context.Context, req SendRequest, done func(Sent, error)) {
	system, err := s.store.EnsureUser(ctx, UserRef(SystemUserID.String()), SystemUserName)
	if err != nil {
		done(Sent{}, err)
		return
	}
	s.send(ctx, Actor{User: system}, req, true, done)
}

// Disconnect closes a user's sockets on every node. Errors: invalid_argument,
// not_found.
func (s *Service) Disconnect(ctx context.Context, ref UserRef) error {
	return s.revoke(ctx, ref, false)
}

// Revoke refuses a user's tokens that were issued up to now, and closes its sockets.
// Errors: invalid_argument, not_found.
func (s *Service) Revoke(ctx context.Context, ref UserRef) error {
	return s.revoke(ctx, ref, true)
}

func (s *Service) revoke(ctx context.Context, ref UserRef, tokens bool) error {
	user, err := s.User(ctx, ref, "userId")
	if err != nil {
		return err
	}
	return s.revokeUser(ctx, user, tokens)
}

func (s *Service) revokeUser(ctx context.Context, user User, tokens bool) error {
	var subject []byte
	if user.ExternalID != nil {
		subject = SubjectHash(*user.ExternalID)
	}
	revocation, err := s.store.Revoke(ctx, user.ID, tokens, subject)
	if err != nil {
		return err
	}
	if s.revocations != nil {
		s.revocations.note(revocation)
	}
	s.publish(ctx, AccessRevoked{UserID: user.ID, Before: revocation.At})
	return nil
}

// eraseBatch is how many messages one transaction of an erasure deletes.
const eraseBatch = 1000

// Erase deletes a user's messages and person, in bounded transactions. A repeat
// goes on where an interrupted one ended; it needs the id, as the external id
// goes last. Errors: invalid_argument, not_found.
func (s *Service) Erase(ctx context.Context, ref UserRef) error {
	user, err := s.User(ctx, ref, "userId")
	if err != nil {
		return err
	}
	// Nobody may write while the messages go.
	if err := s.revokeUser(ctx, user, true); err != nil {
		return err
	}
	for {
		n, err := s.store.EraseMessages(ctx, user.ID, eraseBatch)
		if err != nil {
			return err
		}
		if n < eraseBatch {
			break
		}
	}
	groups, err := s.store.ErasePerson(ctx, user.ID)
	if err != nil {
		return err
	}
	for _, group := range groups {
		s.publish(ctx, ConversationChanged{ConversationID: group, Left: []ID{user.ID}})
	}
	return nil
}
