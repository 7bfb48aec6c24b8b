//go:build linux

package main

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// readSize is how much is read from a connection at once.
const readSize = 64 << 10

// A loop holds the load's connections and reads them on one thread: many thousands cost it
// little, and next to nothing of what the server needs.
type loop struct {
	epoll int
	wake  int // eventfd: ends the loop
	done  chan struct{}
	err   error // set before done is closed

	received atomic.Int64 // events `m` that came
	disorder atomic.Int64 // those of them that one before overtook

	mu    sync.Mutex // guards conns
	conns map[int32]*conn
}

func newLoop() *loop {
	l := &loop{epoll: -1, wake: -1, done: make(chan struct{}), conns: map[int32]*conn{}}
	l.err = l.open()
	if l.err != nil {
		close(l.done)
		return l
	}
	go l.run()
	return l
}

func (l *loop) open() (err error) {
	if l.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	fd, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return fmt.Errorf("eventfd: %w", errno)
	}
	l.wake = int(fd)
	return syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_ADD, l.wake, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(l.wake)})
}

// add reads c from now on.
func (l *loop) add(c *conn) error {
	c.loop = l
	l.mu.Lock()
	l.conns[int32(c.fd)] = c
	l.mu.Unlock()
	return syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_ADD, c.fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(c.fd)})
}

func (l *loop) get(fd int32) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conns[fd]
}

func (l *loop) run() {
	runtime.LockOSThread()
	defer close(l.done)
	events := make([]syscall.EpollEvent, 256)
	buf := make([]byte, readSize)
	for {
		n, err := syscall.EpollWait(l.epoll, events, -1)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			l.err = err
			return
		}
		for _, e := range events[:n] {
			if int(e.Fd) == l.wake {
				return
			}
			c := l.get(e.Fd)
			if err := c.read(buf); err != nil {
				l.err = fmt.Errorf("connection %d: %w", c.fd, err)
				return
			}
		}
	}
}

// failed is the error that has ended the loop, nil while it runs.
func (l *loop) failed() error {
	select {
	case <-l.done:
		return errors.Join(l.err, errors.New("the load has ended"))
	default:
		return nil
	}
}

// close cuts all connections.
func (l *loop) close() error {
	one := uint64(1)
	if l.wake >= 0 {
		if _, err := syscall.Write(l.wake, (*[8]byte)(unsafe.Pointer(&one))[:]); err != nil {
			return err
		}
	}
	<-l.done
	for _, c := range l.conns {
		c.cut()
	}
	for _, fd := range []int{l.wake, l.epoll} {
		if fd >= 0 {
			_ = syscall.Close(fd)
		}
	}
	return l.err
}
