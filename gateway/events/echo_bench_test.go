package events_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"xabar/chat"
	"xabar/gateway/events"
	"xabar/gateway/socketio"
	"xabar/gateway/socketio/socketiotest"
	"xabar/rooms"
)

// quickStore answers at once, out of memory: what is left of an echo is the gateway's
// share. It knows two users, "1" and "2", and their conversation.
type quickStore struct {
	chat.Store
	users        [2]chat.User
	conversation chat.ID

	mu  sync.Mutex // guards seq
	seq int64
}

func newQuickStore() *quickStore {
	s := &quickStore{conversation: chat.NewID()}
	for i := range s.users {
		external := fmt.Sprint(i + 1)
		s.users[i] = chat.User{ID: chat.NewID(), ExternalID: &external, Name: external}
	}
	return s
}

func (s *quickStore) members() []chat.ID { return []chat.ID{s.users[0].ID, s.users[1].ID} }

func (s *quickStore) EnsureUser(_ context.Context, ref chat.UserRef, _ string) (chat.User, error) {
	users, err := s.ResolveUsers(context.Background(), []chat.UserRef{ref})
	if err != nil {
		return chat.User{}, err
	}
	return users[0], nil
}

func (s *quickStore) ResolveUsers(_ context.Context, refs []chat.UserRef) (found []chat.User, err error) {
	for _, ref := range refs {
		for _, user := range s.users {
			if string(ref) == *user.ExternalID || string(ref) == user.ID.String() {
				found = append(found, user)
			}
		}
	}
	if len(found) != len(refs) {
		err = chat.Errorf(chat.CodeNotFound, "")
	}
	return found, err
}

func (s *quickStore) OpenDirect(context.Context, chat.ID, chat.ID) (chat.Conversation, bool, error) {
	return chat.Conversation{ID: s.conversation, Kind: chat.Direct}, false, nil
}

func (s *quickStore) Session(context.Context, chat.ID) (chat.Session, error) {
	return chat.Session{}, nil
}

func (s *quickStore) UnreadTotals(context.Context, []chat.ID) (map[chat.ID]int64, error) {
	return nil, nil
}

func (s *quickStore) SetLastSeen(context.Context, map[chat.ID]time.Time) error { return nil }

func (s *quickStore) Send(_ context.Context, cmd chat.SendMessage, done func(chat.SendResult, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	done(chat.SendResult{
		Message: chat.Message{
			ID: chat.NewID(), ConversationID: cmd.ConversationID, Seq: s.seq, Version: s.seq, SenderID: cmd.SenderID,
			ClientMsgID: cmd.ClientMsgID, Text: cmd.Text, Number: s.seq,
		},
		Kind: chat.Direct, MemberIDs: s.members(), MemberCount: 2,
	}, nil)
}

// MovePosition moves nothing, so that nothing is announced.
func (s *quickStore) MovePosition(_ context.Context, move chat.PositionMove, done func(chat.PositionResult, error)) {
	done(chat.PositionResult{NewDelivered: move.UpTo, OldDelivered: move.UpTo, LastSeq: move.UpTo}, nil)
}

func (s *quickStore) HurryPositions(chat.ID) {}

func (s *quickStore) CloseOutbox(chat.OutboxKey, ...chat.Due) {}

func (s *quickStore) ClaimOutbox(context.Context, int) ([]chat.OutboxEvent, error) { return nil, nil }

// startQuick runs a hub on the store; config says what is special about it.
func startQuick(b testing.TB, store *quickStore, config events.Config) (url string) {
	b.Helper()
	config.Authenticate = func(ctx context.Context, token string) (chat.Actor, error) {
		user, err := store.EnsureUser(ctx, chat.UserRef(token), "")
		return chat.Actor{User: user}, err
	}
	hub := events.New(config)
	presence := rooms.NewMemoryPresence(chat.SystemClock{}, store.SetLastSeen, nil)
	service := chat.NewService(chat.ServiceConfig{Store: store, Broadcaster: hub, Presence: presence})
	io := socketio.NewServer(socketio.Options{})
	hub.Attach(service, presence, io.Of("/"))
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = hub.Run(ctx) })
	b.Cleanup(func() { // after the server's, which Start registers below
		if err := presence.Close(); err != nil {
			b.Error(err)
		}
		stop()
		running.Wait()
	})
	return socketiotest.Start(b, io)
}

// echo sends windows of messages from one client to the other, which acknowledges each,
// and reads every answer.
func echo(b *testing.B, from, to *socketiotest.Client, packet func(i int) string, delivered string) {
	b.Helper()
	const window = 16
	b.ReportAllocs()
	before := cpuTime(b)
	for i := 0; b.Loop(); i += window {
		for k := range window {
			from.Send(packet(i + k))
		}
		for range window {
			got := to.Next()
			if !strings.Contains(got, delivered) {
				b.Fatalf("the recipient got %s", got)
			}
			head, _, _ := strings.Cut(strings.TrimPrefix(got, "42"), "[") // namespace and id
			to.Send("3" + head + "[]")
		}
		for range window {
			if got := from.Next(); !strings.HasPrefix(got, "43") || strings.Contains(got, `"ok":false`) {
				b.Fatalf("the sender got %s", got)
			}
		}
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N*window), "cpu-ns/message")
}

// cpuTime is what the process has used so far: it repeats better than time on a wall.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func connectStandard(b testing.TB, url, user string) *socketiotest.Client {
	c := socketiotest.Dial(b, url, socketiotest.Options{})
	c.Connect("/", fmt.Sprintf(`{"token":%q,"sync":true}`, user))
	c.Next() // session
	// What is stored before the connection is ready a client learns by its sync, and this one does
	// not sync. Events are handled from then on.
	c.Send(`21["an:event:that:nobody:knows"]`)
	c.Next()
	return c
}

// BenchmarkEcho is the standard path: message:send, its answer, and the delivery with
// its acknowledgement.
func BenchmarkEcho(b *testing.B) {
	store := newQuickStore()
	url := startQuick(b, store, events.Config{})
	echoStandard(b, store, url)
}

func echoStandard(b *testing.B, store *quickStore, url string) {
	from, to := connectStandard(b, url, "1"), connectStandard(b, url, "2")
	echo(b, from, to, func(i int) string {
		return fmt.Sprintf(`2%d["message:send",{"conversationId":%q,"clientMsgId":"m%d","text":"a message of common length, say"}]`,
			i, store.conversation, i)
	}, `["message",{`)
}
