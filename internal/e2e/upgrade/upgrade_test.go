package upgrade

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xabar/chat"
	"xabar/gateway/auth"
	"xabar/internal/testkit"
	"xabar/internal/testkit/pgtest"
	"xabar/internal/testkit/redistest"
	"xabar/internal/testkit/steady"
)

func TestMain(m *testing.M) { testkit.Main(m, pgtest.StopShared, removePrevious) }

const secret = "a secret of at least thirty-two bytes"

// previous is the previous version's program, built once for the package's tests.
var previous struct {
	once sync.Once
	dir  string
	path string
	err  error
}

func previousBinary(t *testing.T) string {
	t.Helper()
	previous.once.Do(func() {
		if previous.dir, previous.err = os.MkdirTemp("", "xabar-previous-"); previous.err == nil {
			previous.path, previous.err = BuildPrevious(testkit.Root(), previous.dir)
		}
	})
	if previous.err != nil {
		t.Fatal(previous.err)
	}
	return previous.path
}

func removePrevious() error { return os.RemoveAll(previous.dir) }

// deployment is two nodes on one database and one Redis.
type deployment struct {
	*testing.T
	nodes           [2]*testkit.Gateway
	database, redis string
}

func deploy(t *testing.T, binary, database string) *deployment {
	t.Helper()
	d := &deployment{T: t, database: database, redis: redistest.Start(t).URL}
	for i := range d.nodes {
		d.nodes[i] = testkit.StartGateway(t, testkit.GatewayOptions{
			Binary: binary, NoDemo: true, Args: []string{"--database-url", d.database, "--redis-url", d.redis, "--jwt-secret", secret},
		})
	}
	d.ready()
	return d
}

// ready waits until both nodes hear each other.
func (d *deployment) ready() {
	d.Helper()
	for _, node := range d.nodes {
		eventually(d, "the node is ready", func() bool {
			_, body := node.Get("/readyz")
			return strings.Contains(body, `"status":"ok"`)
		})
	}
}

// replace ends a node gracefully and starts another program in its place.
func (d *deployment) replace(i int, binary string) {
	d.Helper()
	d.nodes[i].Stop()
	d.nodes[i].Use(binary)
	d.nodes[i].Restart()
	d.ready()
}

// person is a user with a device that tries this node first.
func (d *deployment) person(node int, name string) *person {
	d.Helper()
	id := chat.NewID()
	token, _, err := auth.NewMinter([]byte(secret), nil).Mint(chat.UserRef(id.String()), name, time.Hour)
	if err != nil {
		d.Fatal(err)
	}
	p := &person{id: id, name: name, token: token, urls: []string{d.nodes[node].URL, d.nodes[1-node].URL}}
	p.User = d.device(p.urls, token)
	if err := p.Ready(testkit.Context(d)); err != nil {
		d.Fatal(err)
	}
	return p
}

func (d *deployment) device(urls []string, token string) *steady.User {
	u := steady.Start(context.WithoutCancel(d.Context()), steady.Options{URLs: urls, Token: token})
	d.Cleanup(u.Stop)
	return u
}

type person struct {
	*steady.User
	id          chat.ID
	name, token string
	urls        []string
}

type obj = map[string]any

func (d *deployment) open(p *person, payload obj) chat.ID {
	d.Helper()
	var answer struct {
		Conversation chat.Conversation `json:"conversation"`
	}
	if err := p.Ask(testkit.Context(d), "conversation:open", payload, &answer); err != nil {
		d.Fatal(err)
	}
	return answer.Conversation.ID
}

// eventually waits until a condition holds, asking again and again.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ctx := testkit.Context(t)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it did not become true: %s", what)
		}
	}
}

// traffic is everybody sending all the time, in pairs across the nodes and in a group.
type traffic struct {
	d             *deployment
	people        []*person
	conversations map[chat.ID][]*person
	acknowledged  sync.Map // clientMsgId: chat.Message
	sent          atomic.Int64
	stop          context.CancelFunc
	running       sync.WaitGroup
}

// pairs and the pause between two messages of one sender: a few hundred messages while a node is
// replaced.
const (
	pairs = 4
	pause = 30 * time.Millisecond
)

func (d *deployment) traffic() *traffic {
	d.Helper()
	t := &traffic{d: d, conversations: map[chat.ID][]*person{}}
	ctx, cancel := context.WithCancel(d.Context())
	t.stop = cancel
	for i := range 2 * pairs {
		t.people = append(t.people, d.person(i%2, fmt.Sprint("user", i)))
	}
	var members []chat.ID
	for i := 0; i < len(t.people); i += 2 {
		a, b := t.people[i], t.people[i+1]
		t.conversations[d.open(a, obj{"userId": b.id})] = []*person{a, b}
		members = append(members, a.id, b.id)
	}
	t.conversations[d.open(t.people[0], obj{"title": "all", "memberIds": members})] = t.people
	for conversation, people := range t.conversations {
		for _, p := range people[:2] { // both on each side of a pair, two of the group
			t.running.Go(func() { t.talk(ctx, p, conversation) })
		}
	}
	d.Cleanup(t.end)
	return t
}

