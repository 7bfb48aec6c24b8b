package events

import (
	"context"
	"encoding/json"
	"strconv"

	"xabar/chat"
)

type sendRequest struct {
	ConversationID *string         `json:"conversationId"`
	ToUserID       json.RawMessage `json:"toUserId"`
	ClientMsgID    string          `json:"clientMsgId"`
	Text           *string         `json:"text"`
	ReplyToSeq     *int64          `json:"replyToSeq"`

	own struct { // what the pointers point to in the usual form
		conversation, text string
		reply              int64
	}
}

// set implements flatRequest.
func (r *sendRequest) set(name string, v flatValue) bool {
	if name == "toUserId" { // a string or a number
		r.ToUserID = json.RawMessage(v.raw)
		return true
	}
	if name == "replyToSeq" {
		r.own.reply = v.number
		r.ReplyToSeq = &r.own.reply
		return !v.isText()
	}
	if !v.isText() {
		return false
	}
	switch name {
	case "conversationId":
		r.own.conversation = v.text
		r.ConversationID = &r.own.conversation
	case "clientMsgId":
		r.ClientMsgID = v.text
	case "text":
		r.own.text = v.text
		r.Text = &r.own.text
	default:
		return false
	}
	return true
}

func (c *client) send(ctx context.Context, req sendRequest, done func(chat.Sent, error)) {
	cmd, err := req.command()
	if err != nil {
		done(chat.Sent{}, err)
		return
	}
	start := now()
	c.hub.service.Send(ctx, c.caller(), cmd, done)
	c.hub.cfg.Metrics.Checked(start.passed())
}

func appendSent(b []byte, sent chat.Sent) []byte {
	b = append(b, `{"ok":true,"duplicate":`...)
	b = strconv.AppendBool(b, sent.Duplicate)
	b = append(b, `,"message":`...)
	b = append(b, sent.JSON...)
	return append(b, '}')
}

func (r *sendRequest) command() (chat.SendRequest, error) {
	cmd := chat.SendRequest{ClientMsgID: r.ClientMsgID, ReplyToSeq: r.ReplyToSeq}
	if r.Text == nil {
		return cmd, chat.InvalidArgument("text", "text is required")
	}
	cmd.Text = *r.Text
	if r.ConversationID != nil {
		id, err := conversationID(r.ConversationID)
		if err != nil {
			return cmd, err
		}
		cmd.ConversationID = &id
	}
	if len(r.ToUserID) > 0 && string(r.ToUserID) != "null" {
		ref, err := userRef("toUserId", r.ToUserID)
		if err != nil {
			return cmd, err
		}
		cmd.ToUser = &ref
	}
	return cmd, nil
}

type seqRequest struct {
	ConversationID *string `json:"conversationId"`
	Seq            *int64  `json:"seq"`
}

// set implements flatRequest.
func (r *seqRequest) set(name string, v flatValue) bool {
	switch {
	case name == "conversationId" && v.isText():
		text := v.text
		r.ConversationID = &text
	case name == "seq" && !v.isText():
		seq := v.number
		r.Seq = &seq
	default:
		return false
	}
	return true
}

func (r *seqRequest) parse() (chat.ID, int64, error) {
	id, err := conversationID(r.ConversationID)
	if err != nil {
		return id, 0, err
	}
	seq, err := requiredSeq(r.Seq)
	return id, seq, err
}

type deliveredAnswer struct {
	LastDeliveredSeq int64 `json:"lastDeliveredSeq"`
}

func appendDelivered(b []byte, a deliveredAnswer) []byte {
	b = append(b, `{"ok":true,"lastDeliveredSeq":`...)
	b = strconv.AppendInt(b, a.LastDeliveredSeq, 10)
	return append(b, '}')
}

func (c *client) markDelivered(ctx context.Context, req seqRequest, done func(deliveredAnswer, error)) {
	id, seq, err := req.parse()
	if err != nil {
		done(deliveredAnswer{}, err)
		return
	}
	c.hub.service.MarkDelivered(ctx, c.caller(), id, seq, func(r chat.PositionResult, err error) {
		done(deliveredAnswer{r.NewDelivered}, err)
	})
}

type readAnswer struct {
	LastReadSeq int64 `json:"lastReadSeq"`
	Unread      int64 `json:"unread"`
}

func appendRead(b []byte, a readAnswer) []byte {
	b = append(b, `{"ok":true,"unread":`...)
	b = strconv.AppendInt(b, a.Unread, 10)
	b = append(b, `,"lastReadSeq":`...)
	b = strconv.AppendInt(b, a.LastReadSeq, 10)
	return append(b, '}')
}

