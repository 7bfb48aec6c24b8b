package chat

import (
	"context"
	"time"
)

// Clock tells the time. Tests step it; order never depends on it.
type Clock interface{ Now() time.Time }

// SystemClock is the machine's clock.
type SystemClock struct{}

// Now is time.Now.
func (SystemClock) Now() time.Time { return time.Now() }

// Store is everything that Xabar remembers. Implementations are in persistence;
// persistence/storetest is the contract in tests.
//
// Every method that serves a user takes that user's id and limits itself to the
// user's own conversations inside the query: what is not theirs is not_found,
// the same as what does not exist. Any method may also fail with unavailable
// (no database now), timeout (ctx's deadline) or internal.
//
// Send, MovePosition and CloseOutbox are queued: they return at once and share
// transactions with others that wait at the same moment (group commit). Their
// queues are bounded; a full one answers overloaded.
type Store interface {
	UserStore
	ConversationStore
	MessageStore
	PositionStore
	OutboxStore
	SettingsStore
	BlockStore
	GroupStore
	AdminStore
	NotifyStore
	LookupStore
	EpochStore

	// Ping asks the database for a sign of life.
	Ping(ctx context.Context) error
	// Close lets what is queued finish, then releases the database. Calls after it
	// fail with unavailable.
	Close() error
}

// UserStore keeps people and who knows whom.
type UserStore interface {
	// EnsureUser finds the user that ref names, or makes it: a UUID becomes the
	// id, anything else the external id of a new id, for good. A name that is not
	// "" is set (a new user without one is named after ref).
	EnsureUser(ctx context.Context, ref UserRef, name string) (User, error)
	// ResolveUsers finds the users that refs name, in the same order. Errors:
	// not_found when one of them names nobody.
	ResolveUsers(ctx context.Context, refs []UserRef) ([]User, error)
	// AddDemoUser makes the user of a demo login: external id "demo:" and the name
	// in lower case, a contact of every other demo user, both ways. The same name
	// is the same user.
	AddDemoUser(ctx context.Context, name string) (User, error)
	// AddContact puts contact into user's list (not the other way round); again is
	// no error. Errors: not_found.
	AddContact(ctx context.Context, user, contact ID) error
	// RemoveContact takes it out; absent is no error.
	RemoveContact(ctx context.Context, user, contact ID) error
	// Contacts lists user's contacts by name, then id. Online is left false: that
	// is presence's to say.
	Contacts(ctx context.Context, user ID, page PageRequest) (Page[Contact], error)
	// Acquainted returns those of others whose presence user may see: contacts
	// and members of common conversations, with the time they were last seen.
	// Whoever is missing in the answer looks offline.
	Acquainted(ctx context.Context, user ID, others []ID) ([]PresenceState, error)
	// SetLastSeen stores when users were last connected; it only moves forward.
	SetLastSeen(ctx context.Context, seen map[ID]time.Time) error
}

// PageRequest asks for a page. Cursor is "" for the first one, else the last
// answer's; Limit is forced into 1 to PageLimit, PageLimit if 0. A cursor that
// this store did not make is invalid_argument with field "cursor".
type PageRequest struct {
	Cursor string
	Limit  int
}

// Size is the number of rows to give.
func (p PageRequest) Size() int { return ClampLimit(p.Limit) }

// ClampLimit forces a page's limit into 1 to PageLimit; 0 is PageLimit.
func ClampLimit(limit int) int {
	if limit == 0 {
		return PageLimit
	}
	return min(max(limit, 1), PageLimit)
}

// Page is one keyset page. NextCursor is "" after the last.
type Page[T any] struct {
	Items      []T
	NextCursor string
}

