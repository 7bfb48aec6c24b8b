package chat

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Channels that this program knows. A user may have several targets in one.
const (
	ChannelWebPush  = "web-push"
	ChannelTelegram = "telegram"
	ChannelWebhook  = "webhook" // one for all users, named by the operator: its target is null
)

// Notification is what one channel tells one user. Its texts are as they were
// sent: cutting, escaping and plurals are the channel's.
type Notification struct {
	// ID is the same in every attempt, and for every channel of one notification:
	// receivers may use it to drop a repeat.
	ID       string
	User     User
	Language string // of the user, a BCP 47 tag; "" is the program's default
	// Conversations have something new, the one with the newest message first. There
	// is one, or several when they were held back together; never none.
	Conversations []NotifiedConversation
	Badge         int64 // unread over all conversations that are not muted, now
	HideText      bool  // the user wants no message's text shown
	// Tag is the same for notifications that replace each other on a device: of one
	// conversation, or of several held back together.
	Tag string
}

// NotifiedConversation is what is new in one conversation.
type NotifiedConversation struct {
	ConversationID ID
	Kind           Kind
	Title          string // a group's title; a direct conversation's is the peer's name
	SenderName     string // of the last message
	Count          int64  // messages that have not arrived, at least 1
	Preview        string // the last message's whole text; "" if it is gone
	LastSeq        int64
}

// Outcome is what became of an attempt. With the zero Outcome and no error there was
// nothing to do.
type Outcome struct {
	Sent bool // the channel has taken it
	// Gone says that this target will never work again and is to be removed: a push
	// subscription that answers 404 or 410, a Telegram chat that answers 403.
	Gone bool
	// RetryAfter is how long the channel wants to be left alone, before the same is
	// tried again; it does not count as a failed attempt.
	RetryAfter time.Duration
}

// ErrRefused marks, inside an attempt's error, one that no repeat heals: the channel
// refuses what it is given. The target stays, this notification is given up and kept
// as failed.
var ErrRefused = errors.New("refused by the channel")

// Notifier is one channel. gateway/notify has them, and the suite that they pass.
type Notifier interface {
	// Channel is the name under which targets are stored.
	Channel() string
	// Notify makes one attempt. It ends soon after ctx does, holds nothing back for
	// later, and may be called at once for many users. An error is an attempt that
	// failed and, unless it is ErrRefused, may succeed later: it is repeated with
	// growing pauses, for up to a day. It must not contain the text of messages or anything secret.
	Notify(ctx context.Context, n Notification, target json.RawMessage) (Outcome, error)
}

// NotifyTarget is where a channel reaches a user: one browser, one chat.
type NotifyTarget struct {
	ID      ID
	UserID  ID
	Channel string
	// Address names the target within its channel (a push subscription's endpoint, a
	// chat's id): whoever adds it again has it from then on.
	Address   string
	Target    json.RawMessage // what the channel's Notify is given
	CreatedAt Time
}

// MaxNotifyTargets bounds a user's targets in one channel; the oldest goes when
// another is added.
const MaxNotifyTargets = 20

// NotifyTargetStore keeps where users are reached, and what channels need to.
type NotifyTargetStore interface {
	// AddNotifyTarget stores a target. One with the same channel and address is
	// replaced, whosever it was. Errors: not_found (no such user).
	AddNotifyTarget(ctx context.Context, user ID, channel, address string, target json.RawMessage) (NotifyTarget, error)
	// RemoveNotifyTarget takes user's target away; absent is no error. An address of
	// "" takes all of the channel.
	RemoveNotifyTarget(ctx context.Context, user ID, channel, address string) error
	// DropNotifyTarget removes the target of that id, if it is still there.
	DropNotifyTarget(ctx context.Context, target ID) error
	// NotifyTargets lists user's, the oldest first.
	NotifyTargets(ctx context.Context, user ID) ([]NotifyTarget, error)
	// AddLinkCode keeps a code by which the channel finds user, once, until expires. A
	// user has one code for each channel: another replaces it. Errors: not_found;
	// conflict (somebody else has the same code).
	AddLinkCode(ctx context.Context, user ID, channel, code string, expires time.Time) error
	// TakeLinkCode uses a code up. Errors: not_found (unknown, used or expired).
	TakeLinkCode(ctx context.Context, channel, code string) (user ID, err error)
	// Secret is the secret of that name that all nodes share: fresh, if there was
	// none.
	Secret(ctx context.Context, name string, fresh []byte) ([]byte, error)
	// TakeLease makes holder the only one of its name for ttl, again if it already is;
	// false: somebody else holds it.
	TakeLease(ctx context.Context, name string, holder ID, ttl time.Duration) (bool, error)
}
