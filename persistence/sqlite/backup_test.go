package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"xabar/chat"
)

func openAt(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func epochOf(t *testing.T, s *Store) chat.ID {
	t.Helper()
	check, err := s.CheckPositions(t.Context(), chat.NewID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return check.Epoch
}

// A copy under load holds everything that was answered before it began, and what opens it begins a
// new epoch, once.
func TestBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "x.db"), filepath.Join(dir, "copy.db")
	s := openAt(t, path)
	ctx := t.Context()
	var users [2]chat.User
	for i := range users {
		var err error
		if users[i], err = s.EnsureUser(ctx, chat.UserRef(fmt.Sprint("u", i)), "U"); err != nil {
			t.Fatal(err)
		}
	}
	c, _, err := s.OpenDirect(ctx, users[0].ID, users[1].ID)
	if err != nil {
		t.Fatal(err)
	}
	send := func(n int) (last int64) {
		var all sync.WaitGroup
		for i := range n {
			all.Add(1)
			s.Send(ctx, chat.SendMessage{SenderID: users[0].ID, ConversationID: c.ID, ClientMsgID: chat.NewID().String(), Text: fmt.Sprint(i)},
				func(r chat.SendResult, err error) {
					defer all.Done()
					if err != nil {
						t.Error(err)
					}
					last = max(last, r.Message.Seq)
				})
		}
		all.Wait()
		return last
	}
	before := send(300)
	var sending sync.WaitGroup
	stop := make(chan struct{})
	sending.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				send(20)
			}
		}
	})
	size, err := Backup(ctx, path, copied)
	close(stop)
	sending.Wait()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(copied)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != size {
		t.Errorf("the copy has mode %v and %d bytes, not %d, %v", info.Mode(), info.Size(), size, err)
	}
	if files, err := filepath.Glob(copied + "?*"); err != nil || len(files) > 0 {
		t.Errorf("beside it stands %v, %v", files, err)
	}
	restored := openAt(t, copied)
	page, err := restored.History(ctx, users[1].ID, chat.HistoryQuery{ConversationID: c.ID, Limit: 1})
	if err != nil || page.LastSeq < before || page.Messages[0].Seq != page.LastSeq {
		t.Errorf("the copy ends at %d, %d were answered before it, %v", page.LastSeq, before, err)
	}
	old, fresh := epochOf(t, s), epochOf(t, restored)
	if old == fresh || fresh == (chat.ID{}) {
		t.Errorf("the copy's epoch is %v, the original's %v", fresh, old)
	}
	if again := epochOf(t, openAt(t, copied)); again != fresh {
		t.Errorf("opened again it has the epoch %v, after %v", again, fresh)
	}
	if again := epochOf(t, openAt(t, path)); again != old {
		t.Errorf("the original has the epoch %v, after %v", again, old)
	}
	if _, err := Backup(ctx, path, copied); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file that is there: %v", err)
	}
	if _, err := Backup(ctx, path, filepath.Join(dir, "no", "folder.db")); err == nil {
		t.Error("into no folder it says nothing")
	}
}
