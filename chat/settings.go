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
	if err := change.SettingsChange.check(); err != nil {
		return Profile{}, err
	}
	if change.Name != nil {
		if _, err := s.updateUser(ctx, actor.User.ID, UserChange{Name: change.Name}); err != nil {
			return Profile{}, err
		}
	}
	if !change.SettingsChange.empty() {
		if _, err := s.store.ChangeSettings(ctx, actor.User.ID, change.SettingsChange); err != nil {
			return Profile{}, err
		}
	}
	return s.profile(ctx, actor.User.ID)
}

func (c *SettingsChange) check() error {
	if c.SetQuiet {
		if err := c.Quiet.Check(); err != nil {
			return err
		}
	}
	if c.Language != nil && !isLanguageTag(*c.Language) {
		return InvalidArgument("language", "language must be a tag such as uz or pt-BR")
	}
	if after := c.RemindAfter; after != nil && (*after < 0 || *after > MaxRemindAfter || *after%time.Minute != 0) {
		return InvalidArgument("remindAfterMinutes", "remindAfterMinutes must be whole minutes, at most %d", int(MaxRemindAfter.Minutes()))
	}
	if c.ChannelsOff != nil {
		if len(*c.ChannelsOff) > maxChannelsOff {
			return InvalidArgument("channelsOff", "at most %d channels", maxChannelsOff)
		}
		for _, channel := range *c.ChannelsOff {
			if !isToken(channel, maxChannelLength) {
				return InvalidArgument("channelsOff", "channelsOff must be names of channels")
			}
		}
	}
	return nil
}

const (
	maxChannelsOff   = 16
	maxChannelLength = 32
	maxLanguage      = 35 // RFC 5646, section 4.4.1
)

// isLanguageTag takes "" for no preference.
func isLanguageTag(s string) bool { return s == "" || isToken(s, maxLanguage) }

// isToken says whether s is 1 to limit ASCII letters, digits and hyphens.
func isToken(s string, limit int) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && (s[i] < '0' || s[i] > '9') && s[i] != '-' {
			return false
		}
	}
	return s != "" && len(s) <= limit
}

// Check says what is wrong with quiet hours; nil is none. Errors: invalid_argument.
func (q *QuietHours) Check() error {
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
