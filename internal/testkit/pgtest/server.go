package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Options of a server of one's own.
type Options struct {
	Durable  bool              // fsync and full_page_writes on; off is enough where no power fails
	Settings map[string]string // more of postgresql.conf
}

// Server is a PostgreSQL that a test owns.
type Server struct {
	opts Options
	dir  string // holds data and the log; removed by Close
	port int
	cred *syscall.Credential // nil: as who we are

	mu   sync.Mutex // guards proc
	proc *process   // nil while stopped
}

// process is one running postmaster.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has been waited for
}

const startDeadline = 60 * time.Second

// Start runs a server for this test and stops it at the test's end.
func Start(tb testing.TB, opts Options) *Server {
	tb.Helper()
	s, err := New(opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// New makes and starts a server; the caller closes it.
func New(opts Options) (*Server, error) {
	cred, err := unprivileged()
	if err != nil {
		return nil, err
	}
	removeLeftovers()
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", dirPrefix, os.Getpid()))
	if err != nil {
		return nil, err
	}
	s := &Server{opts: opts, dir: dir, cred: cred}
	if err := s.create(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for range 3 { // somebody else may take the port between the look and the start
		if s.port, err = freePort(); err != nil {
			break
		}
		if err = s.Start(); err == nil {
			return s, nil
		}
	}
	return nil, errors.Join(err, os.RemoveAll(dir))
}

// URL names a database on the server, as its superuser.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://xabar@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// Port is where the server listens on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// PID is the postmaster's, 0 while stopped.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.cmd.Process.Pid
}

// Start runs the stopped server again, on the same port, and waits until it takes
// connections.
func (s *Server) Start() error {
	bin, err := Binary("postgres")
	if err != nil {
		return err
	}
	args := []string{"-D", s.data(), "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-k", ""}
	settings := map[string]string{"max_connections": "200", "logging_collector": "off", "log_min_messages": "warning"}
	if !s.opts.Durable {
		settings["fsync"], settings["full_page_writes"] = "off", "off"
	}
	for k, v := range s.opts.Settings {
		settings[k] = v
	}
	for k, v := range settings {
		args = append(args, "-c", k+"="+v)
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(bin, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, s.dir
	cmd.SysProcAttr = attributes(s.cred)
	proc, err := launch(cmd)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.proc = proc
	s.mu.Unlock()
	if err := s.waitReady(proc); err != nil {
		return errors.Join(err, s.Stop(true))
	}
	return nil
}

// launch starts the command and waits for it in a goroutine, which ends with the
// process. The goroutine keeps its thread: the parent-death signal follows the
// thread that forked, not the process. It gives it back unharmed, since other
// children may have been forked from it before.
func launch(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		cmd.Wait() //nolint:errcheck // how a stopped server exited tells nothing; its log does
		close(p.exited)
	}()
	return p, <-started
}

func (s *Server) waitReady(p *process) error {
	ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-p.exited:
			return fmt.Errorf("postgres ended at its start: %s", s.logTail())
		case <-ctx.Done():
			return fmt.Errorf("postgres did not get ready: %w; %s", err, s.logTail())
		case <-time.After(20 * time.Millisecond): // there is no signal to wait for, only the port
		}
	}
}

// Stop ends the server and waits for its end. immediate is a crash
// (pg_ctl -m immediate): no checkpoint, recovery at the next start; otherwise
// sessions are ended and the data written (-m fast). A stopped server is no error.
func (s *Server) Stop(immediate bool) error {
	s.mu.Lock()
	p := s.proc
	s.proc = nil
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	signal := syscall.SIGINT
	if immediate {
		signal = syscall.SIGQUIT
	}
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(startDeadline):
		return errors.Join(fmt.Errorf("postgres did not stop: %s", s.logTail()), p.cmd.Process.Kill())
	}
}

// Restart is Stop and Start: `pg_ctl restart -m immediate` when immediate.
func (s *Server) Restart(immediate bool) error {
	if err := s.Stop(immediate); err != nil {
		return err
	}
	return s.Start()
}

// Close stops the server and removes its folder.
func (s *Server) Close() error {
	return errors.Join(s.Stop(true), os.RemoveAll(s.dir))
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// create makes the data folder.
func (s *Server) create() error {
	bin, err := Binary("initdb")
	if err != nil {
		return err
	}
	if s.cred != nil {
		if err := os.Chown(s.dir, int(s.cred.Uid), int(s.cred.Gid)); err != nil {
			return err
		}
	}
	cmd := exec.Command(bin, "-D", s.data(), "-U", "xabar", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale", "C")
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

func (s *Server) logTail() string {
	text, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	if len(text) > 2000 {
		text = text[len(text)-2000:]
	}
	return string(bytes.TrimSpace(text))
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

const dirPrefix = "xabar-pgtest-"

// removeLeftovers deletes the folders of test processes that were killed; their
// servers have died with them.
func removeLeftovers() {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), dirPrefix), "-")
		n, err := strconv.Atoi(pid)
		if err == nil && errors.Is(syscall.Kill(n, 0), syscall.ESRCH) {
			os.RemoveAll(dir) //nolint:errcheck // somebody else's folder: only tidiness
		}
	}
}
