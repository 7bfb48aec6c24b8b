package doctor

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"xabar/migrations"
	"xabar/persistence/sqlite"
)

// write makes files of a folder like /proc.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestLimits(t *testing.T) {
	t.Parallel()
	var r Report
	Limits(&r, LimitsInput{Connections: 1 << 60})
	want(t, &r, "limits", "files", Problem, "too few", "LimitNOFILE")
	if runtime.GOOS != "linux" {
		return
	}
	small := LimitsInput{Connections: 100, Proc: write(t, map[string]string{
		"sys/net/core/somaxconn": "128\n", "sys/net/ipv4/ip_local_port_range": "60000\t60010\n",
		"sys/net/netfilter/nf_conntrack_max": "150\n", "meminfo": "MemFree: 1 kB\nMemTotal:   1024 kB\n",
	}), Cgroup: t.TempDir()}
	r = Report{}
	Limits(&r, small)
	want(t, &r, "limits", "files", OK)
	want(t, &r, "limits", "backlog", Warning, "128", "somaxconn=4096")
	want(t, &r, "limits", "ports", Warning, "11:", "ip_local_port_range")
	want(t, &r, "limits", "conntrack", Warning, "150")
	want(t, &r, "limits", "memory", Warning, "1 MB of the machine")
	small.Cgroup = write(t, map[string]string{"memory.max": "2147483648\n"})
	r = Report{}
	Limits(&r, small)
	want(t, &r, "limits", "memory", OK, "2048 MB of the container")
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	examine := func(path string, migrate bool) *Report {
		var r Report
		SQLite(t.Context(), &r, SQLiteInput{Path: path, Migrate: migrate})
		return &r
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "folder", "xabar.db")
	r := examine(path, true)
	allWell(t, r, "file system", "free space")
	want(t, r, "database", "writable", OK, "made by serve")
	want(t, r, "schema", "version", OK, "serve makes it")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("it leaves %v %v", entries, err)
	}

	path = filepath.Join(dir, "xabar.db")
	store, err := sqlite.Open(context.Background(), path, sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	r = examine(path, true) // beside a gateway
	allWell(t, r, "file system", "free space")
	want(t, r, "schema", "integrity", OK)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	want(t, examine(path, true), "database", "permissions", Warning, "chmod 600")

	older := filepath.Join(dir, "older.db")
	db, err := sqlite.OpenDB(older)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := migrations.To(t.Context(), migrations.SQLite, db, 4); err != nil {
		t.Fatal(err)
	}
	want(t, examine(older, true), "schema", "version", Warning, "000005_messages_seq")
	want(t, examine(older, false), "schema", "version", Problem, "xabar migrate up")

	broken := filepath.Join(dir, "broken.db")
	if err := os.WriteFile(broken, []byte("no database, whatever its name says, and long enough for a header of one hundred bytes, or nearly so"), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, examine(broken, true), "schema", "version", Problem, "backup")
	want(t, examine(filepath.Join(broken, "xabar.db"), true), "schema", "version", Problem)
	if runtime.GOOS == "linux" { // where nobody can write, not even root
		want(t, examine("/proc/xabar/xabar.db", true), "database", "writable", Problem, "chown")
	}
}

func TestNetworkFileSystemsAreRefused(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"NFS", "CIFS", "SMB2", "9p"} {
		if runtime.GOOS == "linux" && !networkFileSystems[kind] {
			t.Errorf("%s passes for a local file system", kind)
		}
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	examine := func(public, admin string) *Report {
		var r Report
		Addresses(t.Context(), &r, public, admin)
		return &r
	}
	r := examine("127.0.0.1:0", "127.0.0.1:0")
	allWell(t, r)
	want(t, examine("192.0.2.1:80", "127.0.0.1:0"), "addresses", "public", Problem, "--listen")
	want(t, examine("127.0.0.1:0", ":0"), "addresses", "admin", OK)

	var answer string
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			fmt.Fprint(w, answer)
		}
	}))
	defer admin.Close()
	for text, level := range map[string]Level{
		`{"status":"ok","reasons":[]}`:              OK,
		`{"status":"degraded","reasons":["redis"]}`: Warning,
		`{"status":"unavailable","reasons":["db"]}`: Problem,
		`<html>`: Problem,
	} {
		answer = text
		want(t, examine("127.0.0.1:0", admin.Listener.Addr().String()), "addresses", "running", level)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := silent.Addr().String()
	go func() { // ends with the listener
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	defer silent.Close()
	want(t, examine("127.0.0.1:0", address), "addresses", "running", Problem, "does not answer")
}

func TestChannels(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bot1:good-token/getMe":
			fmt.Fprint(w, `{"ok":true,"result":{"username":"xabar_bot"}}`)
		case "/bot1:wrong-token/getMe":
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"ok":false,"error_code":401,"description":"Unauthorized"}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer api.Close()
	for token, level := range map[string]Level{"1:good-token": OK, "1:wrong-token": Problem, "1:other-token": Problem} {
		var r Report
		Telegram(t.Context(), r.Section("notifications"), token, api.URL)
		want(t, &r, "notifications", "telegram", level)
		noSecret(t, &r, token)
	}
	var r Report
	Telegram(t.Context(), r.Section("notifications"), "1:good-token", "http://"+closedPort(t))
	want(t, &r, "notifications", "telegram", Problem, "refused")
	noSecret(t, &r, "good-token")

	r = Report{}
	Reachable(t.Context(), r.Section("notifications"), "webhook", "--webhook-url", api.URL+"/hook")
	want(t, &r, "notifications", "webhook", OK, "nothing was sent")
	r = Report{}
	Reachable(t.Context(), r.Section("notifications"), "webhook", "--webhook-url", "https://"+api.Listener.Addr().String())
	want(t, &r, "notifications", "webhook", Problem, "look at --webhook-url")
}
