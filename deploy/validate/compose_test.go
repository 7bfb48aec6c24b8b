package validate

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

const composeFolder = root + "/deploy/compose"

// makeEnv writes an .env as users do and returns its path.
func makeEnv(t *testing.T, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), ".env")
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{filepath.Join(composeFolder, "make-env.sh")}, args...)...)
	cmd.Env = append(os.Environ(), "XABAR_ENV_FILE="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make-env.sh: %v\n%s", err, out)
	}
	return path
}

// loadCompose is `docker compose config`, with all profiles.
func loadCompose(t *testing.T, envFile string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(composeFolder, "compose.yaml")},
		cli.WithEnvFiles(envFile), cli.WithDotEnv, cli.WithProfiles([]string{"*"}), cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(t.Context())
}

func TestComposeGivesNodesAConfigurationThatWorks(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--demo"}} {
		project, err := loadCompose(t, makeEnv(t, args...))
		if err != nil {
			t.Fatal(err)
		}
		names := make(map[string]bool)
		for _, name := range []string{"xabar-1", "xabar-2"} {
			node, err := project.GetService(name)
			if err != nil {
				t.Fatal(err)
			}
			env := imageEnvironment(t)
			for key, value := range node.Environment {
				if value != nil {
					env[key] = *value
				}
			}
			checkConfig(t, env)
			if names[env["XABAR_NODE_NAME"]] = true; env["XABAR_NODE_NAME"] != name {
				t.Errorf("%s is called %q: the proxy looks for its host name", name, env["XABAR_NODE_NAME"])
			}
			drain, err := time.ParseDuration(env["XABAR_DRAIN_TIMEOUT"])
			if grace := node.StopGracePeriod; err != nil || grace == nil || time.Duration(*grace) <= drain {
				t.Errorf("%s is killed after %v, its drain may take %v (%v)", name, grace, drain, err)
			}
		}
		if len(names) != 2 {
			t.Errorf("node names %v", names)
		}
	}
}

func TestComposePublishesOnlyTheProxyAndOnLoopback(t *testing.T) {
	t.Parallel()
	project, err := loadCompose(t, makeEnv(t))
	if err != nil {
		t.Fatal(err)
	}
	published := make(map[string]string)
	for name, service := range project.Services {
		for _, port := range service.Ports {
			published[name] += port.HostIP + " "
		}
		if service.HealthCheck == nil && len(service.Profiles) == 0 {
			t.Errorf("%s has no health check", name)
		}
		for _, volume := range service.Volumes {
			if volume.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(volume.Source); err != nil {
				t.Errorf("%s mounts what is not there: %v", name, err)
			}
		}
	}
	if len(published) != 2 || published["proxy"] != "127.0.0.1 " || published["grafana"] != "127.0.0.1 " {
		t.Errorf("published: %v", published)
	}
}

func TestComposeAsksForAnEnvFirst(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), ".env")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadCompose(t, empty); err == nil || !strings.Contains(err.Error(), "make-env.sh") {
		t.Errorf("without secrets: %v", err)
	}
}

func TestAnEnvIsPrivateFreshAndNotOverwritten(t *testing.T) {
	t.Parallel()
	first, second := makeEnv(t), makeEnv(t)
	info, err := os.Stat(first)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	secrets := func(path string) map[string]string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all := make(map[string]string)
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && len(value) >= 24 && !strings.HasPrefix(line, "#") {
				all[name] = value
			}
		}
		return all
	}
	one, other := secrets(first), secrets(second)
	if len(one) != 5 {
		t.Errorf("%d secrets", len(one))
	}
	for name, value := range one {
		if other[name] == value {
			t.Errorf("%s is the same twice", name)
		}
	}
	again := exec.CommandContext(t.Context(), "sh", filepath.Join(composeFolder, "make-env.sh"))
	again.Env = append(os.Environ(), "XABAR_ENV_FILE="+first)
	if out, err := again.CombinedOutput(); err == nil || !strings.Contains(string(out), "there already") {
		t.Errorf("%v %s", err, out)
	}
	if kept := secrets(first); kept["POSTGRES_PASSWORD"] != one["POSTGRES_PASSWORD"] {
		t.Error("it was overwritten")
	}
}
