// Package restore holds the tests of docs/guides/backup.md: its own commands, under clients that
// send all the time, and what becomes of clients that are ahead of the restored database.
package restore

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"xabar/chat"
	"xabar/internal/testkit"
	"xabar/internal/testkit/pgtest"
	"xabar/internal/testkit/redistest"
	"xabar/internal/testkit/steady"
)

func TestMain(m *testing.M) { testkit.Main(m, pgtest.StopShared) }

const secret = "a secret of at least thirty-two bytes"

type obj = map[string]any

// guide runs a block of the guide, as it stands, in a folder where `xabar` is on the PATH.
func guide(t *testing.T, name, dir string, env ...string) {
	t.Helper()
	programs := t.TempDir()
	xabar, err := testkit.Binary()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(xabar, filepath.Join(programs, "xabar")); err != nil {
		t.Fatal(err)
	}
	path := []string{programs}
	if pgDump, err := pgtest.Binary("pg_dump"); err == nil {
		path = append(path, filepath.Dir(pgDump))
	}
	cmd := exec.CommandContext(testkit.Context(t), "sh", "-euc", testkit.DocBlock(t, "docs/guides/backup.md", name))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+strings.Join(append(path, os.Getenv("PATH")), ":"))
	cmd.Env = append(cmd.Env, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// people are n users on the nodes in turn.
func people(t *testing.T, n int, urls ...string) []*steady.Person {
	t.Helper()
	list := make([]*steady.Person, n)
	for i := range list {
		at := i % len(urls)
		list[i] = steady.NewPerson(t, secret, fmt.Sprint("user", i), steady.Options{URLs: append(slices.Clone(urls[at:]), urls[:at]...)})
	}
	return list
}

// outcome ends the traffic and compares what was answered with what is stored now: everything
// that was answered before the backup began, and what came after the restore.
func outcome(t *testing.T, c *steady.Crowd, begun, restored time.Time) {
	t.Helper()
	c.End()
	answered := c.Answered()
	stored := c.Agree()
	lost := 0
	for id, answer := range answered {
		switch m, ok := stored[id]; {
		case ok && m == answer.Message:
		case !ok && answer.At.After(begun) && answer.At.Before(restored):
			lost++
		case !ok:
			t.Errorf("%s is lost, which was answered at %v; the backup began at %v, the nodes after the restore at %v", id, answer.At, begun, restored)
		default:
			t.Errorf("%s was answered as %+v and is stored as %+v", id, answer.Message, m)
		}
	}
	if lost == 0 {
		t.Error("nothing is lost: the clients were not ahead")
	}
	for _, p := range c.People {
		if told := p.Told(); !told.Restored || len(told.Faults) > 0 {
			t.Errorf("%s: %+v", p.Name, told)
		}
	}
	t.Logf("%d messages were answered, %d of them are lost with the restore, %d are stored", len(answered), lost, len(stored))
}

// PostgreSQL, two nodes: dumped under load, restored, and everybody comes back by themselves.
func TestPostgreSQLIsDumpedUnderLoadAndRestored(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	database, err := server.Database(testkit.Context(t), "xabar")
	if err != nil {
		t.Fatal(err)
	}
	libpq := []string{"PGHOST=127.0.0.1", "PGPORT=" + strconv.Itoa(server.Port()), "PGUSER=xabar"}
	redis := redistest.Start(t)
	var nodes []*testkit.Gateway
	for range 2 {
		nodes = append(nodes, testkit.StartGateway(t, testkit.GatewayOptions{NoDemo: true, Args: []string{
			"--database-url", database, "--redis-url", redis.URL, "--jwt-secret", secret}}))
	}
	crowd := steady.Talk(t, people(t, 8, nodes[0].URL, nodes[1].URL))
	crowd.Flows(200)
	dir := t.TempDir()
	begun := time.Now()
	guide(t, "pg-backup.sh", dir, libpq...)
	crowd.Flows(200) // those are lost
	nodes[0].Stop()
	nodes[1].Kill()
	guide(t, "pg-restore.sh", dir, libpq...)
	restored := time.Now()
	for _, node := range nodes {
		node.Restart()
	}
	crowd.Flows(200)
	outcome(t, crowd, begun, restored)
}

// The embedded database: the same with its own commands.
func TestTheEmbeddedDatabaseIsCopiedUnderLoadAndRestored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	node := testkit.StartGateway(t, testkit.GatewayOptions{NoDemo: true, DataDir: filepath.Join(dir, "xabar-data"), Args: []string{"--jwt-secret", secret}})
	crowd := steady.Talk(t, people(t, 6, node.URL))
	crowd.Flows(200)
	begun := time.Now()
	guide(t, "sqlite-backup.sh", dir)
	crowd.Flows(200)
	node.Kill()
	guide(t, "sqlite-restore.sh", dir)
	restored := time.Now()
	node.Restart()
	crowd.Flows(200)
	outcome(t, crowd, begun, restored)
}

