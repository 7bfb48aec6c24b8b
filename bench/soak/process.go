package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"xabar/bench/internal/proc"
)

// endPatience is how long a process that was asked to end may take.
const endPatience = 60 * time.Second

// child is a program that is started, ended and started again. Its output is appended to
// a file.
type child struct {
	name, path string
	args, env  []string
	log        string // path

	mu    sync.Mutex // guards the fields below
	now   *life      // nil while it does not run
	lives int        // how often it was started
}

// life is one process.
type life struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended
	err    error         // of Wait, after exited
}

// start starts the program.
func (c *child) start() error {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(c.path, c.args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, c.env
	cmd.SysProcAttr = proc.EndWithParent()
	l := &life{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go func() { // ends with the process. The parent of a process is the thread that started it: it has to stay
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			l.err = cmd.Wait()
			close(l.exited)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = l
	c.lives++
	return nil
}

// startUntil starts the program until it is ready: a port may be taken for a moment, a
// database away.
func (c *child) startUntil(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	for {
		if err := c.start(); err != nil {
			return err
		}
		for {
			err := ready(ctx)
			if err == nil {
				return nil
			}
			if ctx.Err() != nil {
				return errors.Join(fmt.Errorf("%s does not get ready: %w", c.name, err), c.end(syscall.SIGKILL))
			}
			if !c.runs() {
				break
			}
			pause(ctx, 20*time.Millisecond)
		}
		pause(ctx, 200*time.Millisecond)
	}
}

func (c *child) life() *life {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// number is how often it was started before.
func (c *child) number() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lives - 1
}

func (c *child) runs() bool {
	l := c.life()
	if l == nil {
		return false
	}
	select {
	case <-l.exited:
		return false
	default:
		return true
	}
}

// signal sends a signal and waits for nothing.
func (c *child) signal(signal syscall.Signal) error {
	l := c.life()
	if l == nil {
		return fmt.Errorf("%s does not run", c.name)
	}
	return l.cmd.Process.Signal(signal)
}

// end ends it by a signal, and returns the error with which it exited. One that does not
// run is no error.
func (c *child) end(signal syscall.Signal) error {
	c.mu.Lock()
	l := c.now
	c.now = nil
	c.mu.Unlock()
	if l == nil {
		return nil
	}
	if err := l.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.NewTimer(endPatience)
	defer timer.Stop()
	select {
	case <-l.exited:
		return l.err
	case <-timer.C:
		err := l.cmd.Process.Kill()
		<-l.exited
		return errors.Join(fmt.Errorf("%s does not end on %v", c.name, signal), err)
	}
}

// kill ends it at once.
func (c *child) kill() error {
	var killed *exec.ExitError
	if err := c.end(syscall.SIGKILL); !errors.As(err, &killed) && err != nil {
		return err
	}
	return nil
}

// pause waits, and says whether it was not interrupted.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// within asks until it is so, for d at most, and returns the last reason why not.
func within(ctx context.Context, d time.Duration, so func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for {
		err := so(ctx)
		if err == nil || !pause(ctx, 50*time.Millisecond) {
			return err
		}
	}
}

// freePort finds a port outside of those that outgoing connections take, so that it stays
// free while its process is away.
func freePort() (int, error) {
	var lastErr error
	for range 100 {
		port := 20000 + int(time.Now().UnixNano()/1000%10000)
		var listener net.Listener
		if listener, lastErr = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); lastErr == nil {
			return port, listener.Close()
		}
	}
	return 0, lastErr
}