// ConversationStore keeps conversations and their members.
type ConversationStore interface {
	// OpenDirect finds or makes the direct conversation of a and b, as a sees it;
	// opened at the same time anywhere it is one. Errors: invalid_argument when a
	// is b; not_found when b does not exist; forbidden when one blocked the other.
	OpenDirect(ctx context.Context, a, b ID) (conversation Conversation, created bool, err error)
	// CreateGroup makes a group of owner and members (owner may be among them;
	// doubles count once). Errors: not_found for a member that does not exist;
	// invalid_argument for fewer than 2 or more than MaxGroupMembers in all.
	CreateGroup(ctx context.Context, owner ID, title string, members []ID) (Conversation, error)
	// Conversation is one of user's conversations as user sees it. Errors: not_found.
	Conversation(ctx context.Context, user, conversation ID) (Conversation, error)
	// Conversations lists them, newest activity first (last_message_at or creation,
	// then id), with the total of unread over those that are not muted. One query,
	// keyset cursors.
	Conversations(ctx context.Context, user ID, page PageRequest) (ConversationPage, error)
	// Members lists a conversation's members by joining, then id. Errors: not_found.
	Members(ctx context.Context, user, conversation ID, page PageRequest) (Page[Member], error)
	// MemberIDs are all members' ids, for delivery. No caller: the node asks.
	MemberIDs(ctx context.Context, conversation ID) ([]ID, error)
	// Session is what a user's new connection needs, in one query.
	Session(ctx context.Context, user ID) (Session, error)
	// UnreadTotal is the sum of unread over user's conversations that are not
	// muted now.
	UnreadTotal(ctx context.Context, user ID) (int64, error)
	// UnreadTotals are those of several users, in one query. A user that does not exist
	// has 0.
	UnreadTotals(ctx context.Context, users []ID) (map[ID]int64, error)

	// AddMembers adds users to a group; those who are members stay as they are.
	// They see messages after the group's lastSeq of that moment. It returns who
	// is new. Errors: not_found (no such group of by's, no such user), forbidden
	// (by is neither owner nor admin, or a direct conversation), invalid_argument
	// (more than MaxGroupMembers).
	AddMembers(ctx context.Context, by, conversation ID, users []ID) (added []ID, err error)
	// RemoveMember takes user out of a group. Everybody may leave; owners remove
	// anybody, admins remove members. When the last owner leaves, the longest
	// admin, else the longest member becomes owner. Errors: not_found, forbidden.
	RemoveMember(ctx context.Context, by, conversation, user ID) error
}

// ConversationPage is a page of the conversation list.
type ConversationPage struct {
	Conversations []Conversation
	UnreadTotal   int64
	NextCursor    string
}

// Session is what a new connection needs to know.
type Session struct {
	Epoch       ID // of the history that the database holds
	UnreadTotal int64
	Groups      []ID          // the groups that the user is a member of
	Undelivered []Undelivered // conversations with messages beyond lastDeliveredSeq
}

// Undelivered is a conversation with messages that the user's devices may lack.
type Undelivered struct {
	ConversationID   ID
	LastDeliveredSeq int64
	LastSeq          int64
}

// SendMessage is the command to store one message. The text has been checked.
type SendMessage struct {
	SenderID       ID
	ConversationID ID
	ClientMsgID    string
	Text           string
	ReplyToSeq     *int64 // must be a seq of the conversation that the sender can see
	System         bool   // from the system: into a group of which the sender is no member, and past blocks
}

// SendResult is what became of a SendMessage.
type SendResult struct {
	Message   Message
	Duplicate bool // the message had been stored before: Message is as first stored, the rest is zero
	Kind      Kind
	// MemberIDs are both members of a direct conversation; nil for a group.
	MemberIDs   []ID
	MemberCount int
	// Sender is how the send moved the sender's own positions: a sender holds its
	// own message, and answering is reading, if everything before had been
	// delivered to it.
	Sender PositionResult
}

