package proxy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"xabar/internal/testkit"
)

func unit(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Root(), "deploy", "systemd", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// systemd itself finds nothing wrong in the units, the binary being where they look for it.
func TestUnits(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Fatal("systemd-analyze is not installed: run `make test-deps`, or on Debian `apt-get install systemd`")
	}
	binary, err := testkit.Binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"xabar.service", "xabar@.service"} {
		text := strings.ReplaceAll(unit(t, name), "/usr/local/bin/xabar", binary)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"xabar.service", "xabar@1.service"} {
		out, err := exec.CommandContext(testkit.Context(t), analyze, "verify", "--man=no", "--recursive-errors=no", filepath.Join(dir, name)).CombinedOutput()
		if err != nil || strings.Contains(string(out), dir) {
			t.Errorf("systemd-analyze verify %s: %v\n%s", name, err, out)
		}
	}
}

// Both units say the same, but for what belongs to an instance.
func TestTheUnitForSeveralNodesIsTheSame(t *testing.T) {
	t.Parallel()
	settings := func(text string) string {
		_, text, _ = strings.Cut(text, "[Unit]\n")
		return text
	}
	several := strings.NewReplacer(", node %i", "", "EnvironmentFile=/etc/xabar/%i.env\n", "", "-%i", "").Replace(settings(unit(t, "xabar@.service")))
	if one := settings(unit(t, "xabar.service")); one != several {
		t.Errorf("xabar.service:\n%s\nxabar@.service:\n%s", one, several)
	}
}

// The example of the settings is a configuration that works, and the unit waits longer than a drain takes.
func TestTheUnitsSettings(t *testing.T) {
	t.Parallel()
	binary, err := testkit.Binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(testkit.Context(t), binary, "check-config")
	cmd.Dir = t.TempDir()
	for line := range strings.SplitSeq(unit(t, "xabar.env"), "\n") {
		if line = strings.TrimPrefix(line, "#XABAR"); strings.HasPrefix(line, "_") {
			line = "XABAR" + line // what is commented out works too
		}
		if strings.HasPrefix(line, "XABAR_") {
			cmd.Env = append(cmd.Env, line)
		}
	}
	if len(cmd.Env) < 8 {
		t.Errorf("the example has only %q", cmd.Env)
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "This configuration works.") || strings.Contains(string(out), "Warning") {
		t.Errorf("check-config: %v\n%s", err, out)
	}
	for _, variable := range cmd.Env {
		name, _, _ := strings.Cut(variable, "=")
		flag := "--" + strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "XABAR_"), "_", "-"))
		if !regexp.MustCompile(`(?m)^` + flag + ` .* set$`).Match(out) {
			t.Errorf("%s sets nothing:\n%s", name, out)
		}
	}
	drain := regexp.MustCompile(`(?m)^--drain-timeout +(\S+)`).FindSubmatch(out)
	stop := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindStringSubmatch(unit(t, "xabar.service"))
	if drain == nil || stop == nil {
		t.Fatal("no limits are found")
	}
	drains, err := time.ParseDuration(string(drain[1]))
	if err != nil {
		t.Fatal(err)
	}
	if stops, err := time.ParseDuration(stop[1] + "s"); err != nil || stops < drains+10*time.Second {
		t.Errorf("the unit kills after %v, a drain takes up to %v", stops, drains)
	}
}
