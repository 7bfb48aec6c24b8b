package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"xabar/internal/testkit"
)

// dialectGuide is a block that the guide marks with this name.
func dialectGuide(t *testing.T, name string) string {
	t.Helper()
	return testkit.DocBlock(t, "docs/guides/dialects.md", name)
}

// tutorialDir is a folder with the guide's description in it.
func tutorialDir(t *testing.T, more ...string) string {
	t.Helper()
	text := dialectGuide(t, "tutorial.yaml")
	if n := strings.Count(text, "\n"); n > 40 {
		t.Errorf("the description has %d lines, more than 40", n)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tutorial.yaml"), []byte(text+strings.Join(more, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The guide's steps, as a newcomer takes them.
func TestTheGuideToDialects(t *testing.T) {
	t.Parallel()
	if got := dialectGuide(t, "serve.sh"); got != "xabar serve --demo --dialect-dir dialects\n" {
		t.Errorf("the guide starts it by %q, the test does not", got)
	}
	w := newWorld(t, "--dialect-dir", tutorialDir(t))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "two.mjs"), []byte(dialectGuide(t, "two.mjs")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(testkit.JSDir(), "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(testkit.Context(t), "node", "two.mjs")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "XABAR_URL="+w.gateway.URL)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("two.mjs: %v\n%s", err, out)
	}
	for _, line := range []string{"Bob sees that Ada is typing", "Bob sees Ada: Tea at five?"} {
		if strings.Count(string(out), line+"\n") != 1 {
			t.Errorf("not once %q in:\n%s", line, out)
		}
	}
}

func TestCheckConfigNamesADialectsMistakesByLine(t *testing.T) {
	t.Parallel()
	binary, err := testkit.Binary()
	if err != nil {
		t.Fatal(err)
	}
	check := func(dir string) (string, error) {
		out, err := exec.CommandContext(testkit.Context(t), binary, "check-config", "--demo", "--dialect-dir", dir).CombinedOutput()
		return string(out), err
	}
	dir := tutorialDir(t)
	if out, err := check(dir); err != nil {
		t.Errorf("the guide's description: %v\n%s", err, out)
	}
	text := strings.Replace(dialectGuide(t, "tutorial.yaml"), "text: text", "txt: text", 1)
	if err := os.WriteFile(filepath.Join(dir, "tutorial.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile(filepath.Join(testkit.Root(), "docs", "guides", "dialects.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := strings.Cut(string(guide), "dialects/tutorial.yaml:")
	want, _, _ = strings.Cut(want[:], "\n")
	out, err := check(dir)
	if err == nil || !strings.Contains(out, "tutorial.yaml:"+want) {
		t.Errorf("%v\n%s\nthe guide says %s", err, out, want)
	}
}

// The tutorial's vocabulary in a group on two nodes, beside the standard events; by a
// namespace too, whose rooms do not bring along what other nodes publish.
func TestADialectInAGroup(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, "--dialect-dir", tutorialDir(t, "namespace: /tutorial", ""))
	a := c.nodes[0].page("A")
	join := func(w *world, user testkit.DemoUser, url string, room string) *testkit.Client {
		t.Helper()
		client := w.js.Connected(t, testkit.ClientOptions{
			URL: url, Token: user.Token, Auth: map[string]any{"dialect": "tutorial"}, Transports: []string{"websocket"},
			Acks: map[string]testkit.AckRule{"chat message": testkit.AckNow},
		})
		if room != "" {
			if err := client.Send(testkit.Context(t), "join", room); err != nil {
				t.Fatal(err)
			}
		}
		return client
	}
	far := c.nodes[1]
	userB, userD := far.gateway.Login("B"), far.gateway.Login("D")
	early := join(far, userD, far.gateway.URL+"/tutorial", "") // before there is the group
	group := a.must("conversation:open", obj{"title": "Guruh", "memberIds": []string{userB.User.ID, userD.User.ID}}).Conversation
	b := join(far, userB, far.gateway.URL, group.ID.String())
	if err := early.Send(testkit.Context(t), "join", group.ID.String()); err != nil {
		t.Fatal(err)
	}
	hears := func(client *testkit.Client, event, text string) {
		t.Helper()
		if _, err := client.WaitFor(testkit.Context(t), event, func(h testkit.Heard) bool { return testkit.Decode[string](h) == text }); err != nil {
			t.Fatal(err)
		}
	}
	a.send(group.ID, "x1")
	hears(b, "chat message", "text of x1")
	hears(early, "chat message", "text of x1")
	eventually(t, "both have acknowledged it", func() bool { return *a.view(group.ID).OthersDeliveredSeq == 1 })

	if err := b.SendVolatile(testkit.Context(t), "typing", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := a.WaitFor(testkit.Context(t), "typing", nil); err != nil {
		t.Fatal(err)
	}
	hears(early, "typing", "B")
	hears(early, "stop typing", "B") // by itself
	if err := b.Send(testkit.Context(t), "chat message", "salom"); err != nil {
		t.Fatal(err)
	}
	if got := a.hears(group.ID, 2); got.Text != "salom" {
		t.Errorf("A heard %+v", got)
	}
	hears(early, "chat message", "salom")
	for _, text := range []any{7, nil, obj{}} { // wrong: silence
		if err := b.Send(testkit.Context(t), "chat message", text); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Send(testkit.Context(t), "chat message", "yana"); err != nil {
		t.Fatal(err)
	}
	if got := a.hears(group.ID, 3); got.Text != "yana" {
		t.Errorf("A heard %+v", got)
	}
}
