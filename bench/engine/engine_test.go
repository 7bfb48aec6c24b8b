//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if kind := os.Getenv(serveEnv); kind != "" { // this process is one of the servers
		if err := serve(kind); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// The benchmark works: the load gets all that is sent, in order, from the engine and from the floor, and the
// report says so. What it costs is not looked at here.
func TestASmallRun(t *testing.T) {
	c := &config{
		rounds: 1, duration: 200 * time.Millisecond, members: 20, echoers: 5, crowd: joiners + 50, churn: 1000,
		peers: []string{ours, floor}, only: []string{"fanout-8", "echo", "churn"}, out: t.TempDir(),
	}
	if _, err := run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(c.out, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got result
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, peer := range c.peers {
		for figure, want := range map[string]float64{
			"fan-out, 8 in flight" + receivedShare: 100, "fan-out, 8 in flight" + disorderly: 0,
		} {
			if m, ok := got.Figures[figure][peer]; !ok || m.Median != want {
				t.Errorf("%s of %s: %+v, want %v", figure, peer, m, want)
			}
		}
		if len(got.Figures[inChurn][peer].Rounds) != 1 || len(got.Figures[echoCPU][peer].Rounds) != 1 {
			t.Errorf("%s: %+v", peer, got.Figures)
		}
	}
	if got.Machine.CPUs == 0 || got.Versions[floor] == "" {
		t.Errorf("machine %+v, versions %v", got.Machine, got.Versions)
	}
	for _, name := range []string{"table.txt", "plot.svg"} {
		if text, err := os.ReadFile(filepath.Join(c.out, name)); err != nil || !strings.Contains(string(text), floor) {
			t.Errorf("%s: %.100q %v", name, text, err)
		}
	}
}

// Connections that begin with polling are what the load says they are.
func TestUpgradedConnections(t *testing.T) {
	peers, cleanup, err := choosePeers(t.Context(), []string{ours})
	if err != nil {
		t.Fatal(err)
	}
	defer cleanup()
	server, err := peers[0].start(t.Context(), longPing)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{config: &config{}, server: server, loop: newLoop()}
	conns, err := b.dialMany(t.Context(), 10, dialUpgraded)
	if err == nil {
		err = b.join(t.Context(), conns)
	}
	if err != nil {
		t.Error(err)
	}
	if err := b.loop.close(); err != nil {
		t.Error(err)
	}
	if err := server.collect(); err != nil {
		t.Error(err)
	}
	if err := server.stop(); err != nil {
		t.Error(err)
	}
}

func TestTargetsSayWhatIsMissed(t *testing.T) {
	r := newReport(&config{})
	us, them := &peer{name: ours}, &peer{name: floor}
	for _, v := range []float64{1.0, 1.2, 1.6} {
		r.add(us, figures{fanOut1: v, idleRSS: 9})
		r.add(them, figures{fanOut1: 1})
	}
	text, met := r.verdicts()
	if met || !strings.Contains(text, "MISSED by 4 %") || strings.Count(text, "met") != 1 {
		t.Errorf("met: %v\n%s", met, text)
	}
	if s, ok := r.ratio(fanOut1, ours, floor); !ok || s != (spread{1.2, 1, 1.6}) {
		t.Errorf("ratio %+v", s)
	}
}
