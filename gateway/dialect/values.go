package dialect

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"xabar/chat"
)

// Values are what expressions read. A value is nil (nothing), a bool, a string, a
// json.Number or int64, a chat.Time, a *User, a *Message, json.RawMessage that goes
// out as it is, or a list ([]any) or object (map[string]any) of values.
type Values map[string]any

// User is a user, named on the wire as the dialect says.
type User struct{ chat.User }

// Message is a message with what a dialect may ask of it beside its own fields.
type Message struct {
	chat.Message
	Sender, Recipient   *User // only if Needs has NeedUsers; no Recipient in a group
	DeliveredAt, ReadAt *chat.Time
}

// Values are a message's fields as names, for an event that is about it.
func (m *Message) Values() Values { return Values{whole: m} }

// whole is the name under which Values keep a message whose fields are names
// themselves.
const whole = "message"

// get finds a name. Where the values are a message's, its fields are names too.
func (v Values) get(name string) any {
	if found, ok := v[name]; ok {
		return found
	}
	if m, ok := v[whole].(*Message); ok && m != nil {
		return m.field(name)
	}
	return nil
}

func (m *Message) field(name string) any {
	switch name {
	case "id":
		return m.ID.String()
	case "number":
		return m.Number
	case "conversationId":
		return m.ConversationID.String()
	case "seq":
		return m.Seq
	case "version":
		return m.Version
	case "senderId":
		return m.SenderID.String()
	case "clientMsgId":
		return m.ClientMsgID
	case "text":
		return m.Text
	case "replyToSeq":
		return optional(m.ReplyToSeq)
	case "sender":
		return optionalUser(m.Sender)
	case "recipient":
		return optionalUser(m.Recipient)
	case "createdAt":
		return m.CreatedAt
	case "editedAt":
		return optional(m.EditedAt)
	case "deletedAt":
		return optional(m.DeletedAt)
	case "deliveredAt":
		return optional(m.DeliveredAt)
	case "readAt":
		return optional(m.ReadAt)
	}
	return nil
}

func (u *User) field(name string) any {
	switch name {
	case "id":
		return u.ID.String()
	case "externalId":
		return optional(u.ExternalID)
	case "name":
		return u.Name
	case "avatarUrl":
		return optional(u.AvatarURL)
	}
	return nil
}

// optional is nil without a type, so that it compares as nothing.
func optional[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

func optionalUser(u *User) any {
	if u == nil {
		return nil
	}
	return u
}

// step goes one name further into a value.
func step(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[name]
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	case *Message:
		return v.field(name)
	case *User:
		return v.field(name)
	}
	return nil
}

// UserNaming is how a dialect names users.
type UserNaming uint8

// The ways to name a user. One without an external id is named by its id.
const (
	ByID             UserNaming = iota // the UUID
	ByExternalID                       // the external id, as text
	ByExternalNumber                   // the external id, as a number where it is one
)

// MessageNaming is how a dialect names messages.
type MessageNaming uint8

// The ways to name a message.
const (
	ByMessageID MessageNaming = iota // the UUID
	BySeq                            // the number inside its conversation
	ByNumber                         // the one number for the whole server
)

// maxExact is the largest integer that every JavaScript client reads exactly.
const maxExact = 1<<53 - 1

func (n UserNaming) appendName(b []byte, u *User) []byte {
	if n == ByID || u.ExternalID == nil {
		return chat.AppendJSONString(b, u.ID.String())
	}
	if n == ByExternalNumber && isNumber(*u.ExternalID) {
		return append(b, *u.ExternalID...)
	}
	return chat.AppendJSONString(b, *u.ExternalID)
}

// isNumber says whether the text is an integer in its only spelling.
func isNumber(text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && n >= -maxExact && n <= maxExact && strconv.FormatInt(n, 10) == text
}

func (n MessageNaming) appendName(b []byte, m *Message) []byte {
	switch n {
	case BySeq:
		return strconv.AppendInt(b, m.Seq, 10)
	case ByNumber:
		return strconv.AppendInt(b, m.Number, 10)
	}
	return chat.AppendJSONString(b, m.ID.String())
}

// appendValue appends a value's JSON, users and messages by their names.
func (d *Dialect) appendValue(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case string:
		return chat.AppendJSONString(b, v), nil
	case int64:
		return strconv.AppendInt(b, v, 10), nil
	case json.RawMessage:
		return append(b, v...), nil
	case chat.Time:
		return v.AppendJSON(b), nil
	case *User:
		return d.Users.appendName(b, v), nil
	case *Message:
		return d.Messages.appendName(b, v), nil
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = d.appendValue(b, item); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case map[string]any:
		return d.appendObject(b, v)
	}
	encoded, err := json.Marshal(v) // numbers, as the client wrote them
	return append(b, encoded...), err
}

func (d *Dialect) appendObject(b []byte, object map[string]any) ([]byte, error) {
	b = append(b, '{')
	for i, name := range slices.Sorted(maps.Keys(object)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(chat.AppendJSONString(b, name), ':')
		var err error
		if b, err = d.appendValue(b, object[name]); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}
