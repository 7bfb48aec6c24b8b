package e2e

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"xabar/internal/testkit"
	"xabar/internal/testkit/pgtest"
	"xabar/internal/testkit/redistest"
)

// nodesGuide is a block that the guide marks with this name, on ports that are free.
func nodesGuide(t *testing.T, name string, ports *strings.Replacer) string {
	t.Helper()
	return ports.Replace(testkit.DocBlock(t, "docs/guides/several-nodes.md", name))
}

// The guide's own commands, beside its text: two plain processes, and a user on each.
func TestTheGuideToSeveralNodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary, err := testkit.Binary()
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"xabar": binary, "node_modules": filepath.Join(testkit.JSDir(), "node_modules")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	var pairs []string
	for _, port := range []string{":3000", ":3001", ":3010", ":3011"} {
		pairs = append(pairs, "127.0.0.1"+port, freeAddress(t))
	}
	ports := strings.NewReplacer(pairs...)
	for _, name := range []string{"nodes.sh", "two.mjs"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(nodesGuide(t, name, ports)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "./nodes.sh")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"),
		"XABAR_DATABASE_URL="+pgtest.Database(t), "XABAR_REDIS_URL="+redistest.Start(t).URL)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the shell's children are signalled with it
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // the shell ends by the signal; its children hold the log until they have ended
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s", text)
		}
	}()
	for _, admin := range []string{"127.0.0.1:3001", "127.0.0.1:3011"} {
		eventually(t, admin+" is ready", func() bool {
			response, err := http.Get("http://" + ports.Replace(admin) + "/readyz")
			if err != nil {
				return false
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			return err == nil && strings.Contains(string(body), `"status":"ok"`)
		})
	}
	http.DefaultClient.CloseIdleConnections()
	page := exec.CommandContext(testkit.Context(t), "node", "two.mjs")
	page.Dir = dir
	out, err := page.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "bob hears: Salam!\n") || !strings.Contains(string(out), "ada knows that 1 was delivered\n") {
		t.Errorf("two.mjs prints:\n%s%v", out, err)
	}
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
