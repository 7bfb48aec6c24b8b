package postgres

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"xabar/chat"
	"xabar/internal/testkit/pgtest"
)

func TestMain(m *testing.M) {
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// open opens a Store on a migrated database of its own.
func open(tb testing.TB, opts Options) *Store {
	tb.Helper()
	return openURL(tb, pgtest.Database(tb), opts)
}

func openURL(tb testing.TB, url string, opts Options) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), url, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// users makes n users.
func users(tb testing.TB, s *Store, n int) []chat.ID {
	tb.Helper()
	ids := make([]chat.ID, n)
	for i := range ids {
		u, err := s.EnsureUser(tb.Context(), chat.UserRef(chat.NewID().String()), fmt.Sprintf("user %d", i))
		if err != nil {
			tb.Fatal(err)
		}
		ids[i] = u.ID
	}
	return ids
}

func direct(tb testing.TB, s *Store, a, b chat.ID) chat.ID {
	tb.Helper()
	c, _, err := s.OpenDirect(tb.Context(), a, b)
	if err != nil {
		tb.Fatal(err)
	}
	return c.ID
}

// send stores one message and waits for the answer.
func send(ctx context.Context, s *Store, cmd chat.SendMessage) (res chat.SendResult, err error) {
	var wg sync.WaitGroup
	wg.Add(1)
	s.Send(ctx, cmd, func(r chat.SendResult, e error) {
		res, err = r, e
		wg.Done()
	})
	wg.Wait()
	return res, err
}

func mustSend(tb testing.TB, s *Store, sender, conversation chat.ID, text string) chat.SendResult {
	tb.Helper()
	res, err := send(tb.Context(), s, chat.SendMessage{SenderID: sender, ConversationID: conversation, ClientMsgID: chat.NewID().String(), Text: text})
	if err != nil {
		tb.Fatal(err)
	}
	return res
}

// move moves a position and waits for the answer.
func move(ctx context.Context, s *Store, m chat.PositionMove) (res chat.PositionResult, err error) {
	var wg sync.WaitGroup
	wg.Add(1)
	s.MovePosition(ctx, m, func(r chat.PositionResult, e error) {
		res, err = r, e
		wg.Done()
	})
	wg.Wait()
	return res, err
}

func mustMove(tb testing.TB, s *Store, m chat.PositionMove) chat.PositionResult {
	tb.Helper()
	res, err := move(tb.Context(), s, m)
	if err != nil {
		tb.Fatal(err)
	}
	return res
}

// eventually waits for a condition that no signal tells.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			tb.Fatalf("not in time: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
