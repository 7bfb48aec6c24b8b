package engineio

import (
	"context"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/gobwas/ws"
)

// countingSession does nothing with what comes.
type countingSession struct{ n atomic.Int64 }

func (s *countingSession) OnMessage([]byte, bool) { s.n.Add(1) }
func (s *countingSession) OnClose(Reason, error)  {}

// benchSocket is a socket over WebSocket in this process, with a client that discards.
func benchSocket(b *testing.B) (*Socket, *countingSession, net.Conn) {
	b.Helper()
	session := &countingSession{}
	sockets := make(chan *Socket, 1)
	server := NewServer(Options{SendBudget: 1 << 30}, func(s *Socket) Session { sockets <- s; return session })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	hs := HTTPServer(server)
	done := make(chan struct{})
	go func() { defer close(done); _ = hs.Serve(l) }()
	t := &benchTarget{b, l.Addr().String()}
	conn := t.dial(true)
	discarded := make(chan struct{})
	go func() { defer close(discarded); _, _ = io.Copy(io.Discard, conn) }()
	b.Cleanup(func() {
		must(b, conn.Close())
		<-discarded
		must(b, server.Shutdown(context.Background()))
		must(b, hs.Close())
		<-done
	})
	return <-sockets, session, conn
}

// BenchmarkSend and BenchmarkSendLater are one delivery of a shared message: no allocation.
func BenchmarkSend(b *testing.B) {
	s, _, _ := benchSocket(b)
	m := NewMessage(make([]byte, 100))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Send(false, m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSendLater(b *testing.B) {
	s, _, _ := benchSocket(b)
	m := NewMessage(make([]byte, 100))
	b.ReportAllocs()
	for i := range b.N {
		if _, err := s.SendLater(false, m); err != nil {
			b.Fatal(err)
		}
		for i%keepQueue == 0 && s.BufferedBytes() > 0 {
			runtime.Gosched() // a backlog that grows without end would be another test
		}
	}
}

// BenchmarkReceive is one message of a client.
func BenchmarkReceive(b *testing.B) {
	_, session, conn := benchSocket(b)
	frame := clientFrame(ws.OpText, make([]byte, 100), true)
	copy(frame[6:], "\x35") // '4' under the mask's first byte
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := conn.Write(frame); err != nil {
			b.Fatal(err)
		}
	}
	for session.n.Load() < int64(b.N) {
	}
}

var sink *Message

// BenchmarkNewMessage is the encoding of a broadcast, once for all its recipients.
func BenchmarkNewMessage(b *testing.B) {
	text := make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		sink = NewMessage(text)
	}
}
