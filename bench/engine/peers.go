//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A peer is a kind of server. All speak the same events: echo answers with its argument,
// publish sends `m` to the room, join and leave enter and leave it.
type peer struct {
	name    string
	version string
	floor   bool
	cmd     []string
	env     string
	dir     string
}

// Names of peers that targets speak of.
const (
	ours  = "xabar"
	floor = "floor"
	node  = "node"
)

func allPeers() []*peer {
	root := filepath.Join("bench", "peers")
	return []*peer{
		{name: ours, version: "this", env: serveEnv + "=" + ours},
		{name: floor, version: "gobwas/ws, no protocol", floor: true, env: serveEnv + "=" + floor},
		{name: node, version: "socket.io 4.8.4", dir: filepath.Join(root, "node-engine"), cmd: []string{"node", "--expose-gc", "server.js"}},
		{name: "zishang-v3", version: "servers/socket v3.0.6", dir: filepath.Join(root, "zishang-v3")},
		{name: "zishang-v2", version: "socket.io v2.5.0", dir: filepath.Join(root, "zishang-v2")},
	}
}

func peerNames() (names []string) {
	for _, p := range allPeers() {
		names = append(names, p.name)
	}
	return names
}

// choosePeers returns those named, with their programs built. cleanup removes them.
func choosePeers(ctx context.Context, names []string) (peers []*peer, cleanup func(), err error) {
	tmp, err := os.MkdirTemp("", "xabar-bench-")
	if err != nil {
		return nil, nil, err
	}
	cleanup = func() { _ = os.RemoveAll(tmp) } // it is in the system's temporary folder
	for _, p := range allPeers() {
		for _, name := range names {
			if p.name == name {
				peers = append(peers, p)
			}
		}
	}
	if len(peers) != len(names) {
		cleanup()
		return nil, nil, fmt.Errorf("peers %q: there are %q", names, peerNames())
	}
	for _, p := range peers {
		if err := p.build(ctx, tmp); err != nil {
			cleanup()
			return nil, nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return peers, cleanup, nil
}

func (p *peer) build(ctx context.Context, tmp string) error {
	switch {
	case p.env != "":
		self, err := os.Executable()
		p.cmd = []string{self}
		return err
	case p.cmd != nil:
		if _, err := os.Stat(filepath.Join(p.dir, "node_modules")); err != nil {
			return fmt.Errorf("not installed: run `npm ci --prefix %s` (%w)", p.dir, err)
		}
		return nil
	}
	binary := filepath.Join(tmp, p.name)
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	build.Dir = p.dir
	p.cmd, p.dir = []string{binary}, ""
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// server is a running process.
type server struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
	port  int
}

const startTimeout = 30 * time.Second

func (p *peer) start(ctx context.Context, ping time.Duration) (*server, error) {
	s := &server{cmd: exec.CommandContext(ctx, p.cmd[0], p.cmd[1:]...)}
	s.cmd.Dir, s.cmd.Stderr = p.dir, os.Stderr
	s.cmd.Env = append(os.Environ(), fmt.Sprint("PING_INTERVAL_MS=", ping.Milliseconds()))
	if p.env != "" {
		s.cmd.Env = append(s.cmd.Env, p.env)
	}
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.stdin, s.out = stdin, bufio.NewReader(stdout)
	line, err := s.line("listening ")
	if err == nil {
		_, err = fmt.Sscan(line, &s.port)
	}
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// line reads the next line of the process, which must start with prefix.
func (s *server) line(prefix string) (string, error) {
	guard := time.AfterFunc(startTimeout, func() { _ = s.cmd.Process.Kill() }) // ends the read
	defer guard.Stop()
	text, err := s.out.ReadString('\n')
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), strings.TrimSpace(prefix))
	if err != nil || !ok {
		return "", errors.Join(fmt.Errorf("the server says %q, want %q", text, prefix), err)
	}
	return rest, nil
}

// collect makes the server collect its garbage and give back what it does not use, so that RSS
// is what it needs.
func (s *server) collect() error {
	if err := s.cmd.Process.Signal(syscall.SIGUSR2); err != nil {
		return err
	}
	_, err := s.line("collected")
	return err
}

// stop ends the process, which goes when its stdin does.
func (s *server) stop() error {
	_ = s.stdin.Close()
	guard := time.AfterFunc(startTimeout, func() { _ = s.cmd.Process.Kill() })
	defer guard.Stop()
	return s.cmd.Wait()
}
