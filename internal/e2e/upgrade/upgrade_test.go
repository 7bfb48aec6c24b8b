package upgrade

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xabar/chat"
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
	path string
	err  error
}

func previousBinary(t *testing.T) string {
	t.Helper()
	previous.once.Do(func() {
		// Not the test's patience: all that it imports may have to be compiled.
		previous.path, previous.err = BuildPrevious(t.Context(), testkit.Root())
	})
	if errors.Is(previous.err, ErrNoHistory) {
		// Restarting one after the other is worth a test also where both are this version.
		t.Log(previous.err)
		binary, err := testkit.Binary()
		if err != nil {
			t.Fatal(err)
		}
		return binary
	}
	if previous.err != nil {
		t.Fatal(previous.err)
	}
	return previous.path
}

func removePrevious() error {
	if previous.path == "" {
		return nil
	}
	return os.RemoveAll(filepath.Dir(previous.path))
}

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
func (d *deployment) person(node int, name string) *steady.Person {
	d.Helper()
	return steady.NewPerson(d, secret, name, steady.Options{URLs: []string{d.nodes[node].URL, d.nodes[1-node].URL}})
}

type obj = map[string]any

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

// traffic has people on both nodes send all the time, in pairs across the nodes and in a group.
func (d *deployment) traffic() *steady.Crowd {
	d.Helper()
	var people []*steady.Person
	for i := range 8 {
		people = append(people, d.person(i%2, fmt.Sprint("user", i)))
	}
	return steady.Talk(d, people)
}

// check ends the traffic: nothing was lost, doubled, reordered or changed.
func (d *deployment) check(c *steady.Crowd) {
	d.Helper()
	c.End()
	stored, answered := c.Agree(), c.Answered()
	senders := map[string][]int64{}
	for id, answer := range answered {
		seqs := senders[answer.Sender]
		if len(seqs) <= answer.N {
			seqs = append(seqs, make([]int64, answer.N+1-len(seqs))...)
		}
		seqs[answer.N] = answer.Message.Seq
		senders[answer.Sender] = seqs
		if stored[id] != answer.Message {
			d.Errorf("%s was answered as %+v and is stored as %+v", id, answer.Message, stored[id])
		}
	}
	for sender, seqs := range senders {
		if !slices.IsSorted(seqs) {
			d.Errorf("%s has sent %v", sender, seqs)
		}
	}
	for _, p := range c.People {
		if told := p.Told(); len(told.Faults) > 0 || told.Resets > 0 || told.Restored || told.Gone > 0 {
			d.Errorf("%s: %+v", p.Name, told)
		}
	}
	d.Logf("%d messages were answered", len(answered))
}

// live has messages go from each node to the other, to sockets that stay connected.
func (d *deployment) live() {
	d.Helper()
	a, b := d.person(0, "one"), d.person(1, "two")
	conversation := a.Open(d, obj{"userId": b.ID})
	ctx := testkit.Context(d)
	for i, way := range [][2]*steady.Person{{a, b}, {b, a}, {a, b}} {
		m, err := way[0].Send(ctx, conversation, chat.NewID().String(), fmt.Sprint("live ", i))
		if err != nil {
			d.Fatal(err)
		}
		eventually(d, "it is heard at the other node", func() bool {
			messages := way[1].Messages(conversation)
			return len(messages) > 0 && messages[len(messages)-1] == m
		})
	}
	for _, p := range []*steady.Person{a, b} {
		if told := p.Told(); told.Lives != 1 || len(told.Faults) > 0 {
			d.Errorf("%s: %+v", p.Name, told)
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
	traffic.Flows(50)
	step := func(what string, do func()) {
		t.Helper()
		started := time.Now()
		do()
		traffic.Flows(50)
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
	d.check(traffic)
}

// A clone that lacks the previous version is told what to do.
func TestWithoutTheHistoryItSaysWhatToDo(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	if err := run(t.Context(), empty, nil, "git", "init", "-q"); err != nil {
		t.Fatal(err)
	}
	_, err := BuildPrevious(t.Context(), empty)
	if !errors.Is(err, ErrNoHistory) || !strings.Contains(err.Error(), "git fetch --unshallow") {
		t.Errorf("it says %v", err)
	}
}
