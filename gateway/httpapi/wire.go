package httpapi

import (
	"fmt"

	"xabar/chat"
	"xabar/gateway/httpapi/api"
)

// The wire's types from the domain's. They differ in the spelling of names alone.

func wireUser(u chat.User) api.User {
	return api.User{ID: u.ID, ExternalID: u.ExternalID, Name: u.Name, AvatarURL: u.AvatarURL}
}

func wireMessage(m chat.Message) api.Message {
	return api.Message{
		ID: m.ID, ConversationID: m.ConversationID, Seq: m.Seq, Version: m.Version, SenderID: m.SenderID,
		ClientMsgID: m.ClientMsgID, Text: m.Text, ReplyToSeq: m.ReplyToSeq,
		CreatedAt: m.CreatedAt, EditedAt: m.EditedAt, DeletedAt: m.DeletedAt,
	}
}

func wireConversation(c chat.Conversation) api.Conversation {
	w := api.Conversation{
		ID: c.ID, Kind: c.Kind, Title: c.Title, MemberCount: c.MemberCount, LastSeq: c.LastSeq, Version: c.Version,
		FirstSeq: c.FirstSeq, LastReadSeq: c.LastReadSeq, LastDeliveredSeq: c.LastDeliveredSeq,
		OthersDeliveredSeq: c.OthersDeliveredSeq, OthersReadSeq: c.OthersReadSeq,
		Unread: c.Unread, MutedUntil: c.MutedUntil, UpdatedAt: c.UpdatedAt,
	}
	if c.Peer != nil {
		peer := wireUser(*c.Peer)
		w.Peer = &peer
	}
	if c.LastMessage != nil {
		last := wireMessage(*c.LastMessage)
		w.LastMessage = &last
	}
	return w
}

func wireMember(m chat.Member) api.Member {
	return api.Member{User: wireUser(m.User), Role: m.Role, LastDeliveredSeq: m.LastDeliveredSeq, LastReadSeq: m.LastReadSeq}
}

func wireContact(c chat.Contact) api.Contact {
	return api.Contact{User: wireUser(c.User), Online: c.Online, LastSeenAt: c.LastSeenAt}
}

func wireReceipt(r chat.Receipt) api.Receipt {
	return api.Receipt{UserID: r.UserID, Delivered: r.Delivered, DeliveredAt: r.DeliveredAt, Read: r.Read, ReadAt: r.ReadAt}
}

func wireSync(c chat.SyncConversation) api.SyncConversation {
	return api.SyncConversation{
		Conversation: wireConversation(c.Conversation), HasMore: c.HasMore, Reset: ifTrue(c.Reset),
		Messages: each(c.Messages, wireMessage), Changes: each(c.Changes, wireMessage),
	}
}

func wireSyncPage(p chat.SyncPage) api.SyncPage {
	w := api.SyncPage{
		Conversations: each(p.Conversations, wireSync), NextCursor: cursor(p.NextCursor),
		Epoch: p.Epoch.String(), Reset: ifTrue(p.Reset),
	}
	if len(p.Gone) > 0 {
		w.Gone = &p.Gone
	}
	return w
}

// ifTrue is a field that is left out where it is false.
func ifTrue(b bool) *bool {
	if !b {
		return nil
	}
	return &b
}

func wireSession(s chat.SocketSession) api.Session {
	w := api.Session{
		SocketID: s.SocketID, Transport: s.Transport, Address: s.Address,
		ConnectedAt: s.ConnectedAt, ExpiresAt: s.ExpiresAt,
	}
	if s.UserAgent != "" {
		w.UserAgent = &s.UserAgent
	}
	return w
}

func wireMe(p chat.Profile) api.Me {
	me := api.Me{
		User: wireUser(p.User), Notify: p.Settings.Notify, Language: p.Settings.Language,
		OnlyDirect: p.Settings.OnlyDirect, HideText: p.Settings.HideText,
		RemindAfterMinutes: int(p.Settings.RemindAfter.Minutes()),
		ChannelsOff:        each(p.Settings.ChannelsOff, func(name string) string { return name }),
	}
	if q := p.Settings.Quiet; q != nil {
		me.QuietHours = &api.QuietHours{From: clock(q.From), Until: clock(q.Until), TimeZone: q.TimeZone}
	}
	return me
}

// clock is a minute of the day as people write it.
func clock(minute int) string { return fmt.Sprintf("%02d:%02d", minute/60, minute%60) }

// each is never null on the wire.
func each[From, To any](items []From, wire func(From) To) []To {
	list := make([]To, len(items))
	for i, item := range items {
		list[i] = wire(item)
	}
	return list
}

// cursor is null after the last page.
func cursor(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// page reads the parameters of a list. A limit that is given is forced into its
// bounds, so that 0 is 1.
func page(cursor *string, limit *int) chat.PageRequest {
	request := chat.PageRequest{Limit: pageLimit(limit)}
	if cursor != nil {
		request.Cursor = *cursor
	}
	return request
}

func pageLimit(limit *int) int {
	if limit == nil {
		return chat.PageLimit
	}
	return min(max(*limit, 1), chat.PageLimit)
}
