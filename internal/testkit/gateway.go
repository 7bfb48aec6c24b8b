package testkit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// GatewayOptions say how to start the binary. The zero value is demo mode on
// SQLite.
type GatewayOptions struct {
	// Args come after `serve` and what testkit needs itself. A later flag wins.
	Args []string
	// Env is added to an environment without any XABAR_ variable.
	Env []string
	// DataDir is the data folder; "" is a temporary one.
	DataDir string
	// NoDemo leaves --demo out.
	NoDemo bool
	// Binary is the program to start; "" is Binary().
	Binary string
}

// Gateway is the real binary as a process. Its methods are for one goroutine.
type Gateway struct {
	// URL and AdminURL are where it listens; they stay over a Restart.
	URL, AdminURL string
	DataDir       string

	t       testing.TB
	opts    GatewayOptions
	log     *logBuffer
	process *process
}

// process is one life of a Gateway.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and its output is read
	err  error         // of Wait, after done
}

// StartGateway starts the binary on free ports and returns when it listens. It ends with
// the test, gracefully if the test has not ended it before, and its log is shown
// when the test fails. A data race in it fails the test.
func StartGateway(t testing.TB, opts GatewayOptions) *Gateway {
	t.Helper()
	g := &Gateway{t: t, opts: opts, DataDir: opts.DataDir, log: newLogBuffer()}
	if g.DataDir == "" {
		g.DataDir = t.TempDir()
	}
	t.Cleanup(g.cleanup)
	if err := g.start("127.0.0.1:0", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *Gateway) cleanup() {
	if g.process != nil {
		g.end(syscall.SIGTERM)
	}
	text := g.log.String()
	if strings.Contains(text, "WARNING: DATA RACE") {
		g.t.Error("the gateway has a data race")
	}
	if g.t.Failed() {
		g.t.Logf("log of the gateway:\n%s", text)
	}
}

func (g *Gateway) start(listen, admin string) error {
	path, err := g.opts.Binary, error(nil)
	if path == "" {
		path, err = Binary()
	}
	if err != nil {
		return err
	}
	args := []string{"serve", "--listen", listen, "--admin-listen", admin,
		"--data-dir", g.DataDir, "--log-format", "json",
		// Few users do in a moment what many do in a day; tests of limits set their own.
		"--limit-handshakes", "off", "--limit-connections", "off", "--limit-events", "off",
		"--limit-sends", "off", "--limit-conversations", "off"}
	if !g.opts.NoDemo {
		args = append(args, "--demo")
	}
	cmd := exec.Command(path, append(args, g.opts.Args...)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "XABAR_")
	}), "GORACE=atexit_sleep_ms=0") // the detector's pause before an exit is for other uses
	cmd.Env = append(cmd.Env, g.opts.Env...)
	// The kernel ends it should the test process die without its clean-up.
	cmd.SysProcAttr = dieWithParent()
	cmd.Stdout = g.log
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	listening := make(chan listeningLine, 1)
	go p.watch(stderr, g.log, listening)
	g.process = p
	return g.awaitListening(listening)
}

// listeningLine is the entry of the log by which the binary says where it listens.
type listeningLine struct {
	Msg   string `json:"msg"`
	URL   string `json:"url"`
	Admin string `json:"admin_url"`
}

// watch reads the log to its end and waits for the process.
func (p *process) watch(stderr io.Reader, log *logBuffer, listening chan<- listeningLine) {
	defer close(p.done)
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		log.line(lines.Bytes())
		var line listeningLine
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
			select {
			case listening <- line:
			default:
			}
		}
	}
	// What no scanner takes must still be read, or the process would block.
	_, copyErr := io.Copy(log, stderr)
	p.err = errors.Join(p.cmd.Wait(), lines.Err(), copyErr)
}

func (g *Gateway) awaitListening(listening <-chan listeningLine) error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	select {
	case line := <-listening:
		g.URL, g.AdminURL = line.URL, line.Admin
		return nil
	case <-g.process.done:
		err := g.process.err
		g.process = nil
		return fmt.Errorf("the gateway ended before it listened: %w", err)
	case <-ctx.Done():
		return errors.New("the gateway does not listen")
	}
}

