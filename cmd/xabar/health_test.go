package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealthAsksTheNode(t *testing.T) {
	t.Parallel()
	ready := http.NewServeMux()
	ready.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		w.Write([]byte(`{"status":"draining"}` + "\n"))
	})
	ready.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"status":"ok"}` + "\n")) })
	server := httptest.NewServer(ready)
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")

	code, out, _ := xabar(t, "health", "--live", "--admin-listen", address)
	if code != 0 || out != `{"status":"ok"}`+"\n" {
		t.Errorf("a process that lives: %d %q", code, out)
	}
	code, out, stderr := xabar(t, "health", "--admin-listen", address)
	if code != 1 || out != "" || !strings.Contains(stderr, "503") || !strings.Contains(stderr, "draining") {
		t.Errorf("a node that drains: %d %q %q", code, out, stderr)
	}
	server.Close()
	if code, _, stderr := xabar(t, "health", "--admin-listen", address); code != 1 || stderr == "" {
		t.Errorf("nobody there: %d %q", code, stderr)
	}
	if code, _, _ := xabar(t, "health", "--admin-listen", "3001"); code != 2 {
		t.Errorf("no address: %d", code)
	}
}

func TestHealthDoesNotWaitForever(t *testing.T) {
	t.Parallel()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	code, _, stderr := xabar(t, "health", "--timeout", "50ms", "--admin-listen", strings.TrimPrefix(silent.URL, "http://"))
	if code != 1 || !strings.Contains(stderr, "deadline") {
		t.Errorf("%d %q", code, stderr)
	}
}

func TestHealthFindsWhereServeListens(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		":3001": "127.0.0.1:3001", "0.0.0.0:3001": "127.0.0.1:3001", "[::]:3001": "[::1]:3001",
		"10.0.0.7:80": "10.0.0.7:80", "localhost:3001": "localhost:3001",
	} {
		if got, err := reachable(listen); err != nil || got != want {
			t.Errorf("%s: %s %v", listen, got, err)
		}
	}
}
