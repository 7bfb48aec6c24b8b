package main

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"xabar/internal/testkit"
)

// These tests run the real binary.

func TestItSaysWhereItIsAndServes(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{})
	for path, text := range map[string]string{
		"/healthz": `"ok"`, "/readyz": `{"status":"ok","reasons":[]}`, "/metrics": "\nxabar_connections{transport=\"polling\"} 0\n",
	} {
		if status, body := g.Get(path); status != http.StatusOK || !strings.Contains(body, text) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	response, err := http.Get(g.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") {
		t.Errorf("/: %s", response.Status)
	}
	http.DefaultClient.CloseIdleConnections()
	g.Stop() // all that it printed has been read now
	for _, text := range []string{g.URL, g.AdminURL, "demo mode", "/demo/login", "Ctrl-C"} {
		if !strings.Contains(g.Log(), text) {
			t.Errorf("it does not say %q:\n%s", text, g.Log())
		}
	}
}

func TestADemoUserIsTheSameAfterACrash(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{})
	before := g.Login("Ada")
	g.Kill()
	url := g.URL
	g.Restart()
	if g.URL != url {
		t.Fatalf("it is at %s, was at %s", g.URL, url)
	}
	after := g.Login("ada")
	if after.User.ID != before.User.ID {
		t.Fatalf("user %v, was %v", after.User, before.User)
	}
	// The key is kept too: a token from before the crash is still good.
	js := testkit.NewJS(t)
	c := js.Connected(t, testkit.ClientOptions{URL: g.URL, Token: before.Token})
	session, err := c.WaitFor(testkit.Context(t), "session", nil)
	if err != nil {
		t.Fatal(err)
	}
	type userOf struct {
		User struct {
			ID string `json:"id"`
		} `json:"user"`
	}
	if got := testkit.Decode[userOf](session); got.User.ID != before.User.ID {
		t.Fatalf("session %s", session.Args)
	}
}

func TestATokenOfTheCommandLineLetsIn(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{
		NoDemo: true, Args: []string{"--jwt-secret", strings.Repeat("secret ", 5)},
	})
	code, token, stderr := xabar(t, "token", "alice", "--name", "Alice", "--jwt-secret", strings.Repeat("secret ", 5))
	if code != 0 {
		t.Fatal(stderr)
	}
	js := testkit.NewJS(t)
	ctx := testkit.Context(t)
	c := js.Connected(t, testkit.ClientOptions{URL: g.URL, Token: strings.TrimSpace(token)})
	session, err := c.WaitFor(ctx, "session", nil)
	if err != nil || !strings.Contains(string(session.Args[0]), `"externalId":"alice"`) {
		t.Fatalf("session %s %v", session.Args, err)
	}
	for _, bad := range []string{"", "x", strings.TrimSpace(token) + "x"} {
		err := js.Client(t, testkit.ClientOptions{URL: g.URL, Token: bad}).Connect(ctx)
		var refused *testkit.Refused
		var data struct{ Code string }
		if !errors.As(err, &refused) || json.Unmarshal(refused.Data, &data) != nil || data.Code != "unauthenticated" {
			t.Errorf("token %q: %v", bad, err)
		}
	}
	// There is no way in by a name.
	response, err := http.Post(g.URL+"/demo/login", "application/json", strings.NewReader(`{"name": "ada"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer response.Body.Close()
	if response.StatusCode != http.StatusNotFound {
		t.Errorf("demo login: %s", response.Status)
	}
}

func TestSIGTERMSendsClientsElsewhereAndEndsWell(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{})
	js := testkit.NewJS(t)
	ctx := testkit.Context(t)
	token := g.Login("ada").Token
	clients := []*testkit.Client{
		js.Connected(t, testkit.ClientOptions{URL: g.URL, Token: token, Transports: []string{"websocket"}}),
		js.Connected(t, testkit.ClientOptions{URL: g.URL, Token: token, Transports: []string{"polling"}}),
	}
	g.Stop()
	for i, c := range clients {
		closing, err := c.WaitFor(ctx, "session:closing", nil)
		if err != nil || !strings.Contains(string(closing.Args[0]), `"draining"`) {
			t.Errorf("client %d hears %s %v", i, closing.Args, err)
		}
		if _, err := c.WaitFor(ctx, "disconnect", nil); err != nil {
			t.Errorf("client %d: %v", i, err)
		}
	}
	g.Restart()
	for i, c := range clients {
		if _, err := c.WaitCount(ctx, "connect", 2); err != nil {
			t.Errorf("client %d does not come back by itself: %v", i, err)
		}
	}
}

func TestASecondSignalEndsItAtOnce(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{})
	js := testkit.NewJS(t)
	c := js.Connected(t, testkit.ClientOptions{URL: g.URL, Token: g.Login("ada").Token, Transports: []string{"websocket"}})
	if err := c.Pause(testkit.Context(t)); err != nil { // it takes no goodbye: the drain has to wait for it
		t.Fatal(err)
	}
	g.Signal(syscall.SIGTERM)
	g.Signal(syscall.SIGINT)
	err := g.Wait(testkit.Context(t))
	var exit *exec.ExitError
	// Either the drain was done before the second signal came, or it was cut off.
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 130) {
		t.Fatalf("it ended with %v", err)
	}
}

func TestItRefusesToStart(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	path, err := testkit.Binary()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		code int
		says string
	}{
		"public demo mode": {[]string{"--demo", "--listen", "0.0.0.0:0"}, 2, "--demo-public"},
		"an unusable key":  {[]string{"--jwt-public-key", "nowhere.pem"}, 1, "--jwt-public-key"},
		"a taken port":     {[]string{"--demo", "--listen", taken.Addr().String()}, 1, "--listen"},
		"a foreign scheme": {[]string{"--demo", "--database-url", "mysql://x"}, 1, "mysql"},
		"no key":           {[]string{"--listen", "127.0.0.1:0"}, 2, "--jwt-secret"},
		"a strange flag":   {[]string{"--redis", "x"}, 2, "redis"},
	} {
		cmd := exec.CommandContext(testkit.Context(t), path, append([]string{"serve", "--data-dir", t.TempDir(), "--admin-listen", "127.0.0.1:0"}, tc.args...)...)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir()}
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != tc.code || !strings.Contains(string(out), tc.says) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestTheLogKeepsSecrets(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{Args: []string{"--log-level", "debug"}})
	js := testkit.NewJS(t)
	ctx := testkit.Context(t)
	ada, bob := g.Login("ada"), g.Login("bob")
	c := js.Connected(t, testkit.ClientOptions{URL: g.URL, Token: ada.Token})
	answer, err := c.Emit(ctx, "message:send", map[string]string{"toUserId": bob.User.ID, "clientMsgId": "x1", "text": "a most private word"})
	if err != nil || !strings.Contains(string(answer), `"ok":true`) {
		t.Fatalf("%s %v", answer, err)
	}
	if js.Client(t, testkit.ClientOptions{URL: g.URL, Token: ada.Token + "x"}).Connect(ctx) == nil {
		t.Error("a damaged token lets in")
	}
	g.Stop()
	for _, secret := range []string{ada.Token, bob.Token, "a most private word"} {
		if strings.Contains(g.Log(), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
}
