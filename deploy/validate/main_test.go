package validate

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// binary is xabar, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	os.Exit(withBinary(m))
}

func withBinary(m *testing.M) int {
	dir, err := os.MkdirTemp("", "xabar-validate-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "xabar")
	build := exec.Command("go", "build", "-o", binary, "./cmd/xabar")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build xabar: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// checkConfig gives the binary this environment, and nothing else, and fails the test unless
// check-config accepts it and knows each XABAR_ variable in it.
func checkConfig(t *testing.T, env map[string]string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "check-config")
	cmd.Dir = t.TempDir()
	cmd.Env = []string{}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("check-config: %v\n%s", err, out)
		return
	}
	set := make(map[string]bool)
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && fields[len(fields)-1] == "set" {
			set[fields[0]] = true
		}
	}
	for name := range env {
		setting, ours := strings.CutPrefix(name, "XABAR_")
		if flag := "--" + strings.ToLower(strings.ReplaceAll(setting, "_", "-")); ours && !set[flag] {
			t.Errorf("%s is no setting of xabar serve:\n%s", name, out)
		}
	}
}

// read is a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
