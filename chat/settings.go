package chat

import (
	"context"
	"time"
	_ "time/tzdata" // zones are checked, and kept, also where the system has none
)

// Profile is a user and its settings.
type Profile struct {
	User     User
	Settings Settings
}

// Me is the caller's profile.
func (s *Service) Me(ctx context.Context, actor Actor) (Profile, error) {
	return s.profile(ctx, actor.User.ID)
}

// profile reads the user from the store: the token's may be older.
func (s *Service) profile(ctx context.Context, id ID) (Profile, error) {
	users, err := s.store.ResolveUsers(ctx, []UserRef{UserRef(id.String())})
	if err != nil {
		return Profile{}, err
	}
	settings, err := s.store.Settings(ctx, id)
	return Profile{users[0], settings}, err
}

// ProfileChange says what of the caller's profile is to change.
type ProfileChange struct {
	Name *string
	SettingsChange
}

// UpdateMe changes the caller's profile. Errors: invalid_argument.
func (s *Service) UpdateMe(ctx context.Context, actor Actor, change ProfileChange) (Profile, error) {
	if change.SetQuiet {
		if err := change.Quiet.check(); err != nil {
			return Profile{}, err
		}
	}
	if change.Name != nil {
		if _, err := s.updateUser(ctx, actor.User.ID, UserChange{Name: change.Name}); err != nil {
			return Profile{}, err
		}
	}
	if change.Notify != nil || change.SetQuiet {
		if _, err := s.store.ChangeSettings(ctx, actor.User.ID, change.SettingsChange); err != nil {
			return Profile{}, err
		}
	}
	return s.profile(ctx, actor.User.ID)
}

func (q *QuietHours) check() error {
	const minutes = 24 * 60
	if q == nil {
		return nil
	}
	if q.From < 0 || q.From >= minutes || q.Until < 0 || q.Until >= minutes {
		return InvalidArgument("quietHours", "quietHours are times of a day")
	}
	// "" and "Local" would be zones of this machine.
	if _, err := time.LoadLocation(q.TimeZone); err != nil || q.TimeZone == "" || q.TimeZone == "Local" {
		return InvalidArgument("timeZone", "timeZone must be an IANA zone such as Asia/Tashkent")
	}
	return nil
}

// Mute sets until when the caller hears nothing of a conversation; nil ends it. The
// caller's devices hear of it. Errors: not_found.
func (s *Service) Mute(ctx context.Context, actor Actor, conversation ID, until *time.Time) (Conversation, error) {
	if err := s.store.Mute(ctx, actor.User.ID, conversation, until); err != nil {
		return Conversation{}, err
	}
	s.publish(ctx, ConversationChanged{ConversationID: conversation, UserIDs: []ID{actor.User.ID}})
	return s.store.Conversation(ctx, actor.User.ID, conversation)
}
