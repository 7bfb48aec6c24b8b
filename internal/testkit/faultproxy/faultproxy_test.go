package faultproxy_test

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"xabar/internal/testkit/faultproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers every byte with itself.
func echo(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); running.Wait() })
	return listener.Addr().String()
}

func dial(t *testing.T, p *faultproxy.Proxy) net.Conn {
	c, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// roundTrip sends a byte and waits for it.
func roundTrip(t *testing.T, c net.Conn, patience time.Duration) error {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte{1}); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

func TestFaults(t *testing.T) {
	p := faultproxy.Start(t, echo(t))
	c := dial(t, p)
	if err := roundTrip(t, c, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	p.Blackhole()
	if err := roundTrip(t, c, 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("through a black hole: %v", err)
	}
	p.Heal()
	if err := roundTrip(t, c, 5*time.Second); err != nil {
		t.Fatalf("healed: %v", err)
	}
	p.Slow(50 * time.Millisecond)
	start := time.Now()
	slow := dial(t, p)
	if err := roundTrip(t, slow, 5*time.Second); err != nil || time.Since(start) < 100*time.Millisecond {
		t.Fatalf("slow: %v in %v", err, time.Since(start))
	}
	p.Cut()
	// Not c, at which the byte that the black hole held still waits to be read.
	if err := roundTrip(t, slow, 5*time.Second); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("cut: %v", err)
	}
	if err := roundTrip(t, dial(t, p), 5*time.Second); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a new connection while cut: %v", err)
	}
	p.Heal()
	if err := roundTrip(t, dial(t, p), 5*time.Second); err != nil {
		t.Fatalf("healed again: %v", err)
	}
}

// A client that does not read holds its own writing up soon: what it wrote comes back to it
// from the echo, and there is no room for it.
func TestNarrowHoldsLittle(t *testing.T) {
	p := faultproxy.Start(t, echo(t))
	p.Narrow(16 << 10)
	c := dial(t, p)
	if err := c.(*net.TCPConn).SetReadBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	const much = 64 << 20
	written := 0
	for written < much {
		if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := c.Write(make([]byte, 64<<10))
		written += n
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// The two ends have buffers of their own, of up to some megabytes.
	if written > much/4 {
		t.Errorf("%d bytes were taken from a client that reads nothing", written)
	}
}
