package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"xabar/internal/testkit"
	"xabar/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { testkit.Main(m, pgtest.StopShared) }

// parse reads a command line of serve as the program does, under an environment without
// XABAR_ variables but these.
func parse(t *testing.T, args []string, env ...string) (Config, error) {
	t.Helper()
	setEnv(t, env...)
	var c cli
	parser, err := kong.New(&c, kong.DefaultEnvars(envPrefix))
	if err != nil {
		t.Fatal(err)
	}
	k, err := parser.Parse(append([]string{"serve"}, args...))
	if err != nil {
		return c.Serve.Config, err
	}
	c.Serve.set = givenFlags(k)
	return c.Serve.Config, c.Serve.resolve()
}

func setEnv(t *testing.T, env ...string) {
	t.Helper()
	for i := 0; i < len(env); i += 2 {
		t.Setenv(env[i], env[i+1])
	}
}

func TestDemoModeIsTheDefaultOnlyWhenNothingIsConfigured(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		env  []string
		demo bool
		err  string // part of it; "": none
	}{
		"nothing at all":             {demo: true},
		"what says nothing of use":   {args: []string{"--data-dir", "x", "--log-level", "debug", "--ack-timeout", "2s"}, demo: true},
		"a secret":                   {args: []string{"--jwt-secret", "s"}},
		"a secret as a variable":     {env: []string{"XABAR_JWT_SECRET", "s"}},
		"a public key":               {args: []string{"--jwt-public-key", "x"}},
		"a key set":                  {args: []string{"--jwks-url", "https://example.org"}},
		"a secret beside demo":       {args: []string{"--jwt-secret", "s", "--demo"}, demo: true},
		"only a database":            {args: []string{"--database-url", "sqlite:x"}, err: "no key"},
		"only the default address":   {args: []string{"--listen", "127.0.0.1:3000"}, err: "no key"},
		"only an address variable":   {env: []string{"XABAR_LISTEN", "127.0.0.1:3000"}, err: "no key"},
		"only an admin address":      {args: []string{"--admin-listen", ":3001"}, err: "no key"},
		"demo switched off":          {env: []string{"XABAR_DEMO", "false"}, err: "no key"},
		"an empty secret":            {env: []string{"XABAR_JWT_SECRET", ""}, err: "--jwt-secret is set, but empty"},
		"a blank secret":             {args: []string{"--jwt-secret", "  "}, err: "--jwt-secret is set, but empty"},
		"an empty secret in demo":    {args: []string{"--demo"}, env: []string{"XABAR_JWT_SECRET", ""}, demo: true, err: "--jwt-secret is set, but empty"},
		"an empty key set":           {env: []string{"XABAR_JWKS_URL", ""}, err: "--jwks-url is set, but empty"},
		"an empty database":          {args: []string{"--demo", "--database-url", ""}, demo: true, err: "--database-url is set, but empty"},
		"demo with a database":       {args: []string{"--demo", "--database-url", "sqlite:x"}, demo: true},
		"demo on loopback":           {args: []string{"--demo", "--listen", "127.0.0.2:80"}, demo: true},
		"demo on IPv6 loopback":      {args: []string{"--demo", "--listen", "[::1]:80"}, demo: true},
		"demo by the name":           {args: []string{"--demo", "--listen", "localhost:80"}, demo: true},
		"demo everywhere":            {args: []string{"--demo", "--listen", ":3000"}, demo: true, err: "loopback only"},
		"demo on 0.0.0.0":            {args: []string{"--demo", "--listen", "0.0.0.0:3000"}, demo: true, err: "loopback only"},
		"demo on a LAN":              {args: []string{"--demo", "--listen", "10.0.0.1:3000"}, demo: true, err: "loopback only"},
		"demo on a name":             {args: []string{"--demo", "--listen", "example.org:3000"}, demo: true, err: "loopback only"},
		"demo, admin on a LAN":       {args: []string{"--demo", "--admin-listen", "10.0.0.1:3001"}, demo: true, err: "loopback only"},
		"demo, told to be public":    {args: []string{"--demo", "--demo-public", "--listen", ":3000"}, demo: true},
		"a secret beside and a LAN":  {args: []string{"--demo", "--jwt-secret", "s", "--listen", ":3000"}, demo: true, err: "loopback only"},
		"public without demo":        {args: []string{"--jwt-secret", "s", "--demo-public"}, err: "--demo-public means nothing"},
		"not an address":             {args: []string{"--jwt-secret", "s", "--listen", "3000"}, err: "not host:port"},
		"an address that is empty":   {args: []string{"--jwt-secret", "s"}, env: []string{"XABAR_LISTEN", ""}, err: "not host:port"},
		"an origin with a path":      {args: []string{"--allowed-origins", "https://example.org/"}, demo: true, err: "not an origin"},
		"an origin without a scheme": {args: []string{"--allowed-origins", "example.org"}, demo: true, err: "not an origin"},
		"origins":                    {args: []string{"--allowed-origins", "https://example.org,https://*.example.org:8443"}, demo: true},
		"a proxy that is none":       {args: []string{"--trusted-proxies", "nginx"}, demo: true, err: "--trusted-proxies"},
		"a timeout of nothing":       {args: []string{"--ack-timeout", "0s"}, demo: true, err: "--ack-timeout"},
		"a node without a name":      {args: []string{"--node-name", "a.b"}, demo: true, err: "--node-name"},
		"no time to drain":           {args: []string{"--drain-timeout", "0s"}, demo: true, err: "--drain-timeout"},
		"a collector":                {args: []string{"--otlp-endpoint", "http://user:pass@127.0.0.1:4318"}, demo: true},
		"a collector that is none":   {args: []string{"--otlp-endpoint", "127.0.0.1:4317"}, demo: true, err: "--otlp-endpoint"},
		"an empty collector":         {args: []string{"--otlp-endpoint", ""}, demo: true, err: "--otlp-endpoint"},
		"more traces than there are": {args: []string{"--trace-sample", "1.5"}, demo: true, err: "--trace-sample"},
		"no time to arrive":          {args: []string{"--notify-wait", "9s"}, demo: true, err: "--notify-wait"},
		"too long to arrive":         {args: []string{"--notify-wait", "31s"}, demo: true, err: "--notify-wait"},
		"quiet hours without a zone": {args: []string{"--quiet-hours-default", "22:00-07:00"}, err: "22:00-07:00 Asia/Tashkent"},
		"a webhook without a secret": {args: []string{"--webhook-url", "https://example.org"}, demo: true, err: "go together"},
		"a secret without a webhook": {args: []string{"--webhook-secret", strings.Repeat("s", 32)}, demo: true, err: "go together"},
		"a webhook that is no URL":   {args: []string{"--webhook-url", "example", "--webhook-secret", strings.Repeat("s", 32)}, demo: true, err: "--webhook-url"},
		"a webhook":                  {args: []string{"--webhook-url", "https://example.org", "--webhook-secret", strings.Repeat("s", 32)}, demo: true},
		"a subject that is none":     {args: []string{"--vapid-subject", "me"}, demo: true, err: "--vapid-subject"},
		"a rate that is none":        {args: []string{"--limit-handshakes", "50"}, err: "RATE/s:BURST"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := parse(t, tc.args, tc.env...)
			switch {
			case tc.err == "" && err != nil:
				t.Fatalf("error %v", err)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Fatalf("error %v, want %q in it", err, tc.err)
			case cfg.Demo != tc.demo:
				t.Fatalf("demo %v", cfg.Demo)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	cfg, err := parse(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Listen != "127.0.0.1:3000" || cfg.AdminListen != "127.0.0.1:3001" || cfg.AckTimeout != time.Second ||
		cfg.LimitHandshakes != (Rate{50, 500}) || cfg.url() != "sqlite:"+filepath.Join(cfg.DataDir, "xabar.db") {
		t.Fatalf("%+v", cfg)
	}
}

func TestEverySettingIsAVariableOfTheSameName(t *testing.T) {
	for _, flag := range serveFlags(t) {
		if flag.Name == "help" {
			continue
		}
		want := "XABAR_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		if len(flag.Envs) != 1 || flag.Envs[0] != want {
			t.Errorf("--%s is %v, want %s", flag.Name, flag.Envs, want)
		}
		if flag.Help == "" {
			t.Errorf("--%s has no help", flag.Name)
		}
	}
}

func TestTheFlagWinsOverTheVariable(t *testing.T) {
	cfg, err := parse(t, []string{"--jwt-secret", "flag"}, "XABAR_JWT_SECRET", "variable")
	if err != nil || cfg.JWTSecret != "flag" {
		t.Fatalf("%q, %v", cfg.JWTSecret, err)
	}
}

func TestRates(t *testing.T) {
	for text, want := range map[string]Rate{
		"off": {}, "50/s:500": {50, 500}, "0.5/s:1": {0.5, 1},
	} {
		var r Rate
		if err := r.UnmarshalText([]byte(text)); err != nil || r != want || r.String() != text {
			t.Errorf("%s: %+v %v", text, r, err)
		}
	}
	for _, text := range []string{"", "50", "50/s", "0/s:1", "-1/s:5", "NaN/s:5", "Inf/s:5", "5/s:0", "5/d:1", "x/s:1", "OFF"} {
		var r Rate
		if r.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is accepted: %v", text, r)
		}
	}
}

// xabar runs a command line in this process.
func xabar(t *testing.T, args ...string) (code int, out, stderr string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, streams{&o, &e})
	return code, o.String(), e.String()
}