func (t *traffic) end() {
	t.stop()
	t.running.Wait()
}

// talk sends one message after the other, each until it is answered.
func (t *traffic) talk(ctx context.Context, p *person, conversation chat.ID) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	last := int64(0)
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		id := fmt.Sprintf("%s-%s-%d", p.name, conversation.String()[24:], n)
		// The last one is answered too, whatever happens to ctx.
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), testkit.Patience)
		m, err := p.Send(bound, conversation, id, "text of "+id)
		cancel()
		if err != nil {
			t.d.Errorf("send %s: %v", id, err)
			return
		}
		if m.Seq <= last {
			t.d.Errorf("%s has seq %d behind %d", id, m.Seq, last)
		}
		last = m.Seq
		t.acknowledged.Store(id, m)
		t.sent.Add(1)
	}
}

// flows waits until everybody is answered again and again.
func (t *traffic) flows() {
	t.d.Helper()
	before := t.sent.Load()
	eventually(t.d, "messages are answered", func() bool { return t.sent.Load() >= before+50 || t.d.Failed() })
}

// check ends the traffic and compares what everybody holds with what is stored and what was
// answered.
func (t *traffic) check() {
	t.d.Helper()
	t.end()
	ctx := testkit.Context(t.d)
	stored := map[string]int{}
	for conversation, people := range t.conversations {
		for _, p := range people {
			var differences []string
			eventually(t.d, p.name+" holds what is stored", func() bool {
				var err error
				if differences, _, err = p.Differences(ctx, conversation); err != nil {
					t.d.Fatal(err)
				}
				return len(differences) == 0 || t.d.Context().Err() != nil
			})
		}
		for _, m := range people[0].Messages(conversation) {
			stored[m.ClientMsgID]++
			if known, ok := t.acknowledged.Load(m.ClientMsgID); ok && known.(chat.Message) != m {
				t.d.Errorf("%s was answered as %+v and is stored as %+v", m.ClientMsgID, known, m)
			}
		}
	}
	t.acknowledged.Range(func(id, _ any) bool {
		if n := stored[id.(string)]; n != 1 {
			t.d.Errorf("%s was answered and is stored %d times", id, n)
		}
		return true
	})
	for _, p := range t.people {
		if told := p.Told(); len(told.Faults) > 0 || told.Resets > 0 || told.Restored || told.Gone > 0 {
			t.d.Errorf("%s: %+v", p.name, told)
		}
	}
	t.d.Logf("%d messages were answered", t.sent.Load())
}

// live has messages go from each node to the other, to sockets that stay connected.
func (d *deployment) live() {
	d.Helper()
	a, b := d.person(0, "one"), d.person(1, "two")
	conversation := d.open(a, obj{"userId": b.id})
	ctx := testkit.Context(d)
	for i, way := range [][2]*person{{a, b}, {b, a}, {a, b}} {
		m, err := way[0].Send(ctx, conversation, chat.NewID().String(), fmt.Sprint("live ", i))
		if err != nil {
			d.Fatal(err)
		}
		eventually(d, "it is heard at the other node", func() bool {
			messages := way[1].Messages(conversation)
			return len(messages) > 0 && messages[len(messages)-1] == m
		})
	}
	for _, p := range []*person{a, b} {
		if told := p.Told(); told.Lives != 1 || len(told.Faults) > 0 {
			d.Errorf("%s: %+v", p.name, told)
		}
		p.Stop()
	}
}

// A rolling upgrade, and back: old nodes are replaced one after the other under clients that send
// all the time, an old one crashes and starts again in between, and then the old ones return.
func TestNodesAreReplacedOneAfterTheOtherAndBack(t *testing.T) {
	t.Parallel()
	old, now := previousBinary(t), ""
	d := deploy(t, old, pgtest.EmptyDatabase(t))
	traffic := d.traffic()
	traffic.flows()
	step := func(what string, do func()) {
		t.Helper()
		started := time.Now()
		do()
		traffic.flows()
		d.live()
		t.Logf("%s: %v", what, time.Since(started).Round(time.Millisecond))
	}
	step("the first node is new", func() { d.replace(0, now) })
	step("the old one has crashed and starts again", func() {
		d.nodes[1].Kill()
		d.nodes[1].Restart()
		d.ready()
	})
	step("both are new", func() { d.replace(1, now) })
	step("the second node is old again", func() { d.replace(1, old) })
	step("both are old again", func() { d.replace(0, old) })
	traffic.check()
}

// A clone that lacks the previous version is told what to do.
func TestWithoutTheHistoryItSaysWhatToDo(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	if err := run(empty, nil, "git", "init", "-q"); err != nil {
		t.Fatal(err)
	}
	_, err := BuildPrevious(empty, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "git fetch --unshallow") {
		t.Errorf("it says %v", errors.Unwrap(err))
	}
}
