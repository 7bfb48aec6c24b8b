// Package notify tests that users are told of messages also when nodes die: the real
// binary, both databases, a webhook as the channel.
package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"xabar/internal/testkit"
	"xabar/internal/testkit/pgtest"
	"xabar/internal/testkit/redistest"
)

func TestMain(m *testing.M) { testkit.Main(m, pgtest.StopShared) }

// patience is for a wait of 10 s, several restarts, what the queue takes to give up on
// a node, and a machine that does other things.
const patience = 3 * time.Minute

// hook is a webhook that counts what each user is told.
type hook struct {
	url string

	mu    sync.Mutex     // guards the fields below
	told  map[string]int // by the user's name
	ids   map[string]int // by the notification's id
	first func()         // called by the first request instead of an answer
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{told: map[string]int{}, ids: map[string]int{}}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var n struct {
		ID   string
		User struct{ Name string }
	}
	if err == nil {
		err = json.Unmarshal(body, &n)
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	h.told[n.User.Name]++
	h.ids[n.ID]++
	first := h.first
	h.first = nil
	h.mu.Unlock()
	if first != nil {
		first()
		<-r.Context().Done() // the one who waits for the answer dies
	}
}

func (h *hook) counts() (told, ids map[string]int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	told, ids = map[string]int{}, map[string]int{}
	for name, n := range h.told {
		told[name] = n
	}
	for id, n := range h.ids {
		ids[id] = n
	}
	return told, ids
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// args are a node's, with the shortest wait.
func (h *hook) args(database string) []string {
	args := []string{"--webhook-url", h.url, "--webhook-secret", strings.Repeat("s", 32), "--notify-wait", "10s"}
	if database != "" {
		args = append(args, "--database-url", database)
	}
	return args
}

// onBoth runs a test on each database.
func onBoth(t *testing.T, test func(t *testing.T, database string)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, "")
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, pgtest.Database(t))
	})
}

// send sends a direct message over HTTP; it is stored when send returns.
func send(t *testing.T, g *testkit.Gateway, from, to testkit.DemoUser, text string) {
	t.Helper()
	call := func(path string, body map[string]string, answer any) {
		t.Helper()
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(testkit.Context(t), http.MethodPost, g.URL+path, bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+from.Token)
		request.Header.Set("Content-Type", "application/json")
		request.Close = true
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		got, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode/100 != 2 {
			t.Fatalf("%s: %s %s %v", path, response.Status, got, err)
		}
		if err := json.Unmarshal(got, answer); err != nil {
			t.Fatalf("%s: %s: %v", path, got, err)
		}
	}
	var conversation struct {
		ID           string
		Conversation struct{ ID string }
	}
	call("/conversations", map[string]string{"user_id": to.User.ID}, &conversation)
	id := conversation.ID + conversation.Conversation.ID // whichever the answer has
	var ignored json.RawMessage
	call("/conversations/"+id+"/messages", map[string]string{"client_msg_id": text, "text": text}, &ignored)
}

// TestKilledBetweenStoringAndScheduling: the message is acknowledged, and the node
// killed at once.
func TestKilledBetweenStoringAndScheduling(t *testing.T) {
	onBoth(t, func(t *testing.T, database string) {
		h := newHook(t)
		g := testkit.StartGateway(t, testkit.GatewayOptions{Args: h.args(database)})
		ann := g.Login("Ann")
		const rounds = 5
		for n := range rounds {
			bob := g.Login(fmt.Sprint("Bob", n))
			send(t, g, ann, bob, fmt.Sprint("hello ", n))
			g.Kill()
			g.Restart()
		}
		eventually(t, "everybody is told", func() bool {
			told, _ := h.counts()
			return len(told) == rounds
		})
		noRepeats(t, g, h, 1)
	})
}

