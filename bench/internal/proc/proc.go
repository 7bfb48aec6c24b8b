// Package proc starts the processes that a benchmark measures, and reads what they have
// used.
package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience bounds the start and the end of a process.
const patience = 30 * time.Second

// Process is a child. Its methods are for one goroutine.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and its output is read
	err  error         // of Wait, after done

	mu   sync.Mutex // guards tail
	tail []byte
}

// maxTail is how much of the output is kept for an error.
const maxTail = 4 << 10

// Start starts cmd, whose output it reads, and returns when ready has said true of a line
// of it; ready is not called again. The caller stops it.
func Start(ctx context.Context, cmd *exec.Cmd, ready func(line string) bool) (*Process, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	if err := in.Close(); err != nil {
		return nil, errors.Join(err, cmd.Process.Kill())
	}
	started := make(chan struct{})
	go p.watch(out, ready, started)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-started:
		return p, nil
	case <-p.done:
		return nil, fmt.Errorf("%s ended: %w\n%s", cmd.Path, p.err, p.output())
	case <-timer.C:
		err = errors.New("it does not get ready")
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, errors.Join(fmt.Errorf("%s: %w\n%s", cmd.Path, err, p.output()), p.Stop())
}

// watch reads the output to its end and waits for the process.
func (p *Process) watch(out *os.File, ready func(string) bool, started chan<- struct{}) {
	defer close(p.done)
	lines := bufio.NewReader(out)
	waits := true
	var err error
	for err == nil {
		var line string
		line, err = lines.ReadString('\n')
		p.mu.Lock()
		if p.tail = append(p.tail, line...); len(p.tail) > 2*maxTail {
			p.tail = append(p.tail[:0], p.tail[len(p.tail)-maxTail:]...)
		}
		p.mu.Unlock()
		if waits && ready(line) {
			waits = false
			close(started)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	p.err = errors.Join(err, out.Close(), p.cmd.Wait())
}

func (p *Process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.tail)
}

// Stop ends the process with SIGTERM, by force if that is not enough. How it exited is no
// error.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		err := p.cmd.Process.Kill()
		<-p.done
		return errors.Join(fmt.Errorf("%s had to be killed\n%s", p.cmd.Path, p.output()), err)
	}
}

// CPU is the user and system time that it has used, all its threads together.
func (p *Process) CPU() (time.Duration, error) { return CPU(p.cmd.Process.Pid) }

// tick is the unit of /proc/PID/stat's times (USER_HZ, 100 on every Linux).
const tick = time.Second / 100

// CPU is the user and system time of a process, without its children.
func CPU(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name stands in parentheses and may hold anything. What follows starts with field 3 of proc(5).
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const utime, stime = 14 - 3, 15 - 3
	if len(fields) <= stime {
		return 0, fmt.Errorf("/proc/%d/stat is %q", pid, text)
	}
	user, err := strconv.ParseInt(fields[utime], 10, 64)
	system, err2 := strconv.ParseInt(fields[stime], 10, 64)
	return time.Duration(user+system) * tick, errors.Join(err, err2)
}
