//go:build unix

package web

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"xabar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// suiteTimeout is for a whole suite on a small and busy machine.
const suiteTimeout = 8 * time.Minute

// These run what is written in TypeScript, so that `go test ./...` is everything. Each
// needs `make web`, which installs the packages and builds the page.

func TestTypes(t *testing.T) {
	t.Parallel()
	runNode(t, nil, "node_modules/typescript/bin/tsc", "--noEmit")
}

func TestClientLibrary(t *testing.T) {
	t.Parallel()
	runNode(t, nil, "node_modules/vitest/vitest.mjs", "run")
}

// TestBrowser opens the page of the real binary in Chromium.
func TestBrowser(t *testing.T) {
	t.Parallel()
	requireFreshPage(t)
	binary, err := testkit.Binary()
	if err != nil {
		t.Fatal(err)
	}
	runNode(t, []string{"XABAR_BINARY=" + binary}, "node_modules/vitest/vitest.mjs", "run", "--config", "e2e/vitest.config.ts")
}

// runNode runs a script of web/node_modules and shows its output if it fails. With the
// test it ends too, and everything that it has started.
func runNode(t *testing.T, env []string, script string, args ...string) {
	t.Helper()
	if _, err := os.Stat(script); err != nil {
		t.Fatal("the packages of web/ are not installed: run `make web` (it needs Node.js 20.19 or newer and npm)")
	}
	ctx, cancel := context.WithTimeout(t.Context(), suiteTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{script}, args...)...)
	cmd.Env = append(os.Environ(), append(env, "NO_COLOR=1", "CI=1")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", script, strings.Join(args, " "), err, out)
	}
}

// requireFreshPage fails when the page was built from other sources than these.
func requireFreshPage(t *testing.T) {
	t.Helper()
	if !Built() {
		t.Fatal("the page is not built: run `make web`")
	}
	built, err := os.Stat("dist/index.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"app", "client/src", "public", "index.html", "package-lock.json"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err == nil && info.ModTime().After(built.ModTime()) {
				return errors.New(path + " is newer than the built page: run `make web`")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
