//go:build unix

package sockets_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"xabar/internal/sockets"
)

// pair is two ends of a connection.
func pair(t *testing.T, network, address string) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // only for this
	if a, err = net.Dial(network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(a.Close(), b.Close()) }) // some tests have closed them
	return a, b
}

func TestQuietCarriesMoreThanTheKernelBuffers(t *testing.T) {
	t.Parallel()
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "s")} {
		a, b := pair(t, network, address)
		from, to := sockets.Quiet(a), sockets.Quiet(b)
		want := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
		written := make(chan error, 1)
		go func() {
			n, err := from.Write(want)
			if err == nil && n != len(want) {
				err = io.ErrShortWrite
			}
			written <- errors.Join(err, from.Close())
		}()
		got, err := io.ReadAll(to)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes of %d, %v", network, len(got), len(want), err)
		}
		if err := <-written; err != nil {
			t.Errorf("%s: %v", network, err)
		}
	}
}

func TestQuietKeepsDeadlines(t *testing.T) {
	t.Parallel()
	a, _ := pair(t, "tcp", "127.0.0.1:0")
	conn := sockets.Quiet(a)
	if err := conn.SetDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, readErr := conn.Read(make([]byte, 1))
	_, writeErr := conn.Write(make([]byte, 64<<20)) // nobody reads it
	for op, err := range map[string]error{"read": readErr, "write": writeErr} {
		var timeout net.Error
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%s: %v", op, err)
		}
	}
}

func TestQuietSaysWhatNetSays(t *testing.T) {
	t.Parallel()
	a, b := pair(t, "tcp", "127.0.0.1:0")
	conn := sockets.Quiet(a)
	if n, err := conn.Read(nil); n != 0 || err != nil {
		t.Errorf("a read of nothing: %d, %v", n, err)
	}
	if err := b.(*net.TCPConn).SetLinger(0); err != nil { // the other side resets
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Read(make([]byte, 1))
	var op *net.OpError
	if !errors.Is(err, syscall.ECONNRESET) || !errors.As(err, &op) || op.Op != "read" {
		t.Errorf("after a reset: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

func TestCloseEndsARead(t *testing.T) {
	t.Parallel()
	a, _ := pair(t, "tcp", "127.0.0.1:0")
	conn := sockets.Quiet(a)
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		ended <- err
	}()
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the read ended with %v", err)
	}
}

func TestOnlyPlainSocketsAreWrapped(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	t.Cleanup(func() { _ = errors.Join(a.Close(), b.Close()) })
	if sockets.Quiet(a) != a || sockets.Raw(a) != nil {
		t.Error("a pipe was taken for a socket")
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	a, b := pair(t, "tcp", "127.0.0.1:0")
	empty := func() (yes bool) {
		if err := sockets.Raw(a).Control(func(fd uintptr) { yes = sockets.Empty(fd) }); err != nil {
			t.Fatal(err)
		}
		return yes
	}
	arrives := func() { // waits until there is something to read, a byte or the end
		if err := sockets.Raw(a).Read(func(fd uintptr) bool { return !sockets.Empty(fd) }); err != nil {
			t.Fatal(err)
		}
	}
	if !empty() {
		t.Error("nothing has come, and it is not empty")
	}
	if _, err := b.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	arrives()
	if empty() {
		t.Error("something has come, and it is empty")
	}
	if n, err := a.Read(make([]byte, 8)); n != 1 || err != nil {
		t.Errorf("what was looked at is gone: %d, %v", n, err)
	}
	if !empty() {
		t.Error("it was read, and it is not empty")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	arrives()
	if empty() {
		t.Error("the other side has closed, and it is empty")
	}
}

func TestQuietAllocatesNothing(t *testing.T) {
	a, b := pair(t, "tcp", "127.0.0.1:0")
	from, to, buf := sockets.Quiet(a), sockets.Quiet(b), make([]byte, 64)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := from.Write(buf); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(to, buf); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations for a write and a read", n)
	}
}
