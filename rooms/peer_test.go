package rooms_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// peer is a Node process with a Socket.IO server: see testdata/node/peer.js.
type peer struct {
	t     testing.TB
	url   string // of its server
	stdin io.WriteCloser
	log   bytes.Buffer // complete when done is closed
	done  chan struct{}
	heard chan peerLine // events of other servers

	mu      sync.Mutex // guards the fields below, and writing
	next    int
	waiting map[int]chan peerLine
}

type peerLine struct {
	ID     int               `json:"id"`
	Result json.RawMessage   `json:"result"`
	Error  string            `json:"error"`
	Event  string            `json:"event"`
	Args   []json.RawMessage `json:"args"`
}

// op is a command of peer.js.
type op map[string]any

// startPeer starts the process and its server. It ends with the test.
func startPeer(t testing.TB, settings op) *peer {
	t.Helper()
	dir := filepath.Join("testdata", "node")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "socket.io", "package.json")); err != nil {
		t.Fatal("the Node servers are not installed: run `npm ci` in rooms/testdata/node (needs Node 18 or newer)")
	}
	p := &peer{t: t, done: make(chan struct{}), heard: make(chan peerLine, 16), waiting: map[int]chan peerLine{}}
	cmd := exec.Command("node", "peer.js")
	cmd.Dir = dir
	cmd.Stderr = &p.log
	var err error
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start node (18 or newer must be on PATH): %v", err)
	}
	go p.read(cmd, stdout)
	t.Cleanup(func() { p.stop(cmd) })
	var started struct{ Port int }
	settings["op"] = "start"
	p.do(settings, &started)
	p.url = fmt.Sprint("http://127.0.0.1:", started.Port)
	return p
}

func (p *peer) stop(cmd *exec.Cmd) {
	if err := p.stdin.Close(); err != nil {
		p.t.Errorf("close node's stdin: %v", err)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.t.Error("node does not end")
		if err := cmd.Process.Kill(); err != nil {
			p.t.Error(err)
		}
		<-p.done
	}
	if p.t.Failed() {
		p.t.Logf("stderr of node:\n%s", p.log.String())
	}
}

func (p *peer) read(cmd *exec.Cmd, stdout io.Reader) {
	defer close(p.done)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var line peerLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			p.t.Errorf("node printed %q", lines.Text())
			continue
		}
		if line.Event != "" {
			p.heard <- line
			continue
		}
		p.mu.Lock()
		answer := p.waiting[line.ID]
		delete(p.waiting, line.ID)
		p.mu.Unlock()
		answer <- line // has room
	}
	if err := cmd.Wait(); err != nil {
		p.t.Errorf("node: %v", err)
	}
}

// do runs an operation and stores its result in result, if that is not nil.
func (p *peer) do(command op, result any) {
	p.t.Helper()
	line := <-p.begin(command)
	if line.Error != "" {
		p.t.Fatalf("%v: %s", command, line.Error)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(line.Result, result); err != nil {
		p.t.Fatalf("%v: %v in %s", command, err, line.Result)
	}
}

// begin runs an operation whose answer comes on the channel.
func (p *peer) begin(command op) <-chan peerLine {
	p.t.Helper()
	answer := make(chan peerLine, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	command["id"] = p.next
	p.waiting[p.next] = answer
	text, err := json.Marshal(command)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.stdin.Write(append(text, '\n')); err != nil {
		p.t.Fatal(err)
	}
	return answer
}
