package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xabar/internal/doctor"
	"xabar/internal/testkit"
	"xabar/internal/testkit/pgtest"
	"xabar/internal/testkit/redistest"
	"xabar/persistence"
)

// diagnosis is what `xabar doctor --json` prints.
type diagnosis struct {
	OK       bool
	Problems int
	Findings []doctor.Finding
}

func diagnose(t *testing.T, out string) diagnosis {
	t.Helper()
	var d diagnosis
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	return d
}

// level is that of the finding of this section and name whose text has the words; "" if there is none.
func (d diagnosis) level(section, name, words string) doctor.Level {
	for _, f := range d.Findings {
		if f.Section == section && f.Name == name && strings.Contains(f.Found, words) {
			return f.Level
		}
	}
	return ""
}

func TestDoctorOfAWholeDeployment(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Durable: true})
	database, err := server.Database(testkit.Context(t), "chat")
	if err != nil {
		t.Fatal(err)
	}
	redis := redistest.Start(t)
	common := []string{
		"--database-url", database, "--redis-url", redis.URL, "--jwt-secret", strings.Repeat("secret ", 5),
		"--server-key", "a server key, long enough",
	}
	g := testkit.StartGateway(t, testkit.GatewayOptions{NoDemo: true, Args: common})
	awaitReady(t, g)
	strip := func(u string) string { return strings.TrimPrefix(u, "http://") }
	args := append(slices.Clone(common), "--url", g.URL, "--listen", strip(g.URL), "--admin-listen", strip(g.AdminURL), "--connections", "100")
	code, out, stderr := xabar(t, append([]string{"doctor", "--json"}, args...)...)
	d := diagnose(t, out)
	for _, f := range d.Findings {
		if f.Level != doctor.OK {
			t.Errorf("%s, %s is a %s: %s -> %s", f.Section, f.Name, f.Level, f.Found, f.Do)
		}
	}
	if code != 0 || !d.OK || stderr != "" {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
	for finding, words := range map[[2]string]string{
		{"configuration", "keys"}: "HS256", {"addresses", "running"}: "is ready", {"database", "commit"}: "on the disk",
		{"schema", "version"}: "newest", {"redis", "pub/sub"}: "come through", {"public URL", "gateway"}: "Xabar answers",
		{"public URL", "client address"}: "127.0.0.1", {"clock", "time"}: "the gateway's agrees", {"limits", "files"}: "100 connections",
	} {
		if d.level(finding[0], finding[1], words) != doctor.OK {
			t.Errorf("there is no good finding %v, %s:\n%s", finding, words, out)
		}
	}
	code, out, _ = xabar(t, append([]string{"doctor"}, args...)...)
	if code != 0 || !strings.Contains(out, "\n0 problems, 0 warnings, ") || strings.Contains(out, "\x1b") {
		t.Errorf("as text, code %d:\n%s", code, out)
	}
	if strings.Contains(g.Log(), "a server key") {
		t.Error("the server key is in the gateway's log")
	}
}

// awaitReady waits until the node hears itself through Redis.
func awaitReady(t *testing.T, g *testkit.Gateway) {
	t.Helper()
	ctx := testkit.Context(t)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		if _, body := g.Get("/readyz"); strings.Contains(body, `"status":"ok"`) {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatal("the node does not get ready")
		}
	}
}

