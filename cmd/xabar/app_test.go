package main

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"

	"xabar/internal/testkit"
)

func appConfig(t *testing.T, args ...string) Config {
	t.Helper()
	cfg, err := parse(t, append([]string{"--demo", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		"--data-dir", t.TempDir()}, args...))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestAnAppLeavesNothingBehind runs a node in this process, whose goroutines testkit.Main
// counts.
func TestAnAppLeavesNothingBehind(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	app, err := NewApp(ctx, appConfig(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()

	js := testkit.NewJS(t)
	code, token, stderr := xabar(t, "token", "ada", "--data-dir", app.cfg.DataDir)
	if code != 0 {
		t.Fatal(stderr)
	}
	for _, transport := range []string{"websocket", "polling"} {
		c := js.Connected(t, testkit.ClientOptions{
			URL: app.Addresses().Public, Token: strings.TrimSpace(token), Transports: []string{transport},
		})
		if _, err := c.WaitFor(testkit.Context(t), "session", nil); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatalf("it ended with %v", err)
		}
	case <-testkit.Context(t).Done():
		t.Fatal("it does not end")
	}
}

func TestAnAppThatCannotStartLeavesNothingBehind(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, args := range [][]string{
		{"--listen", taken.Addr().String()},
		{"--admin-listen", taken.Addr().String()},
		{"--database-url", "sqlite:" + t.TempDir() + "/no/such/folder"},
		{"--jwks-url", "http://" + taken.Addr().String() + "/x", "--jwt-public-key", "nowhere.pem"},
	} {
		if app, err := NewApp(t.Context(), appConfig(t, args...), slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%v: started %+v", args, app.Addresses())
		}
	}
}
