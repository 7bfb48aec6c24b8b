package proxy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"xabar/internal/testkit"
)

// What docs/guides/several-nodes.md makes of HAProxy's configuration, for two nodes on one machine, names both
// nodes' addresses, and HAProxy takes it.
func TestTheGuidesProxy(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(testkit.Root(), "docs", "guides", "several-nodes.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "<!-- checked by a test: proxy.sh -->\n```sh\n")
	edit, _, closed := strings.Cut(rest, "\nhaproxy -f haproxy.cfg\n```\n")
	if !ok || !closed {
		t.Fatal("the guide has no block proxy.sh")
	}
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(testkit.Root(), "deploy"), filepath.Join(dir, "deploy")); err != nil {
		t.Fatal(err)
	}
	sh := exec.CommandContext(testkit.Context(t), "sh", "-c", edit)
	sh.Dir = dir
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	check := exec.CommandContext(testkit.Context(t), find(t, "haproxy"), "-c", "-f", "haproxy.cfg")
	check.Dir = dir
	if out, err := check.CombinedOutput(); err != nil || strings.Contains(string(out), "WARNING") {
		t.Errorf("haproxy -c: %v\n%s", err, out)
	}
	edited, err := os.ReadFile(filepath.Join(dir, "haproxy.cfg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range []string{"127.0.0.1:3000 check port 3001", "127.0.0.1:3010 check port 3011"} {
		if !strings.Contains(string(edited), server) {
			t.Errorf("the configuration has no server at %s", server)
		}
	}
}
