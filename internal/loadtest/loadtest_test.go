package loadtest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"xabar/gateway/auth"
	"xabar/internal/loadtest"
	"xabar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func byNumber(i int) (token, user string, err error) {
	name := fmt.Sprint("u", i)
	return name, name, nil
}

// TestFaultsAreFound runs against servers of which each does one thing wrong.
func TestFaultsAreFound(t *testing.T) {
	for fault, kinds := range map[string][]string{
		"":                   nil,
		"loses":              {"lost"},
		"doubles":            {"doubled", "seq not rising"},
		"reorders":           {"out of order", "seq not rising"},
		"repeats a seq":      {"seq not rising"},
		"numbers backwards":  {"seq out of order"},
		"answers nothing":    {"unanswered"},
		"forgets deliveries": {"not delivered"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			result, err := loadtest.Run(testkit.Context(t), loadtest.Options{
				Targets: []string{startToy(t, fault)}, Scenario: "direct", Users: 8, Rate: 400, Token: byNumber,
				Duration: 1500 * time.Millisecond, Settle: 600 * time.Millisecond,
			})
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]bool{}
			for _, f := range result.Faults {
				found[f.Kind] = true
				if f.Count < 1 || len(f.Examples) < 1 {
					t.Errorf("%s: %d times, with %d examples", f.Kind, f.Count, len(f.Examples))
				}
			}
			for _, kind := range kinds {
				if !found[kind] {
					t.Errorf("%q was not found in %+v", kind, result.Faults)
				}
			}
			if result.Failed() != (kinds != nil) {
				t.Errorf("failed: %v: %+v", result.Failed(), result.Faults)
			}
			if n := result.Count(loadtest.Answered); n < 5*every { // else no sender has met its fault
				t.Errorf("%d messages in 1.5 s at 400 a second", n)
			}
		})
	}
}

// TestLatencyCountsFromTheIntendedMoment: a server that stalls makes the messages late
// that were due meanwhile, also those that a slower sender would not have sent.
func TestLatencyCountsFromTheIntendedMoment(t *testing.T) {
	t.Parallel()
	gateway := testkit.StartGateway(t, testkit.GatewayOptions{})
	pid, stalled := gateway.PID(), make(chan error, 1)
	go func() {
		time.Sleep(700 * time.Millisecond)
		stop := syscall.Kill(pid, syscall.SIGSTOP)
		time.Sleep(500 * time.Millisecond)
		stalled <- errors.Join(stop, syscall.Kill(pid, syscall.SIGCONT))
	}()
	result, err := loadtest.Run(testkit.Context(t), options(t, gateway, "direct", 2000*time.Millisecond))
	if err := errors.Join(err, <-stalled); err != nil {
		t.Fatal(err)
	}
	if got := result.Latency["answered"]; got.Max < 400 || got.P90 < 100 {
		t.Errorf("a stall of 500 ms in 2 s is not seen: %+v", got)
	}
	if result.Failed() {
		t.Error(result.Table())
	}
}

// TestRestarts: connections that end come back, and what was under way is sent again, over a restart and
// over a crash.
func TestRestarts(t *testing.T) {
	t.Parallel()
	gateway := testkit.StartGateway(t, testkit.GatewayOptions{})
	for name, end := range map[string]func(){"stop": gateway.Stop, "kill": gateway.Kill} {
		o := options(t, gateway, "direct", 3*time.Second)
		o.Restarts, o.Polling, o.ReadEvery, o.Settle = true, 0.1, 2, testkit.Patience
		begun := &awaited{text: "measuring", found: make(chan struct{})}
		o.Progress = begun
		type outcome struct {
			result *loadtest.Result
			err    error
		}
		done := make(chan outcome, 1)
		go func() {
			result, err := loadtest.Run(testkit.Context(t), o)
			done <- outcome{result, err}
		}()
		select {
		case <-begun.found:
			end()
			gateway.Restart()
		case got := <-done:
			t.Fatalf("%s: it ends before it has begun: %v", name, got.err)
		}
		got := <-done
		if got.err != nil {
			t.Fatalf("%s: %v", name, got.err)
		}
		if r := got.result; r.Failed() || len(r.Errors) > 0 || r.Interruptions < int64(o.Users) || r.Count(loadtest.Connected) < int64(o.Users) {
			t.Errorf("%s: %d interruptions, %d connections\n%s", name, r.Interruptions, r.Count(loadtest.Connected), r.Table())
		}
	}
	o := options(t, gateway, "mixed", time.Second)
	o.Restarts = true
	if _, err := loadtest.Run(testkit.Context(t), o); err == nil {
		t.Error("a scenario that cuts connections itself is taken")
	}
}

// awaited is an output that tells when a text has come.
type awaited struct {
	text  string
	found chan struct{}
	seen  []byte
}

func (a *awaited) Write(p []byte) (int, error) {
	before := bytes.Contains(a.seen, []byte(a.text))
	a.seen = append(a.seen, p...)
	if !before && bytes.Contains(a.seen, []byte(a.text)) {
		close(a.found)
	}
	return len(p), nil
}

