package doctor

import (
	"net"
	"strings"
	"testing"
	"time"

	"xabar/internal/testkit"
	"xabar/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { testkit.Main(m, pgtest.StopShared) }

// find gives the one finding of this section and name.
func find(t *testing.T, r *Report, section, name string) Finding {
	t.Helper()
	for _, f := range r.Findings() {
		if f.Section == section && f.Name == name {
			return f
		}
	}
	t.Fatalf("there is no finding %s, %s:\n%s", section, name, text(t, r))
	return Finding{}
}

// want fails unless the finding has the level and its text the words.
func want(t *testing.T, r *Report, section, name string, level Level, words ...string) {
	t.Helper()
	f := find(t, r, section, name)
	if f.Level != level {
		t.Errorf("%s, %s is %s: %s", section, name, f.Level, f.Found)
	}
	if level == Problem && f.Do == "" {
		t.Errorf("%s, %s says nothing of what to do", section, name)
	}
	for _, word := range words {
		if !strings.Contains(f.Found+"\n"+f.Do, word) {
			t.Errorf("%s, %s does not say %q: %s -> %s", section, name, word, f.Found, f.Do)
		}
	}
}

// allWell fails if there is any problem, or any warning but those named.
func allWell(t *testing.T, r *Report, but ...string) {
	t.Helper()
	for _, f := range r.Findings() {
		named := false
		for _, name := range but {
			named = named || f.Name == name
		}
		if f.Level != OK && !named {
			t.Errorf("%s, %s is a %s: %s -> %s", f.Section, f.Name, f.Level, f.Found, f.Do)
		}
	}
}

func text(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.Text(&b, false, false); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// noSecret fails if any form of the report holds it.
func noSecret(t *testing.T, r *Report, secret string) {
	t.Helper()
	var b strings.Builder
	if err := r.JSON(&b, "test"); err != nil {
		t.Fatal(err)
	}
	for name, all := range map[string]string{"text": text(t, r), "JSON": b.String()} {
		if strings.Contains(all, secret) {
			t.Errorf("the %s holds the secret:\n%s", name, all)
		}
	}
}

// closedPort is an address on which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// off is a clock that is wrong.
func off(by time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(by) }
}
