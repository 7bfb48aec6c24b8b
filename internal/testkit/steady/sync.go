package steady

import (
	"context"
	"fmt"

	"xabar/chat"
	"xabar/internal/testkit/lightclient"
)

type synced struct {
	Conversation chat.Conversation `json:"conversation"`
	Messages     []chat.Message    `json:"messages"`
	HasMore      bool              `json:"hasMore"`
	Reset        bool              `json:"reset"`
}

type syncAnswer struct {
	Conversations []synced  `json:"conversations"`
	NextCursor    string    `json:"nextCursor"`
	Epoch         string    `json:"epoch"`
	Reset         bool      `json:"reset"`
	Gone          []chat.ID `json:"gone"`
}

// sync brings what was missed, page by page, then takes the live messages that came meanwhile, and
// confirms what it holds.
func (u *User) sync(ctx context.Context, client *lightclient.Client) error {
	positions, epoch := u.positions()
	for cursor := ""; ; {
		var page syncAnswer
		if err := ask(ctx, client, "sync", map[string]any{"positions": positions, "epoch": epoch, "cursor": cursor}, &page); err != nil {
			return err
		}
		u.dropped(&page, cursor == "")
		for i := range page.Conversations {
			if err := u.take(ctx, client, &page.Conversations[i]); err != nil {
				return err
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	for id, seq := range u.caughtUp() {
		var answer struct{}
		if err := ask(ctx, client, "message:delivered", map[string]any{"conversationId": id, "seq": seq}, &answer); err != nil {
			return err
		}
	}
	return nil
}

func (u *User) positions() (positions map[string]any, epoch string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	positions = map[string]any{}
	for id, r := range u.rooms {
		positions[id.String()] = r.held
		if m, ok := r.messages[r.held]; ok && !u.opts.Plain {
			positions[id.String()] = map[string]any{"seq": r.held, "id": m.ID}
		}
	}
	if !u.opts.Plain {
		epoch = u.epoch
	}
	return positions, epoch
}

// dropped forgets what the answer says is of another history.
func (u *User) dropped(page *syncAnswer, first bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.epoch = page.Epoch
	if page.Reset && first {
		u.restored = true
		u.resets += len(u.rooms)
		u.rooms = map[chat.ID]*room{}
	}
	for i := range page.Conversations {
		if id := page.Conversations[i].Conversation.ID; page.Conversations[i].Reset && !page.Reset {
			u.resets++
			delete(u.rooms, id)
		}
	}
	for _, id := range page.Gone {
		u.gone++
		delete(u.rooms, id)
	}
}

// take takes a conversation's news, and goes on by history where there is more.
func (u *User) take(ctx context.Context, client *lightclient.Client, s *synced) error {
	for messages, more := s.Messages, s.HasMore; ; {
		u.mu.Lock()
		r := u.room(s.Conversation.ID)
		for _, m := range messages {
			u.keep(r, m)
			r.held = max(r.held, m.Seq) // what is left out are holes
		}
		after := r.held
		u.mu.Unlock()
		if !more {
			return nil
		}
		var page struct {
			Messages []chat.Message `json:"messages"`
			HasMore  bool           `json:"hasMore"`
		}
		if err := ask(ctx, client, "history", map[string]any{"conversationId": s.Conversation.ID, "afterSeq": after}, &page); err != nil {
			return err
		}
		messages, more = page.Messages, page.HasMore
	}
}

// caughtUp ends the sync and gives what it holds now.
func (u *User) caughtUp() map[chat.ID]int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, m := range u.early {
		u.hear(m)
	}
	u.early, u.syncing = nil, false
	held := make(map[chat.ID]int64, len(u.rooms))
	for id, r := range u.rooms {
		if r.advance(); r.held > 0 {
			held[id] = r.held
		}
	}
	return held
}

// Differences compares what it holds of a conversation with the server's history: what is missing,
// what is there that the server lacks, and what is not the same.
func (u *User) Differences(ctx context.Context, conversation chat.ID) (list []string, stored int, err error) {
	held := map[int64]chat.Message{}
	for _, m := range u.Messages(conversation) {
		held[m.Seq] = m
	}
	for after, more := int64(0), true; more; {
		var page struct {
			Messages []chat.Message `json:"messages"`
			HasMore  bool           `json:"hasMore"`
		}
		if err := u.Ask(ctx, "history", map[string]any{"conversationId": conversation, "afterSeq": after}, &page); err != nil {
			return nil, 0, err
		}
		for _, m := range page.Messages {
			after = m.Seq
			stored++
			switch mine, ok := held[m.Seq]; {
			case !ok:
				list = append(list, fmt.Sprintf("lacks %d %q", m.Seq, m.Text))
			case mine != m:
				list = append(list, fmt.Sprintf("holds %d as %q, stored is %q", m.Seq, mine.Text, m.Text))
			}
			delete(held, m.Seq)
		}
		more = page.HasMore
	}
	for seq, m := range held {
		list = append(list, fmt.Sprintf("holds %d %q, which is not stored", seq, m.Text))
	}
	return list, stored, nil
}