// ahead is a restore over the old place, without a word to anybody: the worst that operators do.
type ahead struct {
	*testing.T
	dir          string
	node         *testkit.Gateway
	a, b         *steady.Person
	conversation chat.ID
}

// newAhead makes a conversation of ten messages, keeps a copy of that state, and goes on to twenty.
func newAhead(t *testing.T, b steady.Options) *ahead {
	t.Helper()
	s := &ahead{T: t, dir: t.TempDir()}
	s.node = testkit.StartGateway(t, testkit.GatewayOptions{NoDemo: true, DataDir: s.dir, Args: []string{"--jwt-secret", secret}})
	b.URLs = []string{s.node.URL}
	s.a = steady.NewPerson(t, secret, "a", steady.Options{URLs: b.URLs})
	s.b = steady.NewPerson(t, secret, "b", b)
	s.conversation = s.a.Open(t, obj{"userId": s.b.ID})
	s.send(1, 10)
	s.node.Stop()
	s.copyTo("kept")
	s.node.Restart()
	s.send(11, 20)
	s.node.Stop()
	return s
}

func (s *ahead) send(from, to int) {
	s.Helper()
	for i := from; i <= to; i++ {
		if _, err := s.a.Send(testkit.Context(s), s.conversation, fmt.Sprint("x", i), fmt.Sprint("first ", i)); err != nil {
			s.Fatal(err)
		}
	}
	s.until(s.b.User, int64(to))
}

// until waits until a device holds the message with this seq.
func (s *ahead) until(u *steady.User, seq int64) {
	s.Helper()
	ctx := testkit.Context(s)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if held := u.Messages(s.conversation); len(held) > 0 && held[len(held)-1].Seq >= seq {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.Fatalf("seq %d does not come: %v", seq, u.Messages(s.conversation))
		}
	}
}

// copyTo copies the files of the stopped gateway.
func (s *ahead) copyTo(name string) {
	s.Helper()
	s.run("mkdir " + name + " && cp xabar.db* " + name)
}

func (s *ahead) restore() {
	s.Helper()
	s.run("rm xabar.db* && cp kept/* .")
}

func (s *ahead) run(script string) {
	s.Helper()
	cmd := exec.CommandContext(testkit.Context(s), "sh", "-euc", script)
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("%s: %v %s", script, err, out)
	}
}

// growsElsewhere runs the restored database at another address, out of reach of those who wait,
// until it has seqs up to n again, with other messages.
func (s *ahead) growsElsewhere(n int64) {
	s.Helper()
	other := testkit.StartGateway(s, testkit.GatewayOptions{NoDemo: true, DataDir: s.dir, Args: []string{"--jwt-secret", secret}})
	phone := steady.NewDevice(s, secret, s.a, steady.Options{URLs: []string{other.URL}})
	for i := int64(11); i <= n; i++ {
		if _, err := phone.Send(testkit.Context(s), s.conversation, fmt.Sprint("y", i), fmt.Sprint("second ", i)); err != nil {
			s.Fatal(err)
		}
	}
	phone.Stop()
	other.Stop()
}

// agrees waits until a device holds what is stored, and gives its texts.
func (s *ahead) agrees(u *steady.User) []string {
	s.Helper()
	ctx := testkit.Context(s)
	for {
		differences, _, err := u.Differences(ctx, s.conversation)
		if err != nil {
			s.Fatalf("%v: %v", err, differences)
		}
		if len(differences) == 0 {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond): // what is under way arrives
		case <-ctx.Done():
			s.Fatalf("%v", differences)
		}
	}
	var texts []string
	for _, m := range u.Messages(s.conversation) {
		texts = append(texts, m.Text)
	}
	return texts
}

func texts(first, second int) (list []string) {
	for i := 1; i <= first; i++ {
		list = append(list, fmt.Sprint("first ", i))
	}
	for i := first + 1; i <= second; i++ {
		list = append(list, fmt.Sprint("second ", i))
	}
	return list
}

// The view of a member, for its positions.
func (s *ahead) view(p *steady.Person) chat.Conversation {
	s.Helper()
	var list struct {
		Conversations []chat.Conversation `json:"conversations"`
	}
	if err := p.Ask(testkit.Context(s), "conversations", obj{}, &list); err != nil {
		s.Fatal(err)
	}
	i := slices.IndexFunc(list.Conversations, func(c chat.Conversation) bool { return c.ID == s.conversation })
	if i < 0 {
		s.Fatal("the conversation is not in the list")
	}
	return list.Conversations[i]
}

