//go:build unix

package web

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"xabar/internal/testkit"
	"xabar/internal/testkit/pgtest"
	"xabar/internal/testkit/redistest"
)

func TestMain(m *testing.M) { testkit.Main(m, pgtest.StopShared) }

// suiteTimeout is for all browser tests on a small and busy machine.
const suiteTimeout = 8 * time.Minute

// TestBrowser opens the page of the real binary in Chromium: the tests are in e2e/.
func TestBrowser(t *testing.T) {
	t.Parallel()
	requireFreshPage(t)
	if _, err := os.Stat("node_modules/vitest/vitest.mjs"); err != nil {
		t.Fatal("the packages of web/ are not installed: run `make page` (it needs Node.js 20.19 or newer, and npm)")
	}
	binary, err := testkit.Binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), suiteTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "node_modules/vitest/vitest.mjs", "run", "--config", "e2e/vitest.config.ts")
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "CI=1", "XABAR_BINARY="+binary,
		"XABAR_NODES_DATABASE="+pgtest.Database(t), "XABAR_NODES_REDIS="+redistest.Start(t).URL)
	// With the test everything ends that it has started, browsers and gateways too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// requireFreshPage fails when the page was built from other sources than these.
func requireFreshPage(t *testing.T) {
	t.Helper()
	if !Built() {
		t.Fatal("the page is not built: run `make page`")
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
				return errors.New(path + " is newer than the built page: run `make page`")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
