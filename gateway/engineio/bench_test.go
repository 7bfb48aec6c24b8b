package engineio

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

// benchTarget is a running server process.
type benchTarget struct {
	b    *testing.B
	addr string
}

func startBenchServer(b *testing.B, kind string) *benchTarget {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), benchServerEnv+"="+kind)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	must(b, err)
	stdout, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	b.Cleanup(func() {
		must(b, stdin.Close())
		must(b, cmd.Wait())
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	must(b, err)
	return &benchTarget{b, strings.TrimSpace(line)}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// stats asks the server for its CPU time in microseconds, its RSS in bytes and its goroutines.
func (t *benchTarget) stats(gc bool) (cpu, rss, goroutines int) {
	url := "http://" + t.addr + "/stats"
	if gc {
		url += "?gc=1"
	}
	resp, err := http.Get(url)
	must(t.b, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t.b, err)
	_, err = fmt.Sscan(string(body), &cpu, &rss, &goroutines)
	must(t.b, err)
	http.DefaultClient.CloseIdleConnections()
	return cpu, rss, goroutines
}

const benchUpgrade = "GET /engine.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: bench\r\nUpgrade: websocket\r\n" +
	"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

// dial opens a connection and waits for the answer to its upgrade, and the open packet if
// there is one to come.
func (t *benchTarget) dial(open bool) net.Conn {
	conn, err := net.Dial("tcp", t.addr)
	must(t.b, err)
	_, err = conn.Write([]byte(benchUpgrade))
	must(t.b, err)
	var got []byte
	buf := make([]byte, 1024)
	for !bytes.Contains(got, []byte("\r\n\r\n")) || open && !bytes.HasSuffix(got, []byte("}")) {
		n, err := conn.Read(buf)
		must(t.b, err)
		got = append(got, buf[:n]...)
	}
	return conn
}

// maskedFrame is the frame of a client with a zero mask.
func maskedFrame(payload string) []byte {
	f := ws.NewTextFrame([]byte(payload))
	f.Header.Masked = true
	return ws.MustCompileFrame(f)
}

// benchMembers are connections whose readers count the bytes that come.
type benchMembers struct {
	conns []net.Conn
	wg    sync.WaitGroup
	bytes atomic.Int64
	goal  atomic.Int64
	done  chan struct{}
}

func (t *benchTarget) join(n int, open bool) *benchMembers {
	m := &benchMembers{done: make(chan struct{}, 1)}
	for range n {
		conn := t.dial(open)
		m.conns = append(m.conns, conn)
		m.wg.Go(func() { m.read(conn) })
	}
	t.b.Cleanup(func() {
		for _, c := range m.conns {
			_ = c.Close()
		}
		m.wg.Wait()
	})
	return m
}

func (m *benchMembers) read(conn net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		if m.bytes.Add(int64(n)) == m.goal.Load() {
			m.done <- struct{}{}
		}
	}
}

func BenchmarkFanOut(b *testing.B) {
	const members = 1000
	text := "4b" + strings.Repeat("x", 99)
	for _, kind := range []string{"bare", "ours"} {
		for _, inFlight := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/inflight=%d", kind, inFlight), func(b *testing.B) {
				t := startBenchServer(b, kind)
				m := t.join(members, kind == "ours")
				frame := bytes.Repeat(maskedFrame(text), inFlight)
				out := int64(len(text)+2) * members * int64(inFlight)
				cpu, _, _ := t.stats(false)
				b.ResetTimer()
				for range b.N {
					m.goal.Add(out)
					_, err := m.conns[0].Write(frame)
					must(b, err)
					select {
					case <-m.done:
					case <-time.After(6 * patience):
						b.Fatalf("received %d of %d bytes", m.bytes.Load(), m.goal.Load())
					}
				}
				b.StopTimer()
				after, _, _ := t.stats(false)
				b.ReportMetric(float64(after-cpu)/float64(b.N*members*inFlight), "srv-µs/delivery")
			})
		}
	}
}

func BenchmarkEcho(b *testing.B) {
	const clients = 50
	frame := maskedFrame("4e" + strings.Repeat("x", 99))
	for _, kind := range []string{"bare", "ours"} {
		b.Run(kind, func(b *testing.B) {
			t := startBenchServer(b, kind)
			var conns []net.Conn
			for range clients {
				conns = append(conns, t.dial(kind == "ours"))
			}
			cpu, _, _ := t.stats(false)
			b.ResetTimer()
			var wg sync.WaitGroup
			for i, conn := range conns {
				wg.Go(func() {
					answer := make([]byte, 103)
					for range (b.N + clients - 1 - i) / clients {
						if _, err := conn.Write(frame); err != nil {
							b.Error(err)
							return
						}
						if _, err := io.ReadFull(conn, answer); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			after, _, _ := t.stats(false)
			b.ReportMetric(float64(after-cpu)/float64(b.N), "srv-µs/echo")
			for _, c := range conns {
				must(b, c.Close())
			}
		})
	}
}

// BenchmarkIdle holds 5,000 connections; one iteration says all. connect is the CPU of the handshakes.
func BenchmarkIdle(b *testing.B) {
	const clients = 5000
	for _, kind := range []string{"bare", "ours"} {
		b.Run(kind, func(b *testing.B) {
			for range b.N {
				t := startBenchServer(b, kind)
				_, before, goroutines := t.stats(true)
				cpu, _, _ := t.stats(false)
				var conns []net.Conn
				for range clients {
					conns = append(conns, t.dial(kind == "ours"))
				}
				after, _, _ := t.stats(false)
				_, rss, now := t.stats(true)
				b.ReportMetric(float64(rss-before)/clients, "RSS-B/conn")
				b.ReportMetric(float64(now-goroutines)/clients, "goroutines/conn")
				b.ReportMetric(float64(after-cpu)/clients, "srv-µs/connect")
				for _, c := range conns {
					must(b, c.Close())
				}
			}
		})
	}
}