func TestCheckConfigSaysWhatIsInForceAndKeepsSecrets(t *testing.T) {
	setEnv(t, "XABAR_JWT_SECRET", "hunter2hunter2hunter2hunter2hunter2",
		"XABAR_DATABASE_URL", "postgres://u:hunter2@db/x?password=hunter2")
	code, out, stderr := xabar(t, "check-config", "--ack-timeout", "2s")
	if code != 0 || !strings.Contains(out, "This configuration works.") {
		t.Fatalf("%d\n%s%s", code, out, stderr)
	}
	if strings.Contains(out, "hunter2") {
		t.Fatalf("a secret is shown:\n%s", out)
	}
	for _, row := range []string{"--ack-timeout 2s set", "--listen 127.0.0.1:3000 default", "--jwt-secret (35 bytes) set", "--demo false default"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), row) {
			t.Errorf("no row %q in\n%s", row, out)
		}
	}
}

func TestCheckConfigRefuses(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.pem")
	for name, args := range map[string][]string{
		"no key":                  {"--listen", "127.0.0.1:3000"},
		"a key file that is not":  {"--jwt-public-key", missing},
		"a key that is none":      {"--jwt-public-key", "-----BEGIN NOTHING-----"},
		"a flag nobody knows":     {"--redis", "x"},
		"a value of a wrong type": {"--ack-timeout", "soon"},
	} {
		code, out, stderr := xabar(t, append([]string{"check-config"}, args...)...)
		if code != 2 || stderr == "" || strings.Contains(out, "works") {
			t.Errorf("%s: %d\n%s%s", name, code, out, stderr)
		}
	}
}

