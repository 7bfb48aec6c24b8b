package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xabar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// TestAShortSoak keeps the tool from rotting: few users, short faults, a seed that is known
// to deal faults of processes and of connections. A finding of it is a finding.
func TestAShortSoak(t *testing.T) {
	t.Parallel()
	binary, err := testkit.Binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	path := filepath.Join(t.TempDir(), "report.json")
	var out bytes.Buffer
	opts := options{duration: 20 * time.Second, users: 10, rate: 15, seed: 7, short: true, binary: binary, out: &out}
	r, err := soakIn(ctx, opts, path, false)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if !r.ok() {
		t.Errorf("%s", &out)
	}
	if r.Acknowledged < 100 || r.Stored != r.Acknowledged || len(r.Injected) < 3 || len(r.Checks) != 13 {
		t.Errorf("the soak has done little: %+v", r)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var again report
	if err := json.Unmarshal(body, &again); err != nil || again.Seed != 7 || again.Acknowledged != r.Acknowledged {
		t.Errorf("the report reads as %+v: %v", again, err)
	}
}

// A seed that was printed gives the same faults again.
func TestASeedGivesASchedule(t *testing.T) {
	t.Parallel()
	schedule := func(seed uint64) (list []string) {
		s := &soak{opts: options{seed: seed, users: 10}, cluster: &cluster{}}
		for i := range nodes {
			n, err := (&cluster{database: "postgres://127.0.0.1:1/x", redisURL: "127.0.0.1:1"}).newNode(t.TempDir(), "", i+1)
			if err != nil {
				t.Fatal(err)
			}
			s.cluster.nodes = append(s.cluster.nodes, n)
		}
		defer func() {
			if err := s.cluster.close(); err != nil {
				t.Error(err)
			}
		}()
		if err := s.newUsers(); err != nil {
			t.Fatal(err)
		}
		k := &deck{rng: s.random(1), all: faults()}
		for range 2 * len(k.all) {
			f := k.deal()
			detail, _ := f.prepare(s, k.rng)
			list = append(list, f.name+": "+detail)
		}
		return list
	}
	first := schedule(5)
	if again := schedule(5); !slices.Equal(first, again) {
		t.Errorf("seed 5 gave\n%s\nand then\n%s", strings.Join(first, "\n"), strings.Join(again, "\n"))
	}
	if slices.Equal(first, schedule(6)) {
		t.Error("another seed gives the same faults")
	}
	for _, f := range faults() {
		n := 0
		for _, line := range first {
			if strings.HasPrefix(line, f.name+": ") {
				n++
			}
		}
		if n != 2 {
			t.Errorf("%s was dealt %d times in two rounds", f.name, n)
		}
	}
}

func TestTheReportShowsWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := &soak{opts: options{seed: 3, duration: time.Minute, out: &bytes.Buffer{}}, start: time.Now(), injected: map[string]int{"kill -9": 2}}
	err := s.question(t.Context(), "every device holds what the database does", func(context.Context) error {
		s.faults.Add("lost", "user1/0 lacks seq 4")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.sends = nil
	r := &report{Seed: 3, Duration: "1m0s", Injected: s.injected, Checks: s.checks, Wrong: s.faults.List()}
	text := r.text()
	for _, want := range []string{"WRONG  every device holds", "WRONG, lost: 1 times", "user1/0 lacks seq 4", "kill -9 2", "make soak SOAK=1m0s SEED=3"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	if r.ok() {
		t.Error("the report is well")
	}
	if out := fmt.Sprint(s.opts.out); !strings.Contains(out, "NO") {
		t.Errorf("the live line is %q", out)
	}
}
