// Package redistest starts redis-server for a test, on a free port and in a
// temporary folder, and stops, kills, pauses and restarts it. XABAR_TEST_REDIS names
// another binary than the one on PATH.
package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds each wait.
const patience = 20 * time.Second

// Server is a redis-server process without persistence: after a restart it is
// empty. Its methods are for one goroutine.
type Server struct {
	// Addr is host:port, URL the same as redis://…/0. They stay over Restart.
	Addr, URL string

	t     testing.TB
	dir   string
	port  int
	args  func() []string // beside those that all servers have
	ready string          // the line that says so
	cmd   *exec.Cmd
	done  chan struct{} // closed when the process has ended and its output is read
	err   error         // of Wait, after done
	log   safeText
}

// Start starts a server and returns when it answers. It ends with the test. args are options beside
// those that it needs.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	args = append([]string{"--save", "", "--appendonly", "no"}, args...)
	return start(t, "eady to accept connections", func() []string { return args })
}

func start(t testing.TB, ready string, args func() []string) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir(), ready: ready, args: args}
	t.Cleanup(func() {
		if s.cmd != nil {
			s.Stop()
		}
		if t.Failed() {
			t.Logf("log of redis-server:\n%s", s.log.String())
		}
	})
	// A free port can be taken by somebody else before redis has it.
	for range 5 {
		s.port = freePort(t)
		if s.start() == nil {
			return s
		}
	}
	t.Fatalf("redis-server does not start:\n%s", s.log.String())
	return nil
}

func binary(t testing.TB) string {
	t.Helper()
	name := os.Getenv("XABAR_TEST_REDIS")
	if name == "" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v: install Redis (Debian: apt-get install redis-server) or name the binary in XABAR_TEST_REDIS", err)
	}
	return path
}

func freePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return port
}

func (s *Server) start() error {
	s.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
	s.URL = "redis://" + s.Addr + "/0"
	args := append(s.args(), "--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--daemonize", "no")
	s.cmd = exec.Command(binary(s.t), args...)
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	s.cmd.Stderr = &s.log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.done = make(chan struct{})
	ready := make(chan struct{}, 1)
	go s.watch(s.cmd, bufio.NewScanner(stdout), ready, s.done)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ready:
		return nil
	case <-s.done:
		s.cmd = nil
		return fmt.Errorf("redis-server ended: %w", s.err)
	case <-timer.C:
		s.end(syscall.SIGKILL)
		return errors.New("redis-server does not get ready")
	}
}

func (s *Server) watch(cmd *exec.Cmd, lines *bufio.Scanner, ready chan<- struct{}, done chan<- struct{}) {
	defer close(done)
	for lines.Scan() {
		_, _ = s.log.Write(append(lines.Bytes(), '\n')) // it cannot fail
		if strings.Contains(lines.Text(), s.ready) {
			select {
			case ready <- struct{}{}:
			default:
			}
		}
	}
	s.err = errors.Join(lines.Err(), cmd.Wait())
}

func (s *Server) end(signal syscall.Signal) {
	s.t.Helper()
	cmd, done := s.cmd, s.done
	s.cmd = nil
	if err := cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Errorf("signal redis-server: %v", err)
	}
	// One that is paused takes no other signal than SIGKILL before it goes on.
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Errorf("signal redis-server: %v", err)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		s.t.Errorf("redis-server does not end on %v", signal)
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			s.t.Errorf("kill redis-server: %v", err)
		}
		<-done
	}
}

// Stop ends it gracefully, Kill at once.
func (s *Server) Stop() { s.t.Helper(); s.end(syscall.SIGTERM) }

// Kill ends it as a crash does.
func (s *Server) Kill() { s.t.Helper(); s.end(syscall.SIGKILL) }

// Pause holds it: connections stay open and nothing answers. Resume goes on.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Fatalf("signal redis-server: %v", err)
	}
}

// Restart starts it again on the same port, after Stop or Kill.
func (s *Server) Restart() {
	s.t.Helper()
	if s.cmd != nil {
		s.t.Fatal("Restart of a redis-server that runs")
	}
	if err := s.start(); err != nil {
		s.t.Fatalf("%v\n%s", err, s.log.String())
	}
}

// Ping asks for a sign of life by hand, without a client library.
func (s *Server) Ping(ctx context.Context) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && answer != "+PONG\r\n" {
		err = fmt.Errorf("redis-server answered %q", answer)
	}
	return err
}

// safeText is a log that two goroutines write.
type safeText struct {
	mu   sync.Mutex
	text []byte
}

func (s *safeText) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, p...)
	return len(p), nil
}

func (s *safeText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.text)
}
