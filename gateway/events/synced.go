package events

import (
	"time"

	"xabar/chat"
)

// A message that is read from the store late, to close a gap, may be one that a socket already has
// from its sync: clocks don't tell for what was stored within clockSkew before it connected. What
// the sync named and brought does.
const (
	// syncedFor is how long a client's positions are kept after its sync. In a conversation that
	// nobody wrote into for so long, a message may come again; clients keep messages by seq.
	syncedFor = time.Minute
	// maxSynced conversations of a client are remembered.
	maxSynced = 512
)

// noteSynced keeps what the client holds after an answer to its sync. What it claims wrongly
// hides nothing but messages that it says it has.
func (c *client) noteSynced(named map[chat.ID]chat.SyncPosition, page *chat.SyncPage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.synced == nil {
		c.synced = make(map[chat.ID]int64, min(maxSynced, len(named)))
	}
	note := func(conversation chat.ID, seq int64) {
		if len(c.synced) < maxSynced {
			c.synced[conversation] = max(seq, c.synced[conversation])
		}
	}
	if !page.Reset {
		for conversation, position := range named {
			note(conversation, position.Seq)
		}
	}
	for i := range page.Conversations {
		s := &page.Conversations[i]
		if s.Reset {
			delete(c.synced, s.Conversation.ID)
		}
		if n := len(s.Messages); n > 0 {
			note(s.Conversation.ID, s.Messages[n-1].Seq)
		}
	}
	if c.unsync != nil {
		c.unsync.Stop()
	}
	if !c.closed.Load() {
		c.unsync = time.AfterFunc(syncedFor, c.forgetSynced)
	}
}

func (c *client) forgetSynced() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.synced = nil
}

// holds says that the client's sync has shown that it has this message.
func (c *client) holds(conversation chat.ID, seq int64) bool {
	if !c.sync {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return seq <= c.synced[conversation]
}