func (c *client) markRead(ctx context.Context, req seqRequest, done func(readAnswer, error)) {
	id, seq, err := req.parse()
	if err != nil {
		done(readAnswer{}, err)
		return
	}
	c.hub.service.MarkRead(ctx, c.caller(), id, seq, func(r chat.PositionResult, err error) {
		done(readAnswer{r.NewRead, r.LastSeq - r.NewRead}, err)
	})
}

type historyRequest struct {
	ConversationID *string `json:"conversationId"`
	BeforeSeq      *int64  `json:"beforeSeq"`
	AfterSeq       *int64  `json:"afterSeq"`
	Limit          *int    `json:"limit"`
}

type historyAnswer struct {
	Messages []chat.Message `json:"messages"`
	HasMore  bool           `json:"hasMore"`
	LastSeq  int64          `json:"lastSeq"`
}

func (c *client) history(ctx context.Context, req historyRequest) (historyAnswer, error) {
	id, err := conversationID(req.ConversationID)
	if err != nil {
		return historyAnswer{}, err
	}
	page, err := c.hub.service.History(ctx, c.caller(), chat.HistoryQuery{
		ConversationID: id, BeforeSeq: req.BeforeSeq, AfterSeq: req.AfterSeq, Limit: pageLimit(req.Limit),
	})
	return historyAnswer{list(page.Messages), page.HasMore, page.LastSeq}, err
}

// pageLimit forces a limit that was given into 1 to 50: 0 given is 1, 0 not given
// is the default.
func pageLimit(limit *int) int {
	if limit == nil {
		return chat.PageLimit
	}
	return min(max(*limit, 1), chat.PageLimit)
}

// list is never null on the wire.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

type pageRequest struct {
	ConversationID *string `json:"conversationId"`
	Cursor         string  `json:"cursor"`
	Limit          *int    `json:"limit"`
}

func (r *pageRequest) page() chat.PageRequest {
	return chat.PageRequest{Cursor: r.Cursor, Limit: pageLimit(r.Limit)}
}

type membersAnswer struct {
	Members    []chat.Member `json:"members"`
	NextCursor *string       `json:"nextCursor"`
}

func (c *client) members(ctx context.Context, req pageRequest) (membersAnswer, error) {
	id, err := conversationID(req.ConversationID)
	if err != nil {
		return membersAnswer{}, err
	}
	page, err := c.hub.service.Members(ctx, c.caller(), id, req.page())
	return membersAnswer{list(page.Items), cursor(page.NextCursor)}, err
}

type conversationsAnswer struct {
	Conversations []chat.Conversation `json:"conversations"`
	UnreadTotal   int64               `json:"unreadTotal"`
	NextCursor    *string             `json:"nextCursor"`
}

func (c *client) conversations(ctx context.Context, req pageRequest) (conversationsAnswer, error) {
	page, err := c.hub.service.Conversations(ctx, c.caller(), req.page())
	return conversationsAnswer{list(page.Conversations), page.UnreadTotal, cursor(page.NextCursor)}, err
}

type openRequest struct {
	UserID    json.RawMessage   `json:"userId"`
	Title     *string           `json:"title"`
	MemberIDs []json.RawMessage `json:"memberIds"`
}

type openAnswer struct {
	Conversation chat.Conversation `json:"conversation"`
	Created      bool              `json:"created"`
}

func (c *client) openConversation(ctx context.Context, req openRequest) (openAnswer, error) {
	if len(req.UserID) > 0 && string(req.UserID) != "null" {
		if req.Title != nil || req.MemberIDs != nil {
			return openAnswer{}, chat.InvalidArgument("userId", "either userId, or title and memberIds")
		}
		ref, err := userRef("userId", req.UserID)
		if err != nil {
			return openAnswer{}, err
		}
		conversation, created, err := c.hub.service.OpenDirect(ctx, c.caller(), ref)
		return openAnswer{conversation, created}, err
	}
	if req.Title == nil {
		return openAnswer{}, chat.InvalidArgument("userId", "either userId, or title and memberIds")
	}
	refs := make([]chat.UserRef, len(req.MemberIDs))
	for i, raw := range req.MemberIDs {
		var err error
		if refs[i], err = userRef("memberIds", raw); err != nil {
			return openAnswer{}, err
		}
	}
	conversation, err := c.hub.service.CreateGroup(ctx, c.caller(), *req.Title, refs)
	return openAnswer{conversation, true}, err
}