// A client that names bare seqs is told where its position lies beyond the end, and none of the
// messages that come then counts as delivered by it.
func TestAPlainPositionBeyondTheEndIsReset(t *testing.T) {
	t.Parallel()
	s := newAhead(t, steady.Options{Plain: true})
	s.restore()
	s.growsElsewhere(15) // b is at 20
	s.node.Restart()
	if got := s.agrees(s.b.User); !slices.Equal(got, texts(10, 15)) {
		t.Errorf("b holds %v", got)
	}
	if told := s.b.Told(); told.Resets != 1 || told.Restored || len(told.Faults) > 0 {
		t.Errorf("b was told %+v", told)
	}
}

// The ids at the positions tell, although the restored history has grown past all of them and
// nobody has said that there was a restore.
func TestTheIdAtAPositionTellsAnotherHistory(t *testing.T) {
	t.Parallel()
	s := newAhead(t, steady.Options{})
	s.restore()
	s.growsElsewhere(25)
	s.node.Restart()
	for _, p := range []*steady.Person{s.a, s.b} {
		if got := s.agrees(p.User); !slices.Equal(got, texts(10, 25)) {
			t.Errorf("%s holds %v", p.Name, got)
		}
		if told := p.Told(); told.Resets != 1 || told.Restored || len(told.Faults) > 0 {
			t.Errorf("%s was told %+v", p.Name, told)
		}
	}
}

// `xabar restored` tells those whom nothing else would: here a client whose history is the same up
// to its position, and everybody else.
func TestXabarRestoredResetsEverybody(t *testing.T) {
	t.Parallel()
	s := newAhead(t, steady.Options{})
	s.restore()
	xabar, err := testkit.Binary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(testkit.Context(t), xabar, "restored", "--data-dir", s.dir).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "told to reset") {
		t.Fatalf("%v %s", err, out)
	}
	s.node.Restart()
	for _, p := range []*steady.Person{s.a, s.b} {
		if got := s.agrees(p.User); !slices.Equal(got, texts(10, 10)) {
			t.Errorf("%s holds %v", p.Name, got)
		}
		if told := p.Told(); !told.Restored || len(told.Faults) > 0 {
			t.Errorf("%s was told %+v", p.Name, told)
		}
	}
	if v := s.view(s.b); v.LastDeliveredSeq != 10 || v.LastSeq != 10 || v.Unread < 0 {
		t.Errorf("b's view is %+v", v)
	}
}

// A position of another history marks nothing as delivered, whatever it names.
func TestAForeignPositionDeliversNothing(t *testing.T) {
	t.Parallel()
	s := newAhead(t, steady.Options{})
	s.b.Stop() // it would hold what comes
	s.restore()
	s.growsElsewhere(15)
	s.node.Restart()
	token := steady.NewDevice(t, secret, s.b, steady.Options{URLs: []string{s.node.URL}, Quiet: true})
	id, before := s.conversation.String(), s.view(s.b2(token)).LastDeliveredSeq
	for name, positions := range map[string]obj{
		"beyond the end":  {id: 20},
		"another message": {id: obj{"seq": 12, "id": chat.NewID()}},
	} {
		var answer struct {
			Conversations []struct {
				Reset    bool           `json:"reset"`
				Messages []chat.Message `json:"messages"`
			} `json:"conversations"`
		}
		if err := token.Ask(testkit.Context(t), "sync", obj{"positions": positions}, &answer); err != nil {
			t.Fatal(err)
		}
		if len(answer.Conversations) != 1 || !answer.Conversations[0].Reset || len(answer.Conversations[0].Messages) != 15 {
			t.Errorf("%s is answered %+v", name, answer)
		}
		if got := s.view(s.b2(token)).LastDeliveredSeq; got != before {
			t.Errorf("%s: delivered moved from %d to %d", name, before, got)
		}
	}
}

func (s *ahead) b2(u *steady.User) *steady.Person {
	return &steady.Person{User: u, ID: s.b.ID, Name: s.b.Name}
}

// A node whose database was restored while it ran ends by itself: what it remembers is of the other
// history. Started anew it tells its clients.
func TestANodeEndsWhenItsDatabaseIsRestoredUnderIt(t *testing.T) {
	t.Parallel()
	node := testkit.StartGateway(t, testkit.GatewayOptions{NoDemo: true, Args: []string{"--jwt-secret", secret}})
	a := steady.NewPerson(t, secret, "a", steady.Options{URLs: []string{node.URL}})
	xabar, err := testkit.Binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx := testkit.Context(t)
	if out, err := exec.CommandContext(ctx, xabar, "restored", "--data-dir", node.DataDir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	b := steady.Start(ctx, steady.Options{URLs: []string{node.URL}, Token: a.Token(), Quiet: true}) // the first to connect since
	t.Cleanup(b.Stop)
	var exit *exec.ExitError
	if err := node.Wait(ctx); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(node.Log(), "another history") {
		t.Fatalf("it ends with %v", err)
	}
	node.Restart()
	if err := b.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	for !a.Told().Restored {
		select {
		case <-time.After(20 * time.Millisecond): // it comes back
		case <-ctx.Done():
			t.Fatalf("a was told %+v", a.Told())
		}
	}
}
