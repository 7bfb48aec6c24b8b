package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"xabar/chat"
)

// crashEnv makes the test binary the process that is killed: it names the
// database.
const crashEnv = "XABAR_TEST_CRASH_DB"

// TestKilledProcess kills a process that sends as fast as it can: everything that
// it had answered is there, once and in order, and the outbox has what it had not
// shown.
func TestKilledProcess(t *testing.T) {
	if path := os.Getenv(crashEnv); path != "" {
		sendForever(t, path)
		return
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	s := open(t, path, Options{})
	a, b, c := somePair(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var answered []string
	for range 3 {
		answered = append(answered, killedSender(t, path, len(answered))...)
	}
	s = open(t, path, Options{})
	defer s.Close()
	stored := map[string]int64{}
	var last int64
	for after := int64(0); ; {
		page, err := s.History(t.Context(), b, chat.HistoryQuery{ConversationID: c, AfterSeq: &after})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Messages {
			if _, twice := stored[m.ClientMsgID]; twice || m.Seq <= last || m.SenderID != a {
				t.Errorf("after the kill: %+v follows %d", m, last)
			}
			stored[m.ClientMsgID], last = m.Seq, m.Seq
		}
		if after = last; !page.HasMore {
			break
		}
	}
	for _, line := range answered {
		var id string
		var seq int64
		if _, err := fmt.Sscan(line, &id, &seq); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if stored[id] != seq {
			t.Errorf("%s was answered with seq %d and is stored with %d", id, seq, stored[id])
		}
	}
	var waiting int
	if _, err := one(t.Context(), s.reader, "SELECT count(*) FROM outbox", nil, &waiting); err != nil || waiting != len(stored) {
		t.Errorf("%d events wait for their fan-out, %v; want %d", waiting, err, len(stored))
	}
	t.Logf("%d answered, %d stored", len(answered), len(stored))
}

// killedSender runs the sender, kills it after a hundred answers and returns all
// that it gave.
func killedSender(t *testing.T, path string, round int) (answered []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKilledProcess$")
	cmd.Env = append(os.Environ(), crashEnv+"="+path, fmt.Sprintf("XABAR_TEST_CRASH_ROUND=%d", round))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if line, ok := strings.CutPrefix(lines.Text(), "answered "); ok {
			answered = append(answered, line)
		}
		if len(answered) == 100 {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || len(answered) < 100 {
		t.Fatalf("the sender ended by itself after %d answers: %v", len(answered), err)
	}
	return answered
}

func sendForever(t *testing.T, path string) {
	s := open(t, path, Options{})
	a, _, c := somePair(t, s)
	var mu sync.Mutex // keeps lines whole
	slots := make(chan struct{}, 20)
	for n := 0; ; n++ {
		slots <- struct{}{}
		id := fmt.Sprintf("%s-%d", os.Getenv("XABAR_TEST_CRASH_ROUND"), n)
		s.Send(t.Context(), chat.SendMessage{SenderID: a, ConversationID: c, ClientMsgID: id, Text: "x"},
			func(res chat.SendResult, err error) {
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					fmt.Println("failed", err)
				} else {
					fmt.Println("answered", id, res.Message.Seq)
				}
				<-slots
			})
	}
}

// somePair is two users, the same ones each time, and their conversation.
func somePair(t testing.TB, s *Store) (a, b, conversation chat.ID) {
	t.Helper()
	users := make([]chat.ID, 2)
	for i := range users {
		u, err := s.EnsureUser(t.Context(), chat.UserRef(fmt.Sprint("u", i)), fmt.Sprint("u", i))
		if err != nil {
			t.Fatal(err)
		}
		users[i] = u.ID
	}
	c, _, err := s.OpenDirect(t.Context(), users[0], users[1])
	if err != nil {
		t.Fatal(err)
	}
	return users[0], users[1], c.ID
}

// TestOneReader: nobody who holds the only connection waits for another one.
func TestOneReader(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "x.db"), Options{Readers: 1})
	defer s.Close()
	a, b, c := somePair(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for range 20 {
		for _, call := range []func() error{
			func() error { _, err := s.Sync(ctx, a, chat.SyncQuery{}); return err },
			func() error {
				_, err := s.History(ctx, b, chat.HistoryQuery{ConversationID: c})
				return err
			},
			func() error { _, err := s.Conversations(ctx, a, chat.PageRequest{}); return err },
			func() error { _, err := s.Session(ctx, b); return err },
		} {
			all.Go(func() {
				if err := call(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
}