func options(t *testing.T, gateway *testkit.Gateway, scenario string, d time.Duration) loadtest.Options {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(gateway.DataDir, "demo.key"))
	if err != nil {
		t.Fatal(err)
	}
	return loadtest.Options{
		Targets: []string{gateway.URL}, Scenario: scenario, Users: 20, GroupSize: 10, Rate: 60, Duration: d,
		Token: loadtest.Minted(auth.NewMinter(key, nil), "load-"),
	}
}

// TestEveryScenario runs each of them against the real binary, and with polling.
func TestEveryScenario(t *testing.T) {
	t.Parallel()
	gateway := testkit.StartGateway(t, testkit.GatewayOptions{})
	for _, c := range []struct {
		scenario string
		change   func(*loadtest.Options)
		kinds    []loadtest.Kind
	}{
		{"idle", nil, nil},
		{"direct", func(o *loadtest.Options) { o.ReadEvery = 2 }, []loadtest.Kind{loadtest.Answered, loadtest.Delivered, loadtest.Read}},
		{"direct", func(o *loadtest.Options) { o.Rate, o.Window = 0, 3 }, []loadtest.Kind{loadtest.Answered, loadtest.Delivered}},
		{"direct", func(o *loadtest.Options) { o.Polling = 1 }, []loadtest.Kind{loadtest.Answered, loadtest.Delivered}},
		{"group", nil, []loadtest.Kind{loadtest.Answered, loadtest.Received}},
		{"group", func(o *loadtest.Options) { o.NoAcks, o.Rate = true, 0 }, []loadtest.Kind{loadtest.Answered, loadtest.Received}},
		{"typing", nil, []loadtest.Kind{loadtest.Typed, loadtest.Answered}},
		{"reconnect", nil, []loadtest.Kind{loadtest.Connected, loadtest.Delivered}},
		{"history", nil, []loadtest.Kind{loadtest.Paged}},
		{"mixed", func(o *loadtest.Options) { o.Rate, o.ReadEvery = 200, 3 },
			[]loadtest.Kind{loadtest.Connected, loadtest.Delivered, loadtest.Paged, loadtest.Typed, loadtest.Read}},
	} {
		o := options(t, gateway, c.scenario, time.Second)
		o.Seed, o.Jitter = 3, 100*time.Millisecond
		if c.change != nil {
			c.change(&o)
		}
		result, err := loadtest.Run(testkit.Context(t), o)
		if err != nil {
			t.Fatalf("%s: %v", c.scenario, err)
		}
		if result.Failed() || len(result.Errors) > 0 {
			t.Errorf("%s: %s", c.scenario, result.Table())
		}
		for _, kind := range c.kinds {
			if result.Count(kind) == 0 {
				t.Errorf("%s: nothing was %s: %s", c.scenario, kind, result.Table())
			}
		}
	}
}

// TestTheCommand runs `xabar loadtest` as users do.
func TestTheCommand(t *testing.T) {
	t.Parallel()
	gateway := testkit.StartGateway(t, testkit.GatewayOptions{})
	xabar, err := testkit.Binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(args ...string) (stdout, stderr string, code int) {
		var out, errs bytes.Buffer
		cmd := exec.CommandContext(testkit.Context(t), xabar, append([]string{"loadtest"}, args...)...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return out.String(), errs.String(), cmd.ProcessState.ExitCode()
	}
	report, page := filepath.Join(dir, "r.json"), filepath.Join(dir, "r.html")
	out, errs, code := run("direct", gateway.URL, "--data-dir", gateway.DataDir, "--duration", "2s", "--warmup", "0s", "--users", "10",
		"--rate", "50", "--json", report, "--html", page, "--pid", fmt.Sprintf("gateway=%d", gateway.PID()))
	if code != 0 || !strings.Contains(out, "Nothing lost") || !strings.Contains(out, "gateway") {
		t.Fatalf("exit %d\n%s\n%s", code, out, errs)
	}
	var result loadtest.Result
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	if result.Count(loadtest.Delivered) < 50 || len(result.Points) < 2 || result.Processes["gateway"].RSS < 1e6 {
		t.Errorf("the result has %s", text)
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(html), "<polyline") < 4 || strings.Contains(string(html), "src=") {
		t.Errorf("the report has %d lines in its plots", strings.Count(string(html), "<polyline"))
	}
	// A server that loses messages: the exit says so.
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte("a a\nb b\nc c\nd d\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code = run("direct", startToy(t, "loses"), "--tokens", tokens, "--users", "4", "--duration", "1s", "--warmup", "0s", "--rate", "200", "--settle", "500ms")
	if code != 1 || !strings.Contains(out, "WRONG, lost") || !strings.Contains(out, "never got it") {
		t.Errorf("exit %d\n%s\n%s", code, out, errs)
	}
	if _, errs, code = run("direct", "127.0.0.1:1", "--tokens", tokens); code != 2 && code != 1 || !strings.Contains(errs, "http://") {
		t.Errorf("a target that is no URL: exit %d %s", code, errs)
	}
}
