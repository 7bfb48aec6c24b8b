package sqlite

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"xabar/chat"
)

// BenchmarkSend is a store with so many senders that each wait for their answer:
// how sharing a transaction pays.
func BenchmarkSend(b *testing.B) {
	for _, senders := range []int{1, 32, 256} {
		b.Run(fmt.Sprintf("waiting=%d", senders), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "x.db"), Options{})
			defer s.Close()
			me, err := s.EnsureUser(b.Context(), "me", "me")
			if err != nil {
				b.Fatal(err)
			}
			conversations := make([]chat.ID, senders)
			for i := range conversations {
				u, err := s.EnsureUser(b.Context(), chat.UserRef(fmt.Sprint(i)), "peer")
				if err != nil {
					b.Fatal(err)
				}
				c, _, err := s.OpenDirect(b.Context(), me.ID, u.ID)
				if err != nil {
					b.Fatal(err)
				}
				conversations[i] = c.ID
			}
			b.ReportAllocs()
			b.ResetTimer()
			var all sync.WaitGroup
			for i, c := range conversations {
				all.Go(func() {
					done := make(chan error, 1)
					for n := i; n < b.N; n += senders {
						s.Send(b.Context(), chat.SendMessage{SenderID: me.ID, ConversationID: c, ClientMsgID: fmt.Sprint(n), Text: "hello there, how are you?"},
							func(res chat.SendResult, err error) {
								if err == nil {
									s.CloseOutbox(chat.OutboxKey{ConversationID: c, Seq: res.Message.Seq})
								}
								done <- err
							})
						if err := <-done; err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sends/s")
		})
	}
}

// BenchmarkLists is a user with 10,000 conversations: pages of the list, sync
// without news, and a session.
func BenchmarkLists(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "x.db"), Options{})
	defer s.Close()
	me, positions := manyConversations(b, s, 10000)
	var cursor string
	for name, call := range map[string]func() error{
		"list": func() error {
			page, err := s.Conversations(b.Context(), me, chat.PageRequest{})
			cursor = page.NextCursor
			return err
		},
		"nextPage": func() error {
			_, err := s.Conversations(b.Context(), me, chat.PageRequest{Cursor: cursor})
			return err
		},
		"sync":    func() error { _, err := s.Sync(b.Context(), me, chat.SyncQuery{Positions: positions}); return err },
		"session": func() error { _, err := s.Session(b.Context(), me); return err },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func manyConversations(b *testing.B, s *Store, n int) (me chat.ID, positions map[chat.ID]chat.SyncPosition) {
	b.Helper()
	u, err := s.EnsureUser(b.Context(), "me", "me")
	if err != nil {
		b.Fatal(err)
	}
	positions = map[chat.ID]chat.SyncPosition{}
	var mu sync.Mutex // guards positions
	var all sync.WaitGroup
	for worker := range 64 {
		all.Go(func() {
			for i := worker; i < n; i += 64 {
				peer, err := s.EnsureUser(b.Context(), chat.UserRef(fmt.Sprint(i)), "peer")
				if err != nil {
					b.Error(err)
					return
				}
				c, _, err := s.OpenDirect(b.Context(), u.ID, peer.ID)
				if err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				positions[c.ID] = chat.SyncPosition{}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return u.ID, positions
}