func TestCheckConfigWarnsOfASecretThatCanBeGuessed(t *testing.T) {
	code, out, _ := xabar(t, "check-config", "--jwt-secret", "hunter2")
	if code != 0 || !strings.Contains(out, "Warning: --jwt-secret has 7 bytes") {
		t.Fatalf("%d\n%s", code, out)
	}
}

func TestCheckConfigMakesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if code, out, stderr := xabar(t, "check-config", "--data-dir", dir); code != 0 {
		t.Fatalf("%d\n%s%s", code, out, stderr)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("the data folder was made")
	}
}

func TestPublicKeyIsTextOrAFile(t *testing.T) {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	path := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, setting := range []string{string(text), path} {
		if code, out, stderr := xabar(t, "check-config", "--jwt-public-key="+setting); code != 0 {
			t.Errorf("%d\n%s%s", code, out, stderr)
		}
	}
}

func TestDemoKeyIsMadeOnceAndIsItsOwnersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	keys := make(chan string, 8)
	for range cap(keys) {
		go func() {
			key, err := demoKey(dir)
			if err != nil {
				t.Error(err)
			}
			keys <- string(key)
		}()
	}
	first := <-keys
	for range cap(keys) - 1 {
		if key := <-keys; key != first {
			t.Fatal("two demo keys")
		}
	}
	path := filepath.Join(dir, "demo.key")
	mode := func() os.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	if mode() != 0o600 {
		t.Errorf("mode %v", mode())
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if key, err := demoKey(dir); err != nil || string(key) != first || mode() != 0o600 {
		t.Errorf("the key after a chmod: %v, mode %v", err, mode())
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("in the folder: %v %v", left, err)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := demoKey(dir); err == nil {
		t.Error("a damaged key is used")
	}
}

func TestTokenAndVersion(t *testing.T) {
	dir := t.TempDir()
	code, token, stderr := xabar(t, "token", "42", "--name", "Ada", "--data-dir", dir)
	if code != 0 || strings.Count(token, ".") != 2 || strings.Count(token, "\n") != 1 {
		t.Fatalf("%d %q %s", code, token, stderr)
	}
	if code, _, stderr := xabar(t, "token", "", "--data-dir", dir); code != 2 {
		t.Errorf("a token for nobody: %d %s", code, stderr)
	}
	if code, out, _ := xabar(t, "version"); code != 0 || !strings.HasPrefix(out, "xabar ") {
		t.Errorf("%d %q", code, out)
	}
	if code, out, _ := xabar(t, "--help"); code != 0 || !strings.Contains(out, "check-config") {
		t.Errorf("%d %q", code, out)
	}
	if code, _, stderr := xabar(t); code != 2 || stderr == "" {
		t.Errorf("without a command: %d %q", code, stderr)
	}
}

func TestMigrate(t *testing.T) {
	dir := t.TempDir()
	migrate := func(want int, args ...string) string {
		t.Helper()
		code, out, stderr := xabar(t, append(append([]string{"migrate"}, args...), "--data-dir", dir)...)
		if code != want {
			t.Fatalf("%v: %d\n%s%s", args, code, out, stderr)
		}
		return out
	}
	migrate(1, "status")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Fatalf("status made %v %v", left, err)
	}
	up := migrate(0, "up")
	if again := migrate(0, "up"); again != up {
		t.Errorf("up again: %s", again)
	}
	if strings.Contains(up, "pending") {
		t.Errorf("up: %s", up)
	}
	if down := migrate(0, "down"); strings.Count(down, "pending: ") != 1 {
		t.Errorf("down: %s", down)
	}
	if down := migrate(0, "down", "2"); strings.Count(down, "pending: ") != 3 {
		t.Errorf("down 2: %s", down)
	}
	if status := migrate(0, "status"); strings.Count(status, "pending: ") != 3 {
		t.Errorf("status: %s", status)
	}
	migrate(1, "down", "99")
	if got := migrate(0, "up"); got != up {
		t.Errorf("up from there: %s", got)
	}
}

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	prune := func(want int, args ...string) string {
		t.Helper()
		code, out, stderr := xabar(t, append(append([]string{"prune"}, args...), "--data-dir", dir)...)
		if code != want {
			t.Fatalf("%v: %d\n%s%s", args, code, out, stderr)
		}
		return out
	}
	prune(1, "--older-than", "90d") // there is no database
	if code, _, stderr := xabar(t, "migrate", "up", "--data-dir", dir); code != 0 {
		t.Fatal(stderr)
	}
	if out := prune(0, "--older-than", "90d"); !strings.HasPrefix(out, "0 messages from before ") {
		t.Errorf("pruning nothing: %s", out)
	}
	for _, bad := range []string{"", "0d", "-1h", "90", "x"} {
		prune(2, "--older-than", bad)
	}
	prune(2)
}

func TestServeDoesNotMigrateWhereToldNotTo(t *testing.T) {
	dir := t.TempDir()
	if code, _, stderr := xabar(t, "migrate", "up", "--data-dir", dir); code != 0 {
		t.Fatal(stderr)
	}
	if code, _, stderr := xabar(t, "migrate", "down", "--data-dir", dir); code != 0 {
		t.Fatal(stderr)
	}
	code, _, stderr := xabar(t, "serve", "--demo", "--no-migrate", "--data-dir", dir, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	if code != 1 || !strings.Contains(stderr, "schema") {
		t.Errorf("%d %s", code, stderr)
	}
}
