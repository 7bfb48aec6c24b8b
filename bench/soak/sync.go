package main

import (
	"context"
	"encoding/json"
	"fmt"

	"xabar/bench/soak/check"
	"xabar/chat"
)

// synced is a conversation in the answer to sync.
type synced struct {
	Conversation chat.Conversation
	Messages     []chat.Message
	HasMore      bool
}

// catchUp does what a client does that keeps its own positions: sync, history where there
// is more, and then live messages leave no gap behind them.
func (c *connection) catchUp(ctx context.Context) error {
	record := c.d.record
	positions := map[string]int64{}
	for id, seq := range record.Positions() {
		positions[id.String()] = seq
	}
	reached := map[chat.ID]int64{}
	for cursor := ""; ; {
		payload := obj{"positions": positions}
		if cursor != "" {
			payload["cursor"] = cursor
		}
		r, err := c.ask(ctx, "sync", payload)
		if err != nil {
			return err
		}
		var news []synced
		if err := json.Unmarshal(r.Conversations, &news); err != nil {
			return fmt.Errorf("sync: %w", err)
		}
		for i := range news {
			id := news[i].Conversation.ID
			if reached[id], err = c.catchUpOne(ctx, &news[i], positions[id.String()]); err != nil {
				return err
			}
		}
		if r.NextCursor == nil || *r.NextCursor == "" {
			break
		}
		cursor = *r.NextCursor
	}
	for id, seq := range reached {
		if seq == 0 {
			continue
		}
		if _, err := c.ask(ctx, "message:delivered", obj{"conversationId": id, "seq": seq}); err != nil {
			return err
		}
		record.Advance(id, seq)
	}
	// From the lock on, hear advances; what was heard before joins what was synced.
	c.mu.Lock()
	c.synced = true
	c.mu.Unlock()
	for id, seq := range c.order.High() {
		record.Advance(id, seq)
	}
	return nil
}

// catchUpOne takes a conversation's news up to their end, and returns how far that is.
func (c *connection) catchUpOne(ctx context.Context, news *synced, after int64) (int64, error) {
	id := news.Conversation.ID
	messages, more := news.Messages, news.HasMore
	for {
		for i := range messages {
			m := &messages[i]
			if m.Seq <= after {
				c.d.s.faults.Add(check.Reordered, "%s was given seq %d of %s after %d by sync or history", c.d.name, m.Seq, id, after)
			}
			after = m.Seq
			if c.d.record.Keep(m) {
				c.d.s.stats.synced.Add(1)
			}
		}
		if !more {
			return after, nil
		}
		r, err := c.ask(ctx, "history", obj{"conversationId": id, "afterSeq": after})
		if err != nil {
			return 0, err
		}
		messages, more = r.Messages, r.HasMore
	}
}
