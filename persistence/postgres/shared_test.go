package postgres

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"xabar/chat"
)

// TestSharedReadsAreEachUsersOwn lets users connect at one moment, who all differ in what they
// have, hold and lack, some of them in more than is shared.
func TestSharedReadsAreEachUsersOwn(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	const n = 3 * shareBatch
	us := users(t, s, n+1)
	other := us[n]
	conversations := make([][]chat.ID, n)
	for i := range n {
		for range 1 + i%3*lightSync/2 { // 1, 5 or 9
			conversations[i] = append(conversations[i], direct(t, s, us[i], us[(i+1+len(conversations[i]))%n]))
		}
		messages := 1 + i%4
		if i == 7 {
			messages = 2 * lightSyncMessages
		}
		for range messages {
			mustSend(t, s, us[i], conversations[i][0], fmt.Sprintf("from %d", i))
		}
	}
	var all sync.WaitGroup
	for i, user := range us[:n] {
		all.Go(func() { checkConnecting(t, s, user, conversations[i]) })
	}
	all.Wait()
	if session, err := s.Session(t.Context(), other); err != nil || session.UnreadTotal != 0 || len(session.Undelivered) != 0 {
		t.Errorf("a stranger's session: %+v, %v", session, err)
	}
}

// checkConnecting compares what a user reads together with others with the view of the user alone.
func checkConnecting(t *testing.T, s *Store, user chat.ID, own []chat.ID) {
	session, err := s.Session(t.Context(), user)
	if err != nil {
		t.Error(err)
		return
	}
	list, err := s.Conversations(t.Context(), user, chat.PageRequest{Limit: chat.PageLimit})
	if err != nil {
		t.Error(err)
		return
	}
	views := map[chat.ID]chat.Conversation{}
	behind := map[chat.ID]int64{}
	held := map[chat.ID]chat.SyncPosition{}
	for _, c := range list.Conversations {
		views[c.ID] = c
		if c.LastDeliveredSeq < c.LastSeq {
			behind[c.ID] = c.LastSeq
		}
		held[c.ID] = chat.SyncPosition{Seq: c.LastSeq, Version: c.Version}
	}
	for _, u := range session.Undelivered {
		if behind[u.ConversationID] != u.LastSeq {
			t.Errorf("undelivered: %+v, want one of %v", u, behind)
		}
	}
	if session.UnreadTotal != list.UnreadTotal || len(session.Undelivered) != len(behind) {
		t.Errorf("session %+v, list %d unread, %d behind", session, list.UnreadTotal, len(behind))
	}
	for _, id := range own {
		if _, ok := views[id]; !ok {
			t.Errorf("a conversation of one's own is missing")
		}
	}

	if check, err := s.CheckPositions(t.Context(), user, held); err != nil || !check.Current || len(check.News) != len(behind) {
		t.Errorf("the check of all: %+v, %v", check, err)
	}
	held[own[0]] = chat.SyncPosition{}
	if check, err := s.CheckPositions(t.Context(), user, held); err != nil || check.Current {
		t.Errorf("the check of all but one: %+v, %v", check, err)
	}
	checkSyncs(t, s, user, own[0], held, views)
}

// checkSyncs syncs with nothing of one conversation, and with nothing at all.
func checkSyncs(t *testing.T, s *Store, user, lacks chat.ID, held map[chat.ID]chat.SyncPosition, views map[chat.ID]chat.Conversation) {
	for _, positions := range []map[chat.ID]chat.SyncPosition{held, nil} {
		page, err := s.Sync(t.Context(), user, chat.SyncQuery{Positions: positions})
		if err != nil {
			t.Error(err)
			return
		}
		var got, want []chat.ID
		for _, c := range page.Conversations {
			got = append(got, c.Conversation.ID)
			messages := min(views[c.Conversation.ID].LastSeq, chat.PageLimit)
			if len(c.Messages) != int(messages) || c.HasMore != (views[c.Conversation.ID].LastSeq > chat.PageLimit) {
				t.Errorf("%d messages, more %v, of %d", len(c.Messages), c.HasMore, views[c.Conversation.ID].LastSeq)
			}
			for i, m := range c.Messages {
				if m.Seq != int64(i+1) || m.ConversationID != c.Conversation.ID {
					t.Errorf("message %d is %+v", i, m)
				}
			}
		}
		for id := range views {
			if positions == nil || id == lacks && views[id].LastSeq > 0 {
				want = append(want, id)
			}
		}
		slices.SortFunc(want, func(a, b chat.ID) int { return slices.Compare(a[:], b[:]) })
		if !slices.Equal(got, want) || page.NextCursor != "" {
			t.Errorf("a sync brings %v, want %v (%q)", got, want, page.NextCursor)
		}
	}
}

func TestSharedReadsEndWithTheStore(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	user := users(t, s, 1)[0]
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, session := s.Session(t.Context(), user)
	_, check := s.CheckPositions(t.Context(), user, nil)
	_, sync := s.Sync(t.Context(), user, chat.SyncQuery{})
	for _, err := range []error{session, check, sync} {
		if chat.CodeOf(err) != chat.CodeUnavailable {
			t.Errorf("%v, want unavailable", err)
		}
	}
}
