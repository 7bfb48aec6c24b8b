//go:build unix

package sockets

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// Read reads from a socket that does not block. Errors: ErrAgain, io.EOF, those of read(2).
func Read(fd uintptr, b []byte) (int, error) {
	n, err := patient(read, fd, b)
	if n == 0 && err == nil && len(b) > 0 {
		err = io.EOF
	}
	return n, err
}

// Write writes what the socket takes now. Errors: ErrAgain, those of write(2).
func Write(fd uintptr, b []byte) (int, error) { return patient(write, fd, b) }

// Empty says that a socket is open and that nothing has come: what drivers ask before they use a
// connection again.
func Empty(fd uintptr) bool {
	var b [1]byte
	_, err := patient(peek, fd, b[:])
	return errors.Is(err, ErrAgain)
}

// patient repeats what a signal has interrupted.
func patient(do func(uintptr, []byte) (int, error), fd uintptr, b []byte) (int, error) {
	for {
		n, err := do(fd, b)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			return 0, ErrAgain
		case err != nil:
			return 0, err
		}
		return n, nil
	}
}

// Raw gives access to the descriptor of a plain socket; nil for anything that is wrapped (TLS, a proxy
// protocol) and has to be used through its own methods.
func Raw(conn net.Conn) syscall.RawConn {
	var plain syscall.Conn
	switch c := conn.(type) {
	case *net.TCPConn:
		plain = c
	case *net.UnixConn:
		plain = c
	default:
		return nil
	}
	raw, err := plain.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// Quiet returns the connection with a Read and a Write as this package's; any but a plain socket as it is.
func Quiet(conn net.Conn) net.Conn {
	raw := Raw(conn)
	if raw == nil {
		return conn
	}
	q := &quiet{Conn: conn, raw: raw}
	q.in.ready, q.out.ready = q.readable, q.writable
	return q
}

// quiet keeps what its callbacks need, so that a call allocates nothing.
type quiet struct {
	net.Conn
	raw     syscall.RawConn
	in, out direction
}

type direction struct {
	mu    sync.Mutex // one call at a time, as net.Conn's; guards what follows
	b     []byte
	n     int
	err   error
	ready func(fd uintptr) bool // says whether the call is done
}

// call has wait call d.ready until that is done.
func (d *direction) call(wait func(func(uintptr) bool) error, b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.b, d.n, d.err = b, 0, nil
	err := wait(d.ready)
	d.b = nil
	if err == nil {
		err = d.err
	}
	return d.n, err
}

func (q *quiet) readable(fd uintptr) bool {
	q.in.n, q.in.err = Read(fd, q.in.b)
	return !errors.Is(q.in.err, ErrAgain)
}

func (q *quiet) writable(fd uintptr) bool {
	d := &q.out
	for d.n < len(d.b) {
		n, err := Write(fd, d.b[d.n:])
		if errors.Is(err, ErrAgain) {
			return false
		}
		if err != nil {
			d.err = err
			return true
		}
		d.n += n
	}
	return true
}

// Read implements net.Conn.
func (q *quiet) Read(b []byte) (int, error) {
	n, err := q.in.call(q.raw.Read, b)
	return n, q.describe("read", err)
}

// Write implements net.Conn.
func (q *quiet) Write(b []byte) (int, error) {
	n, err := q.out.call(q.raw.Write, b)
	return n, q.describe("write", err)
}

// describe gives errors the form that net's have: what is behind a *net.OpError may be a timeout.
func (q *quiet) describe(op string, err error) error {
	if err == nil {
		return nil
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return &net.OpError{Op: op, Net: q.LocalAddr().Network(), Source: q.LocalAddr(), Addr: q.RemoteAddr(), Err: err}
	}
	return err
}
