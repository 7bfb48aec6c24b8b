package events

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"

	"xabar/chat"
	"xabar/gateway/dialect"
)

// announcement is what a dialect may say of a standard event's payload.
func (h *Hub) announcement(ctx context.Context, actor chat.Actor, needs dialect.Needs, payload any) (dialect.Values, error) {
	values := valuesOf(payload)
	var user chat.ID
	switch p := payload.(type) {
	case typingPayload:
		user = p.UserID
	case typingEndedPayload:
		user = p.UserID
	case chat.PresenceState:
		user = p.UserID
	default:
		return values, h.dress(ctx, actor, needs, messagesIn(values))
	}
	if needs&dialect.NeedUsers == 0 {
		return values, nil
	}
	users, err := h.names.find(ctx, user)
	values["user"] = users[user]
	return values, err
}

// valuesOf turns an answer or a payload into what expressions read: the fields by
// their names on the wire, but messages, users and times as such.
func valuesOf(payload any) dialect.Values {
	switch p := payload.(type) {
	case chat.Sent:
		return dialect.Values{"message": &dialect.Message{Message: p.Message}, "duplicate": p.Duplicate}
	case nil:
		return dialect.Values{}
	}
	switch v := toValue(reflect.ValueOf(payload)).(type) {
	case map[string]any:
		return v
	case *dialect.Message:
		return v.Values()
	}
	return dialect.Values{}
}

// toValue goes through an answer's Go value as encoding/json would.
func toValue(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return toValue(v.Elem())
	case reflect.Struct, reflect.Array:
		if known, ok := knownValue(v.Interface()); ok {
			return known
		}
		object := map[string]any{}
		addFields(object, v)
		return object
	case reflect.Slice:
		if raw, ok := v.Interface().(json.RawMessage); ok {
			return raw
		}
		list := make([]any, v.Len())
		for i := range list {
			list[i] = toValue(v.Index(i))
		}
		return list
	case reflect.Map:
		object := make(map[string]any, v.Len())
		for entry := v.MapRange(); entry.Next(); {
			object[entry.Key().String()] = toValue(entry.Value())
		}
		return object
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	}
	return v.Int() // answers have no other numbers
}

func knownValue(v any) (any, bool) {
	switch v := v.(type) {
	case chat.Message:
		return &dialect.Message{Message: v}, true
	case chat.User:
		return &dialect.User{User: v}, true
	case chat.ID:
		return v.String(), true
	case chat.Time:
		return v, true
	}
	return nil, false
}

func addFields(object map[string]any, v reflect.Value) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "" && field.Anonymous:
			addFields(object, v.Field(i))
		case name == "" || name == "-" || strings.Contains(options, "omitempty") && v.Field(i).IsZero():
		default:
			object[name] = toValue(v.Field(i))
		}
	}
}

// messagesIn are the messages anywhere in the values.
func messagesIn(v any) []*dialect.Message {
	switch v := v.(type) {
	case *dialect.Message:
		return []*dialect.Message{v}
	case dialect.Values:
		return messagesIn(map[string]any(v))
	case map[string]any:
		var all []*dialect.Message
		for _, item := range v {
			all = append(all, messagesIn(item)...)
		}
		return all
	case []any:
		var all []*dialect.Message
		for _, item := range v {
			all = append(all, messagesIn(item)...)
		}
		return all
	}
	return nil
}

// dress gives messages that the caller can see what the dialect asks for beside their
// own fields.
func (h *Hub) dress(ctx context.Context, actor chat.Actor, needs dialect.Needs, messages []*dialect.Message) error {
	if needs == 0 || len(messages) == 0 {
		return nil
	}
	byConversation := map[chat.ID][]*dialect.Message{}
	for _, m := range messages {
		byConversation[m.ConversationID] = append(byConversation[m.ConversationID], m)
	}
	for conversation, list := range byConversation {
		pair, err := h.service.Pair(ctx, actor, conversation)
		if err != nil {
			return err
		}
		if err := h.dressIn(ctx, actor, needs, conversation, pair, list); err != nil {
			return err
		}
	}
	return nil
}

// dressIn is dress for one conversation: a direct one's pair, or nil.
func (h *Hub) dressIn(ctx context.Context, actor chat.Actor, needs dialect.Needs, conversation chat.ID, pair []chat.ID, messages []*dialect.Message) error {
	if needs&dialect.NeedUsers != 0 {
		if err := h.dressUsers(ctx, pair, messages); err != nil {
			return err
		}
	}
	if needs&dialect.NeedReceipts == 0 || pair == nil {
		return nil
	}
	from, upTo := messages[0].Seq, messages[0].Seq
	bySeq := make(map[int64]*dialect.Message, len(messages))
	for _, m := range messages {
		from, upTo = min(from, m.Seq), max(upTo, m.Seq)
		bySeq[m.Seq] = m
	}
	receipts, err := h.service.DirectReceipts(ctx, actor, conversation, from, upTo)
	for _, r := range receipts {
		if m := bySeq[r.Seq]; m != nil {
			m.DeliveredAt, m.ReadAt = r.DeliveredAt, r.ReadAt
		}
	}
	return err
}

func (h *Hub) dressUsers(ctx context.Context, pair []chat.ID, messages []*dialect.Message) error {
	ids := make([]chat.ID, 0, len(messages)+len(pair))
	ids = append(ids, pair...)
	for _, m := range messages {
		ids = append(ids, m.SenderID)
	}
	users, err := h.names.find(ctx, ids...)
	if err != nil {
		return err
	}
	for _, m := range messages {
		m.Sender = users[m.SenderID]
		for _, member := range pair {
			if member != m.SenderID {
				m.Recipient = users[member]
			}
		}
	}
	return nil
}
