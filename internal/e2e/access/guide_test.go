package access

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"xabar/internal/testkit"
)

// guideBlock is a block that the guide marks with this name.
func guideBlock(t *testing.T, name string) string {
	t.Helper()
	return testkit.DocBlock(t, "docs/guides/your-own-tokens.md", name)
}

// The guide's steps, as a newcomer takes them: nothing but what stands there.
func TestTheGuideToYourOwnTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"serve.sh", "tokens.mjs", "two.mjs", "admin.sh"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(guideBlock(t, name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(testkit.JSDir(), "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	exports := strings.Split(guideBlock(t, "serve.sh"), "xabar serve")[0]
	g := startByScript(t, dir)
	env := []string{"XABAR_URL=" + g}

	out := script(t, dir, exports+"node two.mjs", env...)
	if !strings.Contains(out, "Bob hears: Salam!\n") || !strings.Contains(out, "Bob has message 1\n") {
		t.Errorf("two.mjs prints:\n%s", out)
	}
	for range 2 { // the whole can be repeated
		out = script(t, dir, exports+". ./admin.sh", env...)
		for _, text := range []string{`"name":"Grace"`, `"external_id":"42"`, `"text":"Welcome!"`, `"seq":1`, `{"sessions":[]}`} {
			if !strings.Contains(out, text) {
				t.Errorf("admin.sh does not print %s:\n%s", text, out)
			}
		}
	}
}

// startByScript runs the guide's own command and returns the address.
func startByScript(t *testing.T, dir string) string {
	t.Helper()
	binary, err := testkit.Binary()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(dir, "xabar")); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	cmd := exec.Command("sh", "-c", "exec "+"sh ./serve.sh")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "XABAR_LISTEN="+address, "XABAR_ADMIN_LISTEN="+freeAddress(t))
	return startAndWait(t, cmd, address)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// script runs a shell script and returns what it prints.
func script(t *testing.T, dir, text string, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(testkit.Context(t), "sh", "-euc", text)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