// MessageStore keeps messages.
type MessageStore interface {
	// Send stores the message: repeat looked for, seq taken, message and outbox
	// event written, sender's positions moved, in one transaction that it may share
	// with others. done is called exactly once, after the commit or the failure,
	// from a goroutine of the store's, and must not block. Sends of one sender to one
	// conversation keep the order of the calls; done is called in that order, and
	// for one conversation in rising seq.
	//
	// ctx's deadline bounds the wait: after it the answer is timeout, and only the
	// repeat finds out what became of it.
	//
	// Errors: not_found (sender is no member), conflict (the clientMsgId was used in
	// another conversation), forbidden (blocked, direct only), invalid_argument
	// (replyToSeq), overloaded, timeout, unavailable.
	Send(ctx context.Context, cmd SendMessage, done func(SendResult, error))
	// History is a keyset page. Errors: not_found.
	History(ctx context.Context, user ID, q HistoryQuery) (HistoryPage, error)
	// Sync gives what came after the positions. Errors: invalid_argument (cursor).
	Sync(ctx context.Context, user ID, q SyncQuery) (SyncPage, error)
	// MessagesBetween are the messages with from <= seq <= upTo, oldest first, at
	// most PageLimit. No caller: the node repairs a gap with it.
	MessagesBetween(ctx context.Context, conversation ID, from, upTo int64) ([]Message, error)
}

// HistoryQuery asks for at most Limit messages (ClampLimit): before BeforeSeq,
// newest first; after AfterSeq, oldest first; with neither the newest, newest
// first. Both is an error that Service refuses.
type HistoryQuery struct {
	ConversationID ID
	BeforeSeq      *int64
	AfterSeq       *int64
	Limit          int
}

// HistoryPage is a page of messages.
type HistoryPage struct {
	Messages []Message
	HasMore  bool
	LastSeq  int64
}

// SyncPosition is how far a client holds a conversation. Version 0: unknown, no
// changes are asked for. ID is that of the message at Seq; zero: not said.
type SyncPosition struct {
	Seq     int64
	Version int64
	ID      ID
}

// SyncQuery asks for what came after Positions. Conversations that it does not
// name count as not held at all. Cursor goes on with an earlier answer, with
// the same positions.
//
// Epoch is of what the client holds; "" is unknown. Stores don't look at it, nor at the ids in
// Positions: Service does, by EpochStore.
type SyncQuery struct {
	Positions map[ID]SyncPosition
	Cursor    string
	Epoch     string
}

// SyncConversation is a conversation with news: Messages after the named seq
// (from the user's own joining on), oldest first, at most PageLimit, and Changes to
// messages up to it with a higher version, at most PageLimit.
type SyncConversation struct {
	Conversation Conversation `json:"conversation"`
	Messages     []Message    `json:"messages"`
	Changes      []Message    `json:"changes"`
	HasMore      bool         `json:"hasMore"`
	// Reset says that what the client holds of it is of another history: it is to be
	// dropped, and what stands here begins anew. Service sets it.
	Reset bool `json:"reset,omitempty"`
}

// SyncPage has at most PageLimit conversations. Service sets the last three fields.
type SyncPage struct {
	Conversations []SyncConversation
	NextCursor    string
	Epoch         ID   // of what the page is of
	Reset         bool // the client named another epoch: all that it holds is to be dropped
	Gone          []ID // named conversations that are not the user's; on the first page
}

// PositionKind is which of a member's two positions a move is about.
type PositionKind uint8

// The positions of a member.
const (
	Delivered PositionKind = iota + 1
	Read
)

// String is the wire's word.
func (k PositionKind) String() string {
	if k == Read {
		return "read"
	}
	return "delivered"
}

// PositionMove claims that UserID's devices hold (Delivered), or that UserID has
// seen (Read), the messages with After < seq <= UpTo. A Delivered claim moves the
// stored position only if that is at or beyond After, so that it never claims
// what no device holds; 0 claims everything up to UpTo. Read always claims from
// 0, and delivers too.
type PositionMove struct {
	Kind           PositionKind
	UserID         ID
	ConversationID ID
	After          int64
	UpTo           int64 // clamped to the conversation's lastSeq
	// Unhurried says that nobody waits for the move, nor is told of it: a store may keep it for a part of
	// a second, so that it is written together with others, but not beyond HurryPositions.
	Unhurried bool
}

