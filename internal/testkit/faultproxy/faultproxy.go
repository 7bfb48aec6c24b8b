// Package faultproxy stands between a client and a TCP server in a test and breaks what goes
// through: it cuts connections, swallows bytes while they stay open, and slows them down.
package faultproxy

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy forwards connections. Its methods may be called from any goroutine.
type Proxy struct {
	Addr string // host:port to connect to

	target   string
	listener net.Listener
	running  sync.WaitGroup
	err      error // of accept, after running

	mu      sync.Mutex // guards the fields below
	changed sync.Cond  // of black and closed
	conns   map[net.Conn]struct{}
	black   bool
	refuse  bool
	delay   time.Duration
	narrow  int
	closed  bool
}

// Start starts a proxy to target (host:port) that forwards everything. It ends with the test.
func Start(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := New(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("faultproxy: %v", err)
		}
	})
	return p
}

// New is Start without a test; the caller closes the proxy.
func New(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{Addr: listener.Addr().String(), target: target, listener: listener, conns: map[net.Conn]struct{}{}}
	p.changed.L = &p.mu
	p.running.Go(p.accept)
	return p, nil
}

// Close cuts all connections and returns when nothing of the proxy runs any more.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.closeAll()
	p.changed.Broadcast()
	p.mu.Unlock()
	err := p.listener.Close()
	p.running.Wait()
	return errors.Join(err, p.err)
}

// Cut closes all connections, and every new one at once, until Heal.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = true
	p.closeAll()
}

// Blackhole keeps connections open, new ones too, and lets nothing through, until Heal.
func (p *Proxy) Blackhole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.black = true
}

// Slow holds everything up for d, in each direction, until Heal.
func (p *Proxy) Slow(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Narrow has the system hold no more than about so many bytes for each end of a connection
// that is made from now on, so that who does not read is soon felt by who writes. Heal does not
// end it.
func (p *Proxy) Narrow(bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.narrow = bytes
}

// Heal forwards again. What a black hole has held is forwarded too.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.black, p.refuse, p.delay = false, false, 0
	p.changed.Broadcast()
}

// closeAll closes all connections. The caller holds mu.
func (p *Proxy) closeAll() {
	for c := range p.conns {
		_ = c.Close() // it may be closed by its other end already
	}
	clear(p.conns)
}

func (p *Proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				p.err = err
			}
			return
		}
		p.running.Go(func() { p.forward(in) })
	}
}

func (p *Proxy) forward(in net.Conn) {
	defer in.Close()
	if !p.keep(in) {
		return
	}
	out, err := net.Dial("tcp", p.target)
	if err != nil {
		return // the server is down: its client sees a closed connection
	}
	defer out.Close()
	if !p.keep(out) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.pump(out, in) })
	both.Go(func() { p.pump(in, out) })
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, in)
	delete(p.conns, out)
}

// keep remembers a connection, unless connections are refused.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse || p.closed {
		return false
	}
	p.conns[c] = struct{}{}
	if tcp, ok := c.(*net.TCPConn); ok && p.narrow > 0 {
		_ = tcp.SetReadBuffer(p.narrow) // without it there is only more in between
		_ = tcp.SetWriteBuffer(p.narrow)
	}
	return true
}

// pump copies until either end is closed, and closes both then.
func (p *Proxy) pump(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !p.gate() {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// gate waits as long as nothing goes through, and says false at the end.
func (p *Proxy) gate() bool {
	p.mu.Lock()
	delay := p.delay
	p.mu.Unlock()
	if delay > 0 {
		timer := time.NewTimer(delay)
		<-timer.C
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.black && !p.closed {
		p.changed.Wait()
	}
	return !p.closed
}