// end sends the signal and waits for the exit.
func (g *Gateway) end(signal syscall.Signal) error {
	g.t.Helper()
	p := g.process
	g.process = nil
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		g.t.Errorf("signal the gateway: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*Patience)
	defer cancel()
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		g.t.Errorf("the gateway does not end on %v", signal)
		if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			g.t.Errorf("kill the gateway: %v", err)
		}
		<-p.done
		return p.err
	}
}

// Kill ends it at once (SIGKILL), as a crash does.
func (g *Gateway) Kill() {
	g.t.Helper()
	err := g.end(syscall.SIGKILL)
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		g.t.Errorf("killed, the gateway said: %v", err)
	}
}

// Stop ends it gracefully (SIGTERM) and fails the test unless it exits with 0.
func (g *Gateway) Stop() {
	g.t.Helper()
	if err := g.end(syscall.SIGTERM); err != nil {
		g.t.Errorf("the gateway did not end well: %v", err)
	}
}

// Signal sends a signal and does not wait; SIGSTOP and SIGCONT pause it.
func (g *Gateway) Signal(signal os.Signal) {
	g.t.Helper()
	if err := g.process.cmd.Process.Signal(signal); err != nil {
		g.t.Fatalf("signal the gateway: %v", err)
	}
}

// Wait returns when it has ended by itself, with its exit's error.
func (g *Gateway) Wait(ctx context.Context) error {
	p := g.process
	select {
	case <-p.done:
		g.process = nil
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Restart starts it again, after Kill or Stop, on the same ports and data.
func (g *Gateway) Restart() {
	g.t.Helper()
	if g.process != nil {
		g.t.Fatal("Restart of a gateway that runs")
	}
	strip := func(u string) string { return strings.TrimPrefix(u, "http://") }
	if err := g.start(strip(g.URL), strip(g.AdminURL)); err != nil {
		g.t.Fatal(err)
	}
}

// Use has the next Restart start another program, or Binary() again for "".
func (g *Gateway) Use(binary string) { g.opts.Binary = binary }

// PID is its process id, for measurements.
func (g *Gateway) PID() int { return g.process.cmd.Process.Pid }

// Log is what it has printed so far, over all its lives.
func (g *Gateway) Log() string { return g.log.String() }

// DemoUser is the answer to a demo login.
type DemoUser struct {
	Token string `json:"token"`
	User  struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"user"`
}

// Login is a demo login.
func (g *Gateway) Login(name string) DemoUser {
	g.t.Helper()
	body, err := json.Marshal(map[string]string{"name": name})
	if err != nil {
		g.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(Context(g.t), http.MethodPost, g.URL+"/demo/login", bytes.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		g.t.Fatalf("demo login: %s %s %v", response.Status, answer, err)
	}
	var user DemoUser
	if err := json.Unmarshal(answer, &user); err != nil {
		g.t.Fatalf("demo login: %s: %v", answer, err)
	}
	return user
}

// Get fetches a path of the admin address: its status and body.
func (g *Gateway) Get(path string) (int, string) {
	g.t.Helper()
	request, err := http.NewRequestWithContext(Context(g.t), http.MethodGet, g.AdminURL+path, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// logBuffer keeps the last part of an output, safe for concurrent use.
type logBuffer struct {
	mu   sync.Mutex
	text []byte
}

// maxLog bounds what is kept of one gateway's output.
const maxLog = 4 << 20

func newLogBuffer() *logBuffer { return &logBuffer{} }

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	if len(b.text) > maxLog {
		b.text = append(b.text[:0], b.text[len(b.text)-maxLog/2:]...)
	}
	return len(p), nil
}

func (b *logBuffer) line(p []byte) {
	_, _ = b.Write(append(slices.Clone(p), '\n')) // it cannot fail
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}
