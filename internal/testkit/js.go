package testkit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// JS is one Node process with any number of official Socket.IO clients. Safe for
// concurrent use.
type JS struct {
	t     testing.TB
	cmd   *exec.Cmd
	stdin io.WriteCloser
	log   *logBuffer
	done  chan struct{} // closed when the process has ended and its output is read

	writing sync.Mutex // held for a line to stdin

	mu      sync.Mutex // guards what follows
	nextID  int
	waiting map[int]chan jsLine
	clients map[int]*Client
	err     error // set before done is closed
}

// jsLine is a line of the driver: an answer (ID) or something heard (Client).
type jsLine struct {
	ID     *int              `json:"id"`
	Result json.RawMessage   `json:"result"`
	Error  string            `json:"error"`
	Client int               `json:"client"`
	N      int               `json:"n"`
	Event  string            `json:"event"`
	Args   []json.RawMessage `json:"args"`
}

// JSDir is the folder of the driver and its node_modules.
func JSDir() string { return filepath.Join(Root(), "internal", "testkit", "js") }

// NewJS starts the Node process. It ends with the test.
func NewJS(t testing.TB) *JS {
	t.Helper()
	dir := JSDir()
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "socket.io-client", "package.json")); err != nil {
		t.Fatalf("the JavaScript clients are not installed: run `make js-clients` (needs Node 18 or newer and npm)")
	}
	js := &JS{
		t: t, log: newLogBuffer(), done: make(chan struct{}),
		waiting: make(map[int]chan jsLine), clients: make(map[int]*Client),
	}
	js.cmd = exec.Command("node", filepath.Join(dir, "driver.js"))
	js.cmd.SysProcAttr = dieWithParent()
	js.cmd.Stderr = js.log
	stdin, err := js.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := js.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := js.cmd.Start(); err != nil {
		t.Fatalf("start node (18 or newer must be on PATH): %v", err)
	}
	js.stdin = stdin
	go js.read(stdout)
	t.Cleanup(js.stop)
	return js
}

// stop ends the process by closing its stdin, and by force if that is not enough.
func (js *JS) stop() {
	if err := js.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		js.t.Errorf("close the driver: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	select {
	case <-js.done:
	case <-ctx.Done():
		js.t.Error("the driver does not end")
		if err := js.cmd.Process.Kill(); err != nil {
			js.t.Errorf("kill the driver: %v", err)
		}
		<-js.done
	}
	if js.err != nil {
		js.t.Errorf("the driver ended with %v", js.err)
	}
	if text := js.log.String(); text != "" && js.t.Failed() {
		js.t.Logf("stderr of the driver:\n%s", text)
	}
}

func (js *JS) read(stdout io.Reader) {
	lines := bufio.NewReader(stdout)
	var err error
	for err == nil {
		var text []byte
		text, err = lines.ReadBytes('\n')
		if len(text) == 0 {
			break
		}
		var line jsLine
		if bad := json.Unmarshal(text, &line); bad != nil {
			err = fmt.Errorf("the driver printed %q: %w", text, bad)
			break
		}
		js.dispatch(line)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if _, rest := io.Copy(io.Discard, stdout); rest != nil {
		err = errors.Join(err, rest)
	}
	err = errors.Join(err, js.cmd.Wait())
	js.mu.Lock()
	js.err = err
	js.mu.Unlock()
	close(js.done)
}

func (js *JS) dispatch(line jsLine) {
	js.mu.Lock()
	if line.ID != nil {
		answer := js.waiting[*line.ID]
		delete(js.waiting, *line.ID)
		js.mu.Unlock()
		if answer != nil {
			answer <- line // its buffer holds one
		}
		return
	}
	client := js.clients[line.Client]
	js.mu.Unlock()
	if client != nil {
		client.hear(Heard{N: line.N, Event: line.Event, Args: line.Args})
	}
}

// call runs an operation of the driver and waits for its answer.
func (js *JS) call(ctx context.Context, request map[string]any) (json.RawMessage, error) {
	answer := make(chan jsLine, 1)
	js.mu.Lock()
	js.nextID++
	id := js.nextID
	js.waiting[id] = answer
	js.mu.Unlock()
	request["id"] = id
	if err := js.write(request); err != nil {
		return nil, err
	}
	select {
	case line := <-answer:
		if line.Error != "" {
			return nil, errors.New(line.Error)
		}
		return line.Result, nil
	case <-js.done:
		return nil, errors.New("the driver has ended")
	case <-ctx.Done():
		js.mu.Lock()
		delete(js.waiting, id)
		js.mu.Unlock()
		return nil, fmt.Errorf("%v of client %v: %w", request["op"], request["client"], ctx.Err())
	}
}

func (js *JS) write(request map[string]any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	js.writing.Lock()
	defer js.writing.Unlock()
	_, err = js.stdin.Write(append(text, '\n'))
	return err
}