type receiptsRequest struct {
	seqRequest
	Cursor string `json:"cursor"`
	Limit  *int   `json:"limit"`
}

type receiptsAnswer struct {
	Receipts   []chat.Receipt `json:"receipts"`
	NextCursor *string        `json:"nextCursor"`
}

func (c *client) receipts(ctx context.Context, req receiptsRequest) (receiptsAnswer, error) {
	id, seq, err := req.parse()
	if err != nil {
		return receiptsAnswer{}, err
	}
	page, err := c.hub.service.Receipts(ctx, c.caller(), id, seq, chat.PageRequest{Cursor: req.Cursor, Limit: pageLimit(req.Limit)})
	return receiptsAnswer{list(page.Items), cursor(page.NextCursor)}, err
}

type contactsAnswer struct {
	Contacts   []chat.Contact `json:"contacts"`
	NextCursor *string        `json:"nextCursor"`
}

func (c *client) contacts(ctx context.Context, req pageRequest) (contactsAnswer, error) {
	page, err := c.hub.service.Contacts(ctx, c.caller(), req.page())
	return contactsAnswer{list(page.Items), cursor(page.NextCursor)}, err
}

type syncRequest struct {
	Positions map[string]json.RawMessage `json:"positions"`
	Cursor    string                     `json:"cursor"`
	Epoch     string                     `json:"epoch"`
}

type syncAnswer struct {
	Conversations []chat.SyncConversation `json:"conversations"`
	NextCursor    *string                 `json:"nextCursor,omitempty"`
	Epoch         chat.ID                 `json:"epoch"`
	Reset         bool                    `json:"reset,omitempty"`
	Gone          []chat.ID               `json:"gone,omitempty"`
}

func (c *client) syncPositions(ctx context.Context, req syncRequest) (syncAnswer, error) {
	q := chat.SyncQuery{Cursor: req.Cursor, Epoch: req.Epoch, Positions: make(map[chat.ID]chat.SyncPosition, len(req.Positions))}
	for key, raw := range req.Positions {
		id, err := conversationID(&key)
		if err != nil {
			return syncAnswer{}, chat.InvalidArgument("positions", "the names in positions are conversation ids")
		}
		position, err := syncPosition(raw)
		if err != nil {
			return syncAnswer{}, err
		}
		q.Positions[id] = position
	}
	page, err := c.hub.service.Sync(ctx, c.caller(), q)
	if err == nil {
		c.noteSynced(q.Positions, &page)
	}
	for i := range page.Conversations {
		conversation := &page.Conversations[i]
		conversation.Messages, conversation.Changes = list(conversation.Messages), list(conversation.Changes)
	}
	return syncAnswer{list(page.Conversations), cursor(page.NextCursor), page.Epoch, page.Reset, page.Gone}, err
}

// syncPosition is a seq, or {seq, version, id}.
func syncPosition(raw json.RawMessage) (chat.SyncPosition, error) {
	var full struct {
		Seq     *int64  `json:"seq"`
		Version int64   `json:"version"`
		ID      chat.ID `json:"id"`
	}
	if json.Unmarshal(raw, &full.Seq) == nil && full.Seq != nil {
		return chat.SyncPosition{Seq: *full.Seq}, nil
	}
	if json.Unmarshal(raw, &full) == nil && full.Seq != nil {
		return chat.SyncPosition{Seq: *full.Seq, Version: full.Version, ID: full.ID}, nil
	}
	return chat.SyncPosition{}, chat.InvalidArgument("positions", "a position is a seq or {seq, version, id}")
}

type refreshRequest struct {
	Token string `json:"token"`
}

type refreshAnswer struct {
	ExpiresAt *chat.Time `json:"expiresAt"`
}

// refresh takes a new token for the same user on a live socket.
func (c *client) refresh(ctx context.Context, req refreshRequest) (refreshAnswer, error) {
	actor, err := c.hub.cfg.Authenticate(ctx, req.Token)
	if err != nil {
		return refreshAnswer{}, err
	}
	if actor.User.ID != c.user.ID {
		return refreshAnswer{}, chat.Errorf(chat.CodeForbidden, "the token is another user's")
	}
	actor.SocketID = c.socket.ID()
	c.mu.Lock()
	c.actor = actor
	c.mu.Unlock()
	c.armExpiry()
	if actor.ExpiresAt.IsZero() {
		return refreshAnswer{}, nil
	}
	at := chat.At(actor.ExpiresAt)
	return refreshAnswer{&at}, nil
}
