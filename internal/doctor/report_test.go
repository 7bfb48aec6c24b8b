package doctor

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func sample() *Report {
	var r Report
	s := r.Section("database")
	s.OK("version", "PostgreSQL 15.18")
	s.Problem("fsync", "ALTER SYSTEM SET fsync = on;", "off: %s", strings.Repeat("a power cut loses messages ", 5))
	r.Section("clock").Warn("time", "synchronise", "2s ahead")
	return &r
}

func TestTextIsColumnsOnATerminalAndLinesElsewhere(t *testing.T) {
	t.Parallel()
	var lines, columns, coloured strings.Builder
	r := sample()
	for b, how := range map[*strings.Builder][2]bool{&lines: {false, false}, &columns: {true, false}, &coloured: {true, true}} {
		if err := r.Text(b, how[0], how[1]); err != nil {
			t.Fatal(err)
		}
	}
	wantLines := "ok       database, version: PostgreSQL 15.18\n" +
		"problem  database, fsync: off: " + strings.TrimSpace(strings.Repeat("a power cut loses messages ", 5)) + " -> ALTER SYSTEM SET fsync = on;\n" +
		"warning  clock, time: 2s ahead -> synchronise\n\n1 problem, 1 warning, 1 ok.\n"
	if lines.String() != wantLines {
		t.Errorf("lines:\n%s", lines.String())
	}
	for line := range strings.Lines(columns.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > textWidth {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	if strings.Contains(columns.String(), "\x1b") || !strings.Contains(coloured.String(), "\x1b[1;31mproblem") {
		t.Errorf("colours:\n%s\n%s", columns.String(), coloured.String())
	}
	if !strings.Contains(columns.String(), "\nDatabase\n  ok       version  PostgreSQL 15.18\n  problem  fsync    off: ") {
		t.Errorf("columns:\n%s", columns.String())
	}
}

func TestJSONHasEveryFinding(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := sample().JSON(&b, "1.2.3"); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Version            string
		OK                 bool
		Problems, Warnings int
		Findings           []Finding
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != "1.2.3" || got.OK || got.Problems != 1 || got.Warnings != 1 || len(got.Findings) != 3 || got.Findings[1].Do == "" {
		t.Errorf("%s", b.String())
	}
}

func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	var r Report
	r.Hide("top secret", "x", "like:a URL")
	r.HideURL("postgres://me:p%40ss-word@host/db", "redis://host?username=a&password=other-word", "redis://me:third-word@[bad")
	s := r.Section("database")
	s.Problem("reachable", "not with p@ss-word", "p@ss-word, p%%40ss-word, top secret, like:a URL, third-word and other-word were refused, x was not")
	for _, secret := range []string{"p@ss-word", "p%40ss-word", "top secret", "other-word", "third-word", "like:a URL"} {
		noSecret(t, &r, secret)
	}
	if found := r.Findings()[0].Found; !strings.Contains(found, "x was not") {
		t.Errorf("one letter hides words: %s", found)
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sample ClockSample
		level  Level
		says   string
	}{
		"the same":             {ClockSample{"PostgreSQL", 3 * time.Millisecond, time.Millisecond}, OK, "agrees"},
		"far away":             {ClockSample{"PostgreSQL", 2 * time.Second, 1500 * time.Millisecond}, OK, "within 2s"},
		"ahead":                {ClockSample{"Redis", 5 * time.Second, time.Millisecond}, Warning, "5s ahead of this machine's"},
		"far ahead":            {ClockSample{"Redis", time.Minute, time.Millisecond}, Problem, "1m0s ahead"},
		"far behind":           {ClockSample{"Redis", -time.Hour, time.Millisecond}, Problem, "1h0m0s behind this machine's"},
		"behind, not for sure": {ClockSample{"Redis", -1500 * time.Millisecond, time.Second}, OK, "agrees"},
	} {
		var r Report
		Clock(&r, time.Now, []ClockSample{tc.sample})
		f := r.Findings()[0]
		if f.Level != tc.level || !strings.Contains(f.Found, tc.says) {
			t.Errorf("%s: %s %s", name, f.Level, f.Found)
		}
	}
	var alone Report
	Clock(&alone, off(0), nil)
	allWell(t, &alone)
}
