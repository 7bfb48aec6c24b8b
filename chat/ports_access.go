package chat

import (
	"context"
	"time"
)

// SettingsStore keeps what users want.
type SettingsStore interface {
	// Settings are user's, the defaults where nothing was set. Errors: not_found.
	Settings(ctx context.Context, user ID) (Settings, error)
	// ChangeSettings changes what is not nil, in one statement, so that two devices
	// may change different things at once. Errors: not_found.
	ChangeSettings(ctx context.Context, user ID, change SettingsChange) (Settings, error)
	// Mute sets until when user hears nothing of the conversation; nil ends it.
	// Errors: not_found.
	Mute(ctx context.Context, user, conversation ID, until *time.Time) error
}

// BlockStore keeps who wants nothing of whom. ConversationStore.OpenDirect and
// MessageStore.Send look at the same rows.
type BlockStore interface {
	// Block keeps blocked away from user; again is no error. Errors: not_found.
	Block(ctx context.Context, user, blocked ID) error
	// Unblock ends user's own block; absent is no error.
	Unblock(ctx context.Context, user, blocked ID) error
	// Blocks lists whom user blocks, by id.
	Blocks(ctx context.Context, user ID, page PageRequest) (Page[User], error)
	// BlockedAmong returns those of others who block user, or whom user blocks.
	BlockedAmong(ctx context.Context, user ID, others []ID) ([]ID, error)
}

// GroupStore changes groups beside their members.
type GroupStore interface {
	// RenameGroup gives a group a title. Errors: not_found; forbidden (by is neither
	// owner nor admin, or a direct conversation).
	RenameGroup(ctx context.Context, by, conversation ID, title string) error
	// SetRole gives a member a role. Errors: not_found (the group is not by's, or
	// user is no member); forbidden (by is no owner, a direct conversation, or user
	// is the last owner and would be none any more).
	SetRole(ctx context.Context, by, conversation, user ID, role Role) error
}

// AdminStore serves the operators' own programs. No caller is looked at.
type AdminStore interface {
	// UpdateUser changes what is not nil; an empty AvatarURL takes it away. Errors:
	// not_found.
	UpdateUser(ctx context.Context, user ID, change UserChange) (User, error)
	// MessagesOf lists the messages that user sent, in no particular order.
	MessagesOf(ctx context.Context, user ID, page PageRequest) (Page[Message], error)
	// Revoke records that user's sockets are to be closed, and if tokens is true
	// that tokens issued up to now are refused. subject is SubjectHash of the user's
	// external id, nil if it has none; it outlives ErasePerson. Errors: not_found.
	Revoke(ctx context.Context, user ID, tokens bool, subject []byte) (Revocation, error)
	// Revocations are those recorded at or after since, in no order; the zero time
	// asks for all.
	Revocations(ctx context.Context, since time.Time) ([]Revocation, error)
	// EraseMessages deletes up to limit messages that user sent and returns how
	// many; their seqs become holes.
	EraseMessages(ctx context.Context, user ID, limit int) (int, error)
	// ErasePerson replaces user's name, forgets its external id and picture, and takes
	// it out of its groups (with RemoveMember's rule for owners), contact lists, blocks
	// and settings. Direct conversations stay for the other side. It returns the
	// groups. Errors: not_found.
	ErasePerson(ctx context.Context, user ID) (groups []ID, err error)
}

// Settings are what a user wants of notifications.
type Settings struct {
	Notify      bool // false: none at all
	Quiet       *QuietHours
	Language    string        // BCP 47; "": the program's default
	OnlyDirect  bool          // none of groups
	HideText    bool          // who wrote, not what
	RemindAfter time.Duration // of what is delivered and still unread, in whole minutes; 0: no reminders
	ChannelsOff []string      // channels that are switched off
}

// MaxRemindAfter bounds Settings.RemindAfter.
const MaxRemindAfter = 7 * 24 * time.Hour

// QuietHours are wall-clock times at which a user is not disturbed, in minutes of
// the day (0 to 1439). Until may be the next day's; equal to From means none.
type QuietHours struct {
	From, Until int
	TimeZone    string // IANA
}

// SettingsChange says what is to change. Quiet is looked at if SetQuiet is true;
// nil then ends quiet hours.
type SettingsChange struct {
	Notify      *bool
	SetQuiet    bool
	Quiet       *QuietHours
	Language    *string
	OnlyDirect  *bool
	HideText    *bool
	RemindAfter *time.Duration
	ChannelsOff *[]string
}

// empty says that nothing is to change.
func (c *SettingsChange) empty() bool {
	return c.Notify == nil && !c.SetQuiet && c.Language == nil && c.OnlyDirect == nil && c.HideText == nil &&
		c.RemindAfter == nil && c.ChannelsOff == nil
}

// UserChange says what is to change.
type UserChange struct {
	Name      *string
	AvatarURL *string
}

// Revocation says that a user's sockets opened before At were to be closed, and
// that tokens issued up to TokensBefore are refused (zero: none are).
type Revocation struct {
	UserID       ID
	TokensBefore time.Time
	At           time.Time
	Subject      []byte // SubjectHash of the user's external id; nil without one
}

// Limiter is a bucket of tokens for each user, local to this node.
type Limiter interface {
	// Take takes a token, or says how long to wait for one.
	Take(user ID) (wait time.Duration, ok bool)
	// Return gives one back that was taken for something that did not happen.
	Return(user ID)
}

// ErasedName is the name of a user who was erased.
const ErasedName = "Deleted user"

// Sessions lists a user's sockets, on every node.
type Sessions interface {
	Sessions(ctx context.Context, user ID) ([]SocketSession, error)
}

// SocketSession is one connected socket.
type SocketSession struct {
	SocketID    string `json:"socketId"`
	Transport   string `json:"transport"`
	Address     string `json:"address"`
	UserAgent   string `json:"userAgent"`
	ConnectedAt Time   `json:"connectedAt"`
	ExpiresAt   *Time  `json:"expiresAt,omitempty"`
}
