package chat

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// ID is a user's (any UUID), a conversation's or a message's (UUIDv7) id.
type ID = uuid.UUID

// NewID makes a UUIDv7: ids of the same origin sort by their time of birth,
// which keeps the database's indexes compact. Order of messages is seq, never
// this.
func NewID() ID { return uuid.Must(uuid.NewV7()) }

// Bounds of requests and conversations.
const (
	PageLimit       = 50   // messages, conversations, members or contacts a page
	MaxGroupMembers = 1000 // members of a group, its owner included
	// ReceiptMembers is the size up to which a conversation announces positions
	// and keeps receipt times; beyond it `receipts` answers whether, not when.
	ReceiptMembers    = 32
	MaxPresenceUsers  = 200
	MaxSyncPositions  = 10000
	TypingInterval    = 2 * time.Second
	TypingExpires     = 3 * time.Second
	DefaultAckTimeout = time.Second
)

// Time is a moment as the wire shows it: RFC 3339, UTC, milliseconds.
type Time struct{ time.Time }

const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// At is t in UTC, cut to milliseconds: what the stores keep and the wire shows.
func At(t time.Time) Time { return Time{t.UTC().Truncate(time.Millisecond)} }

// FromMillis is the Time of a Unix time in milliseconds.
func FromMillis(ms int64) Time { return Time{time.UnixMilli(ms).UTC()} }

// MarshalJSON writes the wire form.
func (t Time) MarshalJSON() ([]byte, error) {
	return t.AppendJSON(make([]byte, 0, len(timeLayout)+2)), nil
}

// AppendJSON appends the wire form, quoted.
func (t Time) AppendJSON(b []byte) []byte {
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, timeLayout)
	return append(b, '"')
}

// UnmarshalJSON reads any RFC 3339 time.
func (t *Time) UnmarshalJSON(b []byte) error {
	if err := t.Time.UnmarshalJSON(b); err != nil {
		return err
	}
	*t = At(t.Time)
	return nil
}

// User is one person.
type User struct {
	ID         ID      `json:"id"`
	ExternalID *string `json:"externalId,omitempty"`
	Name       string  `json:"name"`
	AvatarURL  *string `json:"avatarUrl,omitempty"`
}

// UserRef names a user in a request: a UUID is an id, any other string an
// external id, an integer its decimal text.
type UserRef string

// UnmarshalJSON takes a string or an integer.
func (r *UserRef) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*r = UserRef(s)
		return nil
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return Errorf(CodeInvalidArgument, "a user is named by a string or an integer")
	}
	*r = UserRef(strconv.FormatInt(n, 10))
	return nil
}

// ID is the user id that the reference spells, if it spells one.
func (r UserRef) ID() (ID, bool) {
	if len(r) != 36 { // uuid.Parse takes urn: and {} forms too; ours has one
		return ID{}, false
	}
	id, err := uuid.Parse(string(r))
	return id, err == nil
}

// Check says whether the reference can name a user at all: 1 to
// MaxExternalIDLength characters without U+0000.
func (r UserRef) Check(field string) error {
	s := string(r)
	if s == "" || !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 ||
		utf8.RuneCountInString(s) > MaxExternalIDLength {
		return InvalidArgument(field, "%s must be a user's id or external id of at most %d characters", field, MaxExternalIDLength)
	}
	return nil
}

// Kind tells a direct conversation (exactly two users, at most one per pair) from
// a group.
type Kind string

// The kinds of conversation.
const (
	Direct Kind = "direct"
	Group  Kind = "group"
)

// Role is what a member may do in a group. Members of a direct conversation are
// RoleMember.
type Role string

// The roles of a group.
const (
	RoleOwner  Role = "owner"
	RoleAdmin  Role = "admin"
	RoleMember Role = "member"
)

// Message is a stored message, in its wire form.
type Message struct {
	ID             ID     `json:"id"`
	ConversationID ID     `json:"conversationId"`
	Seq            int64  `json:"seq"`
	Version        int64  `json:"version"`
	SenderID       ID     `json:"senderId"`
	ClientMsgID    string `json:"clientMsgId"`
	Text           string `json:"text"`
	ReplyToSeq     *int64 `json:"replyToSeq,omitempty"`
	CreatedAt      Time   `json:"createdAt"`
	EditedAt       *Time  `json:"editedAt,omitempty"`
	DeletedAt      *Time  `json:"deletedAt,omitempty"`
	// Number is the message's one number for the whole server: unique, and rising with
	// Seq inside a conversation. It is not on the wire of the standard events; 0 is
	// unknown (an event of a node that does not know numbers yet).
	Number int64 `json:"-"`
}

// Conversation is a conversation as one of its members sees it.
type Conversation struct {
	ID                 ID       `json:"id"`
	Kind               Kind     `json:"kind"`
	Title              string   `json:"title"` // a direct conversation's is the peer's name
	Peer               *User    `json:"peer,omitempty"`
	MemberCount        int      `json:"memberCount"`
	LastMessage        *Message `json:"lastMessage,omitempty"`
	LastSeq            int64    `json:"lastSeq"`
	Version            int64    `json:"version"`
	FirstSeq           int64    `json:"firstSeq"`
	LastReadSeq        int64    `json:"lastReadSeq"`
	LastDeliveredSeq   int64    `json:"lastDeliveredSeq"`
	OthersDeliveredSeq *int64   `json:"othersDeliveredSeq,omitempty"`
	OthersReadSeq      *int64   `json:"othersReadSeq,omitempty"`
	Unread             int64    `json:"unread"`
	MutedUntil         *Time    `json:"mutedUntil,omitempty"`
	UpdatedAt          Time     `json:"updatedAt"`
}

// Member is one user's part in a conversation, as the other members see it.
type Member struct {
	User             User  `json:"user"`
	Role             Role  `json:"role"`
	LastDeliveredSeq int64 `json:"lastDeliveredSeq"`
	LastReadSeq      int64 `json:"lastReadSeq"`
}

// Receipt says of one message whether one of the others has it and has read it,
// and since when (times only in conversations of up to ReceiptMembers; beyond
// that Delivered and Read alone).
type Receipt struct {
	UserID      ID    `json:"userId"`
	DeliveredAt *Time `json:"deliveredAt"`
	ReadAt      *Time `json:"readAt"`
	Delivered   bool  `json:"delivered"`
	Read        bool  `json:"read"`
}

// PresenceState is one user's presence. LastSeenAt is nil while unknown or not
// the caller's to know.
type PresenceState struct {
	UserID     ID    `json:"userId"`
	Online     bool  `json:"online"`
	LastSeenAt *Time `json:"lastSeenAt"`
}

// Contact is an entry of a user's contact list.
type Contact struct {
	User       User  `json:"user"`
	Online     bool  `json:"online"`
	LastSeenAt *Time `json:"lastSeenAt"`
}

// Actor is who calls: an authenticated user.
type Actor struct {
	User      User
	SocketID  string    // the Socket.IO socket it calls from; "" over HTTP
	ExpiresAt time.Time // when its token ends; zero: never
	IssuedAt  time.Time // when its token was made, in whole seconds; zero: unknown
}