// PositionResult is a member's positions before and after a move. Nothing moved
// when they are equal; a Delivered claim beyond a gap leaves NewDelivered below
// its After.
type PositionResult struct {
	OldDelivered, NewDelivered int64
	OldRead, NewRead           int64
	LastSeq                    int64
	At                         Time // of the move; zero when nothing moved
	Kind                       Kind
	MemberIDs                  []ID // both members of a direct conversation; nil for a group
	MemberCount                int
}

// PositionStore keeps how far members have received and read.
type PositionStore interface {
	// MovePosition moves a position forward, never back; the ownership check is
	// part of the UPDATE. Moves that wait together share a statement, and moves of one
	// member keep their order. done is called exactly once, after the commit, from
	// a goroutine of the store's, and must not block. Advances are logged for
	// Receipts in conversations of up to ReceiptMembers.
	//
	// Errors: not_found, overloaded, timeout, unavailable.
	MovePosition(ctx context.Context, move PositionMove, done func(PositionResult, error))
	// HurryPositions queues what is kept of the user's unhurried moves. It returns at once.
	HurryPositions(user ID)
	// Receipts says who of the others has the message. Errors: not_found.
	Receipts(ctx context.Context, user, conversation ID, seq int64, page PageRequest) (Page[Receipt], error)
}

// OutboxEvent is a stored message whose fan-out is not recorded as done.
type OutboxEvent struct {
	Message     Message
	Kind        Kind
	MemberIDs   []ID // both members of a direct conversation; nil for a group
	MemberCount int
}

// OutboxKey names an outbox event.
type OutboxKey struct {
	ConversationID ID
	Seq            int64
}

// OutboxStore keeps what is stored and perhaps not yet shown.
type OutboxStore interface {
	// CloseOutbox removes an event whose fan-out is done, and in the same transaction
	// schedules looks at members to whom the message may not get. It is queued and
	// batched; an event that could not be removed (crash, full queue) is fanned out
	// again by whoever claims it, which is harmless.
	CloseOutbox(key OutboxKey, due ...Due)
	// ClaimOutbox takes up to limit events whose lease has run out (every Send leases
	// its own for OutboxLease) and leases them to the caller for as long, oldest
	// first.
	ClaimOutbox(ctx context.Context, limit int) ([]OutboxEvent, error)
	// OutboxBacklog is what the outbox holds, for whoever watches: of all nodes.
	OutboxBacklog(ctx context.Context) (Backlog, error)
}

// MaxBacklog is where the counting of a Backlog ends.
const MaxBacklog = 10_000

// Backlog is what waits in the outbox.
type Backlog struct {
	Length int       // events, at most MaxBacklog
	Oldest time.Time // when the oldest of them was stored; zero without any
}

// OutboxLease is how long the node that stored a message has for its fan-out
// before others take over.
const OutboxLease = 4 * time.Second

// Broadcaster shows events to the members' sockets, wherever they are
// connected. Publish never waits for another node; an error means that other
// nodes may have missed it, local sockets have not.
type Broadcaster interface {
	Publish(ctx context.Context, event Event) error
}

// Presence knows who is connected, on any node.
type Presence interface {
	// Connect counts a connection of user; Disconnect ends it. The user goes offline
	// a grace of 3 s after the last one ended.
	Connect(ctx context.Context, user ID, connection string) error
	Disconnect(ctx context.Context, user ID, connection string) error
	// Online says for each user whether anybody is connected (or in grace).
	Online(ctx context.Context, users []ID) ([]bool, error)
	// Watch is called for every change that this node must announce to its
	// sockets, until the Presence is closed. Set it before the first Connect.
	Watch(func(PresenceState))
}
