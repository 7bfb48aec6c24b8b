//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// dialers is how many connections are opened at a time.
const dialers = 32

const upgradeRequest = "GET /socket.io/?EIO=4&transport=websocket%s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n" +
	"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64) bench\r\nAccept-Language: en\r\n\r\n"

// dialMany opens n connections, each in the namespace "/", and adds them to the loop.
func (b *bench) dialMany(ctx context.Context, n int, dial func(port int) (*conn, error)) ([]*conn, error) {
	conns := make([]*conn, n)
	var (
		wg     sync.WaitGroup
		next   atomic.Int64
		failed atomic.Pointer[error]
	)
	for range dialers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && failed.Load() == nil && ctx.Err() == nil; i = next.Add(1) - 1 {
				c, err := b.dialPatiently(dial)
				if err == nil {
					conns[i] = c
					err = b.loop.add(c)
				}
				if err != nil {
					err = fmt.Errorf("connection %d of %d: %w", i+1, n, err)
					failed.Store(&err)
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	return conns, ctx.Err()
}

// dialAttempts is how often a connection is tried: a server may lose a CONNECT under load, which is
// counted.
const dialAttempts = 5

func (b *bench) dialPatiently(dial func(port int) (*conn, error)) (c *conn, err error) {
	for range dialAttempts {
		if c, err = dial(b.server.port); err == nil {
			return c, nil
		}
		b.failedDials.Add(1)
	}
	return nil, err
}

// dialer is a connection that is being opened, with a deadline and blocking reads.
type dialer struct {
	fd  int
	in  []byte
	buf [1024]byte
}

const dialTimeout = 10 // seconds

func newDialer(port int) (*dialer, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	d := &dialer{fd: fd}
	for _, option := range []int{syscall.SO_RCVTIMEO, syscall.SO_SNDTIMEO} {
		if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, option, &syscall.Timeval{Sec: dialTimeout}); err != nil {
			return nil, d.fail(err)
		}
	}
	if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1); err != nil {
		return nil, d.fail(err)
	}
	if err := connect(fd, port); err != nil {
		return nil, d.fail(fmt.Errorf("connect: %w", err))
	}
	return d, nil
}

// connect goes on where a signal has interrupted it.
func connect(fd, port int) error {
	to := &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	err := syscall.Connect(fd, to)
	for errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.EALREADY) {
		err = syscall.Connect(fd, to)
	}
	if errors.Is(err, syscall.EISCONN) {
		return nil
	}
	return err
}

func (d *dialer) fail(err error) error {
	_ = syscall.Close(d.fd)
	return err
}

func (d *dialer) more() error {
	n, err := syscall.Read(d.fd, d.buf[:])
	if errors.Is(err, syscall.EINTR) {
		return nil
	}
	if err == nil && n <= 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	d.in = append(d.in, d.buf[:n]...)
	return nil
}

// upgrade asks for a WebSocket and reads the answer.
func (d *dialer) upgrade(query string) error {
	if err := (&conn{fd: d.fd}).write(fmt.Appendf(nil, upgradeRequest, query)); err != nil {
		return err
	}
	for {
		if head, rest, ok := bytes.Cut(d.in, []byte("\r\n\r\n")); ok {
			if !bytes.HasPrefix(head, []byte("HTTP/1.1 101")) {
				return fmt.Errorf("upgrade: %.100q", head)
			}
			d.in = rest
			return nil
		}
		if err := d.more(); err != nil {
			return fmt.Errorf("upgrade: %w", err)
		}
	}
}

// say sends packets.
func (d *dialer) say(packets ...string) error {
	var out []byte
	for _, p := range packets {
		out = append(out, textFrame(p)...)
	}
	return (&conn{fd: d.fd}).write(out)
}

// expect reads the next packet, which must start with prefix.
func (d *dialer) expect(prefix string) error {
	for {
		if p, size := frame(d.in); size > 0 {
			if string(p) == "2" { // the machine is busy
				d.in = d.in[size:]
				if err := d.say("3"); err != nil {
					return err
				}
				continue
			}
			if !strings.HasPrefix(string(p), prefix) {
				return fmt.Errorf("got %q, want %q", p, prefix)
			}
			d.in = d.in[size:]
			return nil
		}
		if err := d.more(); err != nil {
			return fmt.Errorf("wait for %q: %w", prefix, err)
		}
	}
}

func (d *dialer) conn() *conn { return &conn{fd: d.fd, rest: d.in} }

// dialWebSocket opens a connection by WebSocket and joins "/".
func dialWebSocket(port int) (*conn, error) {
	d, err := newDialer(port)
	if err != nil {
		return nil, err
	}
	if err := d.upgrade(""); err != nil {
		return nil, d.fail(err)
	}
	if err := d.expect("0{"); err != nil {
		return nil, d.fail(err)
	}
	if err := d.say("40"); err != nil {
		return nil, d.fail(err)
	}
	if err := d.expect("40{"); err != nil {
		return nil, d.fail(err)
	}
	return d.conn(), nil
}

// dialUpgraded opens a session by polling, joins "/" and upgrades, as clients do by default.
func dialUpgraded(port int) (*conn, error) {
	sid, err := openPolling(port)
	if err != nil {
		return nil, fmt.Errorf("polling: %w", err)
	}
	d, err := newDialer(port)
	if err != nil {
		return nil, err
	}
	if err := d.upgrade("&sid=" + sid); err != nil {
		return nil, d.fail(err)
	}
	if err := d.say("2probe"); err != nil {
		return nil, d.fail(err)
	}
	if err := d.expect("3probe"); err != nil {
		return nil, d.fail(err)
	}
	if err := d.say("5"); err != nil {
		return nil, d.fail(err)
	}
	return d.conn(), nil
}

// openPolling opens a session and joins "/" on one connection, which it closes.
func openPolling(port int) (sid string, err error) {
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: dialTimeout * time.Second}).DialContext}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: dialTimeout * time.Second}
	url := fmt.Sprintf("http://127.0.0.1:%d/socket.io/?EIO=4&transport=polling", port)
	open, err := request(client, http.MethodGet, url, "")
	if err != nil {
		return "", err
	}
	_, rest, ok := strings.Cut(open, `"sid":"`)
	if !ok {
		return "", fmt.Errorf("open packet %q", open)
	}
	sid, _, _ = strings.Cut(rest, `"`)
	url += "&sid=" + sid
	if _, err := request(client, http.MethodPost, url, "40"); err != nil {
		return "", err
	}
	answer, err := request(client, http.MethodGet, url, "")
	if err == nil && !strings.HasPrefix(answer, "40{") {
		err = fmt.Errorf("answer to CONNECT %q", answer)
	}
	return sid, err
}

func request(client *http.Client, method, url, body string) (string, error) {
	r, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %q", resp.Status, text)
	}
	return string(text), err
}
