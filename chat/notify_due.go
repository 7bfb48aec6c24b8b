package chat

import (
	"context"
	"time"
)

// DueReason is why a member's conversation is looked at again.
type DueReason uint8

// The reasons.
const (
	NotDelivered DueReason = iota + 1 // no device of the member has acknowledged
	StillUnread                       // the member wants to be reminded
)

// Due is a look to be taken at a member's conversation, at a time. There is at most one
// for each member, conversation and reason: the first stands.
type Due struct {
	UserID         ID
	ConversationID ID
	Reason         DueReason
	Seq            int64 // of the message that caused it
	At             time.Time
}

// ClaimedDue is a Due whose time has come, leased to whoever claimed it.
type ClaimedDue struct {
	Due
	ID    ID   // of this wait: the next one of the same member has another
	Looks int  // how often it was looked at and put off
	Held  bool // quiet hours kept it back
}

// DueDone is what becomes of a claimed Due.
type DueDone struct {
	ClaimedDue
	// Again puts it off until then, with this Seq; zero: it is over.
	Again time.Time
	Held  bool // with Again: quiet hours keep it back
	// UpTo is, without Again, up to where it is decided whether the member is
	// notified. If the member lacks a later message, which so far had been covered by
	// this wait, a new wait begins and ends at Next.
	UpTo int64
	Next time.Time
}

// DueKey names a member of a conversation.
type DueKey struct{ UserID, ConversationID ID }

// NotifyView is what decides whether a member is notified of a conversation, and what
// is said, as of now.
type NotifyView struct {
	DueKey
	Member      bool // false: no longer one, or the user is unknown; nothing else is set then
	User        User
	Settings    Settings
	Channels    []NotifyTarget // without Target
	Kind        Kind
	Title       string // a direct conversation's is the peer's name
	MutedUntil  *Time
	Blocked     bool // a direct conversation in which one side blocks the other
	LastSeq     int64
	Delivered   int64
	Read        int64
	Notified    int64 // up to where it has been decided
	Undelivered int64 // messages of others beyond Delivered; at most MaxCounted
	Unread      int64 // messages of others beyond Read; at most MaxCounted
	SenderName  string
	Text        string // of the last message of others; "" without one
	LastAt      Time   // when that was sent
}

// MaxCounted is where the counting of new messages ends.
const MaxCounted = 1000

// NotifyStore keeps what is due, and what decides about it. Whoever schedules asks for
// a time; a wait that stands already stays as it is.
type NotifyStore interface {
	NotifyTargetStore

	// ScheduleBehind schedules, of the members of each conversation, those to whom the
	// message Seq was not delivered and of whom it is not decided; at most one of
	// keys for a conversation. It returns how many waits began.
	ScheduleBehind(ctx context.Context, keys []OutboxKey, at time.Time) (int, error)
	// ScheduleUndelivered schedules each of users in every conversation with
	// undelivered messages of which it is not decided.
	ScheduleUndelivered(ctx context.Context, users []ID, at time.Time) (int, error)
	// ScheduleLeft is ScheduleUndelivered for everybody, where the last message is not
	// older than since, in steps: it looks at about limit members from the cursor on
	// ("" is the beginning) and returns where to go on; "" when it has seen all. For a
	// node that starts after a crash.
	ScheduleLeft(ctx context.Context, cursor string, since, at time.Time, limit int) (n int, next string, err error)
	// ClaimDue leases about limit waits whose time has come, the oldest first, and
	// with each all others of the same user whose time has come. Nobody else gets
	// them before the lease ends or FinishDue.
	ClaimDue(ctx context.Context, limit int, lease time.Duration) ([]ClaimedDue, error)
	// FinishDue ends or puts off what was claimed, in one transaction. What is no
	// longer the same wait is passed over.
	FinishDue(ctx context.Context, done []DueDone) error
	// NextDue is when the next wait ends, or the lease of one; false: there is none.
	NextDue(ctx context.Context) (time.Time, bool, error)
	// NotifyViews looks at members' conversations; one view for each key, in order.
	NotifyViews(ctx context.Context, keys []DueKey) ([]NotifyView, error)
	// Reminders are the users who want to be reminded of what stays unread, and after
	// how long.
	Reminders(ctx context.Context) (map[ID]time.Duration, error)
}
