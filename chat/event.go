package chat

import "time"

// Event is something that members' sockets are told. Every one is stored before
// it is published, but Typing, which is volatile. Nobody changes an event that was published:
// those that come with each message are passed by pointer, and several read them at once.
type Event interface {
	event()
}

// MessageStored announces a new message to all sockets of all members but the
// one that sent it.
type MessageStored struct {
	Message      Message
	Kind         Kind
	MemberIDs    []ID // both members of a direct conversation; nil: the conversation's room
	MemberCount  int
	OriginSocket string // "" over HTTP, or when the outbox was taken over
	// JSON is Message in its wire form, encoded once for everybody.
	JSON []byte
	// Sender is how the send moved the sender's own positions; zero when another
	// node stored the message.
	Sender PositionResult
	Trace  *TraceContext // the span that it comes from; nil: none that is recorded
}

// PositionMoved announces a position to the other members (of conversations of up
// to ReceiptMembers) and to the user's own other devices.
type PositionMoved struct {
	Kind             PositionKind
	ConversationID   ID
	ConversationKind Kind
	UserID           ID
	Old, Seq         int64
	At               Time
	MemberIDs        []ID
	MemberCount      int
	OriginSocket     string
	Trace            *TraceContext
}

// TypingStarted is volatile.
type TypingStarted struct {
	ConversationID ID
	UserID         ID
	MemberIDs      []ID
	OriginSocket   string
}

// ConversationChanged tells users that a conversation is new for them or
// changed; each gets its own view of it.
type ConversationChanged struct {
	ConversationID ID
	UserIDs        []ID // nil: all members
	Joined         []ID // of these, who has just become a member
	Left           []ID // who is no longer one
}

// PresenceChanged tells who watches the user.
type PresenceChanged struct{ PresenceState }

// AccessRevoked ends a user's sockets. Before names the revocation: the same one
// may come twice, and acts once.
type AccessRevoked struct {
	UserID ID
	Before time.Time
}

// BlockChanged says that one of two users has blocked or unblocked the other: what
// is remembered of it is to be asked for again, and neither hears the other's
// presence any more.
type BlockChanged struct{ A, B ID }

func (*MessageStored) event()      {}
func (*PositionMoved) event()      {}
func (TypingStarted) event()       {}
func (ConversationChanged) event() {}
func (PresenceChanged) event()     {}
func (AccessRevoked) event()       {}
func (BlockChanged) event()        {}