// TestKilledBetweenSendingAndRecording: the endpoint has it, and the node dies before it
// can write that down: the same notification comes once more, and no more.
func TestKilledBetweenSendingAndRecording(t *testing.T) {
	onBoth(t, func(t *testing.T, database string) {
		h := newHook(t)
		arrived := make(chan struct{})
		h.first = func() { close(arrived) }
		g := testkit.StartGateway(t, testkit.GatewayOptions{Args: h.args(database)})
		send(t, g, g.Login("Ann"), g.Login("Bob"), "hello")
		select {
		case <-arrived:
		case <-time.After(patience):
			t.Fatal("nothing was sent")
		}
		g.Kill()
		g.Restart()
		eventually(t, "Bob is told again", func() bool {
			told, _ := h.counts()
			return told["Bob"] == 2
		})
		noRepeats(t, g, h, 2)
		if _, ids := h.counts(); len(ids) != 1 {
			t.Errorf("the repetition is another notification: %v", ids)
		}
	})
}

// TestKilledAnywhere: nodes die at random moments of the whole way, and everybody is
// told, at most once too often.
func TestKilledAnywhere(t *testing.T) {
	onBoth(t, func(t *testing.T, database string) {
		h := newHook(t)
		g := testkit.StartGateway(t, testkit.GatewayOptions{Args: h.args(database)})
		const users = 40
		ann := g.Login("Ann")
		for n := range users {
			send(t, g, ann, g.Login(fmt.Sprint("Bob", n)), fmt.Sprint("hello ", n))
		}
		// Waits of 10 s end now, one after the other.
		deadline := time.Now().Add(patience)
		for told := 0; told < users/2; {
			<-time.After(time.Duration(rand.Int64N(int64(1500 * time.Millisecond))))
			g.Kill()
			g.Restart()
			counts, _ := h.counts()
			told = len(counts)
			if time.Now().After(deadline) {
				t.Fatalf("%d of %d were told, with a node that dies all the time", told, users)
			}
			if told == 0 {
				<-time.After(2 * time.Second) // let some waits end
			}
		}
		eventually(t, "everybody is told", func() bool {
			told, _ := h.counts()
			return len(told) == users
		})
		noRepeats(t, g, h, 2)
	})
}

// noRepeats checks that nothing more comes, and that nobody was told more often than
// most.
func noRepeats(t *testing.T, g *testkit.Gateway, h *hook, most int) {
	t.Helper()
	before, _ := h.counts()
	<-time.After(12 * time.Second) // a wait, and more
	after, _ := h.counts()
	for name, n := range after {
		if n > most {
			t.Errorf("%s was told %d times", name, n)
		}
		if n != before[name] {
			t.Logf("%s was told once more, later", name)
		}
	}
	if failed := g.Log(); strings.Contains(failed, "failed for good") {
		t.Error("a notification failed for good")
	}
}

// TestADeadNodesUsers is CASES 32: a node is killed with users and their messages in its
// hands; the other one notices, and they are told.
func TestADeadNodesUsers(t *testing.T) {
	t.Parallel()
	h, js, redis := newHook(t), testkit.NewJS(t), redistest.Start(t)
	args := append(h.args(pgtest.Database(t)), "--redis-url", redis.URL, "--jwt-secret", strings.Repeat("k", 40), "--presence-ttl", "5s")
	alive := testkit.StartGateway(t, testkit.GatewayOptions{Args: args})
	dies := testkit.StartGateway(t, testkit.GatewayOptions{Args: args})
	ann := alive.Login("Ann")
	const users = 10
	var clients []*testkit.Client
	for n := range users {
		user := dies.Login(fmt.Sprint("Bob", n))
		client := js.Connected(t, testkit.ClientOptions{
			URL: dies.URL, Token: user.Token, Transports: []string{"websocket"}, Acks: map[string]testkit.AckRule{"message": testkit.AckNever},
		})
		if _, err := client.WaitFor(testkit.Context(t), "session", nil); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, client)
	}
	for n, client := range clients {
		send(t, alive, ann, alive.Login(fmt.Sprint("Bob", n)), fmt.Sprint("hello ", n))
		if n == 0 { // it has them in its hands
			if _, err := client.WaitFor(testkit.Context(t), "message", nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	dies.Kill()
	eventually(t, "all are told", func() bool {
		told, _ := h.counts()
		return len(told) == users
	})
	noRepeats(t, alive, h, 1)
}