func TestDoctorOfADeploymentInWhichEverythingIsWrong(t *testing.T) {
	t.Parallel()
	nobody := httptest.NewServer(http.NotFoundHandler())
	defer nobody.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	at := strings.TrimPrefix(gone.URL, "http://")
	secrets := []string{"hunter2-db", "hunter2-redis", "hunter2-key", "1234:hunter2-bot", "hunter2-jwks"}
	args := []string{
		"doctor", "--data-dir", filepath.Join(t.TempDir(), "data"), "--listen", "nowhere", "--trusted-proxies", "0.0.0.0/0", "--allowed-origins", "*",
		"--database-url", "postgres://me:" + secrets[0] + "@" + at + "/chat", "--redis-url", "redis://:" + secrets[1] + "@" + at,
		"--jwt-secret", secrets[2], "--telegram-token", secrets[3], "--telegram-api-url", gone.URL,
		"--jwks-url", "http://me:" + secrets[4] + "@" + at + "/keys", "--url", nobody.URL, "--webhook-url", gone.URL,
		"--otlp-endpoint", gone.URL,
	}
	code, out, stderr := xabar(t, append(args, "--json")...)
	d := diagnose(t, out)
	if code != 1 || d.OK || stderr != "" {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
	for _, finding := range [][3]string{
		{"configuration", "settings", "--listen"}, {"configuration", "settings", "--webhook-secret"}, {"configuration", "key set", "refused"},
		{"configuration", "proxies", "everybody"}, {"database", "reachable", "refused"}, {"redis", "reachable", "refused"},
		{"notifications", "webhook", "refused"}, {"notifications", "telegram", "refused"}, {"public URL", "reachable", "404"},
		{"traces", "collector", "refused"},
	} {
		if d.level(finding[0], finding[1], finding[2]) != doctor.Problem {
			t.Errorf("there is no problem %v:\n%s", finding, out)
		}
	}
	for _, finding := range [][3]string{{"configuration", "origins", "everybody"}, {"configuration", "settings", "can be guessed"}} {
		if d.level(finding[0], finding[1], finding[2]) != doctor.Warning {
			t.Errorf("there is no warning %v:\n%s", finding, out)
		}
	}
	_, text, _ := xabar(t, args...)
	for _, secret := range secrets {
		if strings.Contains(out+text+stderr, secret) {
			t.Errorf("it prints %s:\n%s", secret, text)
		}
	}
}

func TestDoctorInAShellWithFewFileDescriptors(t *testing.T) {
	t.Parallel()
	path, err := testkit.Binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(testkit.Context(t), "sh", "-c", `ulimit -n 256 && exec "$0" doctor --json --data-dir data`, path)
	cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin", "HOME=" + dir}
	out, err := cmd.Output()
	d := diagnose(t, string(out))
	if err == nil || d.level("limits", "files", "256 file descriptors") != doctor.Problem || d.Problems != 1 {
		t.Errorf("%v:\n%s", err, out)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("it makes %v %v", entries, err)
	}
}

func TestDoctorWhereNothingMayBeMigrated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"--data-dir", dir, "--demo", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--no-migrate", "--connections", "100"}
	// The numbered steps are made, River's are not.
	path := filepath.Join(dir, "xabar.db")
	store, err := persistence.Open(t.Context(), "sqlite:"+path, persistence.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	code, out, _ := xabar(t, append([]string{"doctor", "--json"}, args...)...)
	if d := diagnose(t, out); code != 1 || d.Problems != 1 || d.level("notifications", "queue", "older") != doctor.Problem {
		t.Errorf("code %d:\n%s", code, out)
	}
	if code, _, stderr := xabar(t, "migrate", "up", "--data-dir", dir); code != 0 {
		t.Fatal(stderr)
	}
	if code, out, _ := xabar(t, append([]string{"doctor", "--json"}, args...)...); code != 0 {
		t.Errorf("after migrate up, code %d:\n%s", code, out)
	}
}

func TestDoctorFetchesTheKeySet(t *testing.T) {
	t.Parallel()
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"one","x":%q}]}`, base64.RawURLEncoding.EncodeToString(public))
	}))
	defer provider.Close()
	args := []string{"doctor", "--json", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--connections", "100"}
	code, out, _ := xabar(t, append(args, "--jwks-url", provider.URL+"/keys")...)
	if d := diagnose(t, out); code != 0 || d.level("configuration", "key set", provider.URL+"/keys") != doctor.OK {
		t.Errorf("code %d:\n%s", code, out)
	}
	http.DefaultClient.CloseIdleConnections()
}
