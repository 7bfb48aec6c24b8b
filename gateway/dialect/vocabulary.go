package dialect

// This file is what the checker knows of the standard events. A test of
// gateway/events compares it with what is handled there.

// kind is what a name stands for, as far as that is known before there is a value.
type kind uint8

const (
	anyKind      kind = iota
	plainKind         // a text, number or boolean: it has no fields
	timeKind          // a moment
	userKind          // a user, written as the dialect names users
	messageKind       // a message, written as the dialect names messages
	messagesKind      // a list of messages
)

// scope are the names that an expression may begin with.
type scope map[string]kind

var (
	userFields    = scope{"id": plainKind, "externalId": plainKind, "name": plainKind, "avatarUrl": plainKind}
	messageFields = scope{
		"message": messageKind, "id": plainKind, "number": plainKind, "conversationId": plainKind, "seq": plainKind,
		"version": plainKind, "senderId": plainKind, "sender": userKind, "recipient": userKind, "clientMsgId": plainKind,
		"text": plainKind, "replyToSeq": plainKind, "createdAt": timeKind, "editedAt": timeKind, "deletedAt": timeKind,
		"deliveredAt": timeKind, "readAt": timeKind,
	}
	conversationFields = scope{
		"id": plainKind, "kind": plainKind, "title": plainKind, "peer": userKind, "memberCount": plainKind,
		"lastMessage": messageKind, "lastSeq": plainKind, "version": plainKind, "firstSeq": plainKind,
		"lastReadSeq": plainKind, "lastDeliveredSeq": plainKind, "othersDeliveredSeq": plainKind,
		"othersReadSeq": plainKind, "unread": plainKind, "mutedUntil": timeKind, "updatedAt": timeKind,
	}
	errorFields = scope{
		"code": plainKind, "message": plainKind, "retryable": plainKind, "retryAfterMs": plainKind, "field": plainKind,
	}
)

// fields are those of a kind; nil where any name may stand.
func (k kind) fields() scope {
	switch k {
	case userKind:
		return userFields
	case messageKind:
		return messageFields
	case anyKind, messagesKind:
		return nil
	}
	return scope{}
}

// Names in a request's payload that are no field of ours: they stand for fields that
// have to be looked up.
const (
	RefPeer    = "peer"    // a user: the direct conversation with it, as conversationId
	RefMessage = "message" // a message: its conversationId and seq
	RefBefore  = "before"  // a message: beforeSeq
	RefAfter   = "after"   // a message: afterSeq
)

// request is a standard event that clients send.
type request struct {
	fields []string
	refs   []string
	answer scope // nil: it has none
}

var requests = map[string]request{
	"message:send": {
		fields: []string{"conversationId", "toUserId", "clientMsgId", "text", "replyToSeq"},
		answer: scope{"message": messageKind, "duplicate": plainKind},
	},
	"message:delivered": {
		fields: []string{"conversationId", "seq"}, refs: []string{RefPeer, RefMessage},
		answer: scope{"lastDeliveredSeq": plainKind},
	},
	"message:read": {
		fields: []string{"conversationId", "seq"}, refs: []string{RefPeer, RefMessage},
		answer: scope{"lastReadSeq": plainKind, "unread": plainKind},
	},
	"typing": {fields: []string{"conversationId"}, refs: []string{RefPeer}},
	"history": {
		fields: []string{"conversationId", "beforeSeq", "afterSeq", "limit"}, refs: []string{RefPeer, RefBefore, RefAfter},
		answer: scope{"messages": messagesKind, "hasMore": plainKind, "lastSeq": plainKind},
	},
	"sync": {
		fields: []string{"positions", "cursor", "epoch"},
		answer: scope{"conversations": anyKind, "nextCursor": plainKind, "epoch": plainKind, "reset": plainKind, "gone": anyKind},
	},
	"members": {
		fields: []string{"conversationId", "cursor", "limit"}, refs: []string{RefPeer},
		answer: scope{"members": anyKind, "nextCursor": plainKind},
	},
	"conversations": {
		fields: []string{"conversationId", "cursor", "limit"},
		answer: scope{"conversations": anyKind, "unreadTotal": plainKind, "nextCursor": plainKind},
	},
	"conversation:open": {
		fields: []string{"userId", "title", "memberIds"},
		answer: scope{"conversation": anyKind, "created": plainKind},
	},
	"receipts": {
		fields: []string{"conversationId", "seq", "cursor", "limit"}, refs: []string{RefPeer, RefMessage},
		answer: scope{"receipts": anyKind, "nextCursor": plainKind},
	},
	"contacts": {
		fields: []string{"conversationId", "cursor", "limit"},
		answer: scope{"contacts": anyKind, "nextCursor": plainKind},
	},
	"presence":     {fields: []string{"userIds"}, answer: scope{"presence": anyKind}},
	"auth:refresh": {fields: []string{"token"}, answer: scope{"expiresAt": timeKind}},
}

// announcements are the standard events that the server sends, with what a dialect may
// say of each.
var announcements = map[string]scope{
	"session": {
		"user": userKind, "serverTime": timeKind, "unreadTotal": plainKind, "limits": anyKind, "features": anyKind,
		"epoch": plainKind,
	},
	"message":           messageFields,
	"message:changed":   messageFields,
	"message:delivered": positionFields,
	"message:read":      positionFields,
	"unread":            {"total": plainKind},
	"typing":            {"user": userKind, "conversationId": plainKind, "expiresInMs": plainKind},
	"typing:ended":      {"user": userKind, "conversationId": plainKind},
	"conversation":      conversationFields,
	"presence":          {"user": userKind, "online": plainKind, "lastSeenAt": timeKind},
	"session:closing":   {"code": plainKind, "retry": plainKind, "afterMs": plainKind},
}

var positionFields = scope{
	"message": messageKind, "user": userKind, "conversationId": plainKind, "seq": plainKind, "at": timeKind,
}

// RequestFields are, by the name of each standard event that clients send, the fields
// of its payload. For tests of what handles them.
func RequestFields() map[string][]string {
	fields := make(map[string][]string, len(requests))
	for name, r := range requests {
		fields[name] = r.fields
	}
	return fields
}

// Announcements are the names of the standard events that a dialect may be told of.
// typing:ended is there for dialects alone: the standard typing says when it ends.
func Announcements() []string {
	names := make([]string, 0, len(announcements))
	for name := range announcements {
		names = append(names, name)
	}
	return names
}
