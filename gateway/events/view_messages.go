package events

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"xabar/chat"
	"xabar/gateway/dialect"
	"xabar/gateway/socketio"
)

// nameTimeout bounds how long a conversation's worker waits for what a dialect calls a
// user that this node has not met lately.
const nameTimeout = 2 * time.Second

// prepareMessage encodes arguments that messageArgs has made, for acknowledgement by d
// if the dialect asks for one.
func (v *view) prepareMessage(d *delivery, args []byte) (p *socketio.Prepared, asks bool, err error) {
	event := v.d.Server["message"]
	if !event.Ack {
		p, err = v.ns.PrepareRaw(event.Name, nil, args)
		return p, false, err
	}
	p, err = v.ns.PrepareRaw(event.Name, d, args)
	return p, true, err
}

// liveArgs are a message's arguments in the dialect; nil where it shows nothing of it.
// What has just been stored was not received or read yet; late says that it was read
// back from the store.
func (v *view) liveArgs(e *chat.MessageStored, late bool) ([]byte, error) {
	event := v.d.Server["message"]
	if event == nil || v.hides(e.MemberIDs) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), nameTimeout)
	defer cancel()
	m, err := v.whole(ctx, e)
	if err != nil {
		return nil, err
	}
	needs := event.Needs()
	var reader chat.Actor
	if !late || e.MemberIDs == nil {
		needs &^= dialect.NeedReceipts
	} else {
		reader.User.ID = e.MemberIDs[0]
	}
	if err := v.hub.dressIn(ctx, reader, needs, m.ConversationID, e.MemberIDs, []*dialect.Message{m}); err != nil {
		return nil, err
	}
	return event.Args(v.d, m.Values())
}

// whole is the message with everything: of another node's there are ids and JSON. One
// from a node that does not know numbers yet is read from the store.
func (v *view) whole(ctx context.Context, e *chat.MessageStored) (*dialect.Message, error) {
	m := &dialect.Message{Message: e.Message}
	if m.Text == "" && len(e.JSON) > 0 {
		if err := json.Unmarshal(e.JSON, &m.Message); err != nil {
			return nil, err
		}
		m.Number = e.Message.Number
	}
	if m.Number == 0 && v.d.Messages == dialect.ByNumber {
		stored, err := v.hub.service.MessagesBetween(ctx, m.ConversationID, m.Seq, m.Seq)
		if err != nil {
			return nil, err
		}
		if len(stored) == 1 {
			m.Number = stored[0].Number
		}
	}
	return m, nil
}

// pageArgs are the arguments of messages that a socket is caught up with; nil if the
// dialect shows nothing of the conversation.
func (v *view) pageArgs(ctx context.Context, c *client, conversation chat.ID, page []chat.Message) ([][]byte, error) {
	event := v.d.Server["message"]
	pair, err := v.hub.service.Pair(ctx, c.caller(), conversation)
	if err != nil || v.hides(pair) || len(page) == 0 {
		return nil, err
	}
	messages := make([]*dialect.Message, len(page))
	for i := range page {
		messages[i] = &dialect.Message{Message: page[i]}
	}
	if err := v.hub.dressIn(ctx, c.caller(), event.Needs(), conversation, pair, messages); err != nil {
		return nil, err
	}
	all := make([][]byte, len(messages))
	for i, m := range messages {
		if all[i], err = event.Args(v.d, m.Values()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// inViews is a message on its way to views: encoded once for each.
type inViews struct {
	views    []*view
	prepared []*socketio.Prepared // nil: not shown, or it could not be encoded
	asks     []bool
	failed   []bool
}

// prepare finds or makes the message as the client's view has it. It is nil where the
// dialect does not show it; a client that it could not be encoded for is closed, and
// comes back to its catch-up.
func (f *fanOut) inView(c *client) (p *socketio.Prepared, asks bool) {
	i := slices.Index(f.in.views, c.view)
	if i < 0 {
		i = len(f.in.views)
		f.in.views = append(f.in.views, c.view)
		args, err := c.view.liveArgs(f.e, f.late)
		var prepared *socketio.Prepared
		var asks bool
		if err == nil && args != nil {
			if prepared, asks, err = c.view.prepareMessage(f.delivery(), args); err == nil {
				f.d.encoded = append(f.d.encoded, prepared)
			}
		}
		if err != nil {
			m := &f.e.Message
			c.hub.log.Warn("a message could not be translated; the connections are closed", "dialect", c.view.d.Name,
				"conversation", m.ConversationID, "seq", m.Seq, "error", err)
		}
		f.in.prepared = append(f.in.prepared, prepared)
		f.in.asks = append(f.in.asks, asks)
		f.in.failed = append(f.in.failed, err != nil)
	}
	if f.in.failed[i] {
		c.socket.Conn().Close()
	}
	return f.in.prepared[i], f.in.asks[i]
}
