package postgres

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
	"xabar/internal/testkit/pgtest"
)

// acked is a message whose sender was told that it is stored.
type acked struct {
	clientMsgID string
	seq         int64
}

// crashLoad is senders who repeat each message until it is acknowledged.
type crashLoad struct {
	t      *testing.T
	store  *Store
	count  atomic.Int64  // acknowledged
	failed atomic.Int64  // answers that asked for a repeat
	stop   chan struct{} // closed: no further message is begun
}

// run sends one sender's messages, each after the one before.
func (l *crashLoad) run(sender, peer, conversation chat.ID) (log []acked) {
	for i := 0; ; i++ {
		select {
		case <-l.stop:
			return log
		default:
		}
		id := fmt.Sprintf("%s-%d", sender, i)
		res := l.untilStored(chat.SendMessage{SenderID: sender, ConversationID: conversation, ClientMsgID: id, Text: id})
		log = append(log, acked{id, res.Message.Seq})
		l.store.CloseOutbox(chat.OutboxKey{ConversationID: conversation, Seq: res.Message.Seq})
		l.store.MovePosition(l.t.Context(), chat.PositionMove{
			Kind: chat.Delivered, UserID: peer, ConversationID: conversation, UpTo: res.Message.Seq,
		}, func(chat.PositionResult, error) {})
		l.count.Add(1)
	}
}

func (l *crashLoad) untilStored(cmd chat.SendMessage) chat.SendResult {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		res, err := send(ctx, l.store, cmd)
		cancel()
		if err == nil {
			return res
		}
		if code := chat.CodeOf(err); code != chat.CodeUnavailable && code != chat.CodeTimeout {
			l.t.Errorf("a crash of the database is answered with %v", err)
			return res
		}
		l.failed.Add(1)
		time.Sleep(10 * time.Millisecond) // a client's backoff
	}
}

// TestDatabaseCrashes restarts PostgreSQL as pg_ctl restart -m immediate does under
// senders who repeat. What was acknowledged is there once, in the order of each
// sender.
func TestDatabaseCrashes(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	url, err := server.Database(t.Context(), "crash")
	if err != nil {
		t.Fatal(err)
	}
	s := openURL(t, url, Options{})
	const pairs = 12
	people := users(t, s, 2*pairs)
	load := &crashLoad{t: t, store: s, stop: make(chan struct{})}
	logs := make([][]acked, 2*pairs)
	conversations := make([]chat.ID, 2*pairs)
	var wg sync.WaitGroup
	for i := range people {
		peer := people[i^1]
		conversations[i] = direct(t, s, people[i], peer)
		wg.Go(func() { logs[i] = load.run(people[i], peer, conversations[i]) })
	}
	for range 4 {
		target := load.count.Load() + 400
		eventually(t, "sends go on", func() bool { return load.count.Load() >= target })
		if err := server.Restart(true); err != nil {
			t.Fatal(err)
		}
	}
	target := load.count.Load() + 400
	eventually(t, "service resumes by itself", func() bool { return load.count.Load() >= target })
	close(load.stop)
	wg.Wait()
	if load.failed.Load() == 0 {
		t.Error("no send met a crash: the test shows nothing")
	}
	t.Logf("%d acknowledged, %d answers asked for a repeat", load.count.Load(), load.failed.Load())
	checkStored(t, url, people, conversations, logs)
}

func checkStored(t *testing.T, url string, people, conversations []chat.ID, logs [][]acked) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background()) //nolint:errcheck // the test is over
	for i, log := range logs {
		stored := map[string][]int64{}
		rows, err := conn.Query(t.Context(), `SELECT client_msg_id, seq FROM messages WHERE sender_id = $1 AND conversation_id = $2`, people[i], conversations[i])
		if err != nil {
			t.Fatal(err)
		}
		var id string
		var seq int64
		if _, err := pgx.ForEachRow(rows, []any{&id, &seq}, func() error {
			stored[id] = append(stored[id], seq)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if len(stored) != len(log) {
			t.Errorf("sender %d: %d stored, %d acknowledged", i, len(stored), len(log))
		}
		last := int64(0)
		for _, a := range log {
			if seqs := stored[a.clientMsgID]; len(seqs) != 1 || seqs[0] != a.seq {
				t.Errorf("%s was acknowledged as %d and is stored as %v", a.clientMsgID, a.seq, seqs)
			}
			if a.seq <= last {
				t.Errorf("%s has seq %d after %d", a.clientMsgID, a.seq, last)
			}
			last = a.seq
		}
	}
}

// TestDatabaseStopped: while there is no database everything says unavailable, and
// it works again when there is one.
func TestDatabaseStopped(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	url, err := server.Database(t.Context(), "stopped")
	if err != nil {
		t.Fatal(err)
	}
	s := openURL(t, url, Options{})
	u := users(t, s, 2)
	c := direct(t, s, u[0], u[1])
	cmd := chat.SendMessage{SenderID: u[0], ConversationID: c, ClientMsgID: "x", Text: "x"}
	if err := server.Stop(false); err != nil {
		t.Fatal(err)
	}
	_, err = send(t.Context(), s, cmd)
	wantCode(t, err, chat.CodeUnavailable)
	_, err = move(t.Context(), s, chat.PositionMove{Kind: chat.Read, UserID: u[1], ConversationID: c, UpTo: 1})
	wantCode(t, err, chat.CodeUnavailable)
	_, err = s.History(t.Context(), u[0], chat.HistoryQuery{ConversationID: c})
	wantCode(t, err, chat.CodeUnavailable)
	_, err = s.Sync(t.Context(), u[0], chat.SyncQuery{})
	wantCode(t, err, chat.CodeUnavailable)
	_, _, err = s.OpenDirect(t.Context(), u[0], u[1])
	wantCode(t, err, chat.CodeUnavailable)
	wantCode(t, s.Ping(t.Context()), chat.CodeUnavailable)
	_, err = Open(t.Context(), url, Options{Migrate: true})
	wantCode(t, err, chat.CodeUnavailable)

	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "service resumes", func() bool {
		res, err := send(t.Context(), s, cmd)
		return err == nil && res.Message.Seq == 1
	})
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func wantCode(tb testing.TB, err error, want chat.Code) {
	tb.Helper()
	if got := chat.CodeOf(err); got != want {
		tb.Errorf("got %v, want %s", err, want)
	}
}
