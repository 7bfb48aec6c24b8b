package engineio

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gobwas/ws"
)

// The benchmarks run their server in a process of its own, so that its CPU and memory can be told
// from the clients'. "ours" is this package, "bare" a gobwas/ws server without any protocol: the
// floor. Both answer a message that starts with 'e' to its sender and send one that starts with 'b'
// to everybody.
const benchServerEnv = "ENGINEIO_BENCH_SERVER"

func benchServer(kind string) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/stats", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, benchStats(r.FormValue("gc") != "")) })
	if kind == "ours" {
		hub := &benchHub{}
		mux.Handle("/engine.io/", NewServer(Options{PingInterval: time.Hour}, hub.accept))
	} else {
		mux.HandleFunc("/engine.io/", (&bareHub{conns: map[net.Conn]bool{}}).serve)
	}
	server := &http.Server{Handler: mux}
	go func() { // the parent holds the other end: its death ends this process
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	fmt.Println(l.Addr())
	if err := server.Serve(l); err != http.ErrServerClosed {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// benchStats is "CPU microseconds, RSS bytes, goroutines" of this process.
func benchStats(gc bool) string {
	if gc {
		runtime.GC()
		debug.FreeOSMemory()
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return err.Error()
	}
	micros := (u.Utime.Nano() + u.Stime.Nano()) / 1000
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err.Error()
	}
	pages, err := strconv.Atoi(strings.Fields(string(statm))[1])
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(micros, " ", pages*os.Getpagesize(), " ", runtime.NumGoroutine())
}

// benchHub holds all sockets as a room would.
type benchHub struct {
	mu      sync.RWMutex
	sockets []*Socket
}

type benchSession struct {
	hub    *benchHub
	socket *Socket
}

func (h *benchHub) accept(s *Socket) Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sockets = append(h.sockets, s)
	return &benchSession{h, s}
}

func (s *benchSession) OnMessage(data []byte, _ bool) {
	m := NewMessage(data) // copies
	if data[0] == 'e' {
		_, _ = s.socket.Send(false, m)
		return
	}
	s.hub.mu.RLock()
	defer s.hub.mu.RUnlock()
	for _, to := range s.hub.sockets {
		_, _ = to.SendLater(false, m)
	}
}

func (s *benchSession) OnClose(Reason, error) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, other := range h.sockets {
		if other == s.socket {
			last := len(h.sockets) - 1
			h.sockets[i] = h.sockets[last]
			h.sockets = h.sockets[:last]
			return
		}
	}
}

type bareHub struct {
	mu    sync.Mutex
	conns map[net.Conn]bool
}

func (h *bareHub) serve(w http.ResponseWriter, r *http.Request) {
	conn, _, _, err := ws.UpgradeHTTP(r, w)
	if err != nil {
		return
	}
	h.mu.Lock()
	h.conns[conn] = true
	h.mu.Unlock()
	go h.read(conn)
}

func (h *bareHub) read(conn net.Conn) {
	defer func() {
		h.mu.Lock()
		delete(h.conns, conn)
		h.mu.Unlock()
		_ = conn.Close()
	}()
	buf := make([]byte, 4096)
	header := make([]byte, ws.MaxHeaderSize)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		in := bytes.NewReader(buf[:n])
		for in.Len() > 0 {
			h.handle(conn, in, header)
		}
	}
}

// handle answers one frame; the benchmark's clients never split one.
func (h *bareHub) handle(conn net.Conn, in *bytes.Reader, header []byte) {
	head, err := ws.ReadHeaderBuffer(in, header)
	if err != nil {
		return
	}
	payload := make([]byte, head.Length)
	if _, err := io.ReadFull(in, payload); err != nil {
		return
	}
	ws.Cipher(payload, head.Mask, 0)
	frame := ws.MustCompileFrame(ws.NewTextFrame(payload))
	if payload[1] == 'e' {
		_, _ = conn.Write(frame)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for to := range h.conns {
		_, _ = to.Write(frame)
	}
}
