//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"xabar/gateway/engineio"
	"xabar/gateway/socketio"
)

// serveEnv makes this program one of the servers.
const serveEnv = "XABAR_BENCH_SERVE"

// serve runs a server until stdin ends.
func serve(kind string) error {
	ms, err := strconv.Atoi(os.Getenv("PING_INTERVAL_MS"))
	if err != nil {
		return err
	}
	var h http.Handler
	if kind == ours {
		h = newOurs(time.Duration(ms) * time.Millisecond)
	} else {
		h = http.HandlerFunc((&bareHub{}).serve)
	}
	mux := http.NewServeMux()
	mux.Handle("/socket.io/", h)
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	stopProfile, err := startProfile(kind)
	if err != nil {
		return err
	}
	collect := make(chan os.Signal, 1)
	signal.Notify(collect, syscall.SIGUSR2)
	go func() { // until the process ends
		for range collect {
			debug.FreeOSMemory()
			fmt.Println("collected")
		}
	}()
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	fmt.Println("listening", l.Addr().(*net.TCPAddr).Port)
	if err := server.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return stopProfile()
}

// room is where the members are.
const room = "room"

func newOurs(ping time.Duration) http.Handler {
	io := socketio.NewServer(socketio.Options{Options: engineio.Options{PingInterval: ping}})
	to := io.To(room)
	// An answer to a client that has gone is nobody's loss, here as with the peers.
	io.Handle("echo", func(ev *socketio.Event) { _ = ev.Ack(ev.Arg(0)) })
	io.Handle("publish", func(ev *socketio.Event) { _ = to.Emit("m", ev.Arg(0)) })
	io.Handle("join", func(ev *socketio.Event) {
		if ev.Socket().Join(room) == nil {
			_ = ev.Ack()
		}
	})
	io.Handle("leave", func(ev *socketio.Event) {
		ev.Socket().Leave(room)
		_ = ev.Ack()
	})
	return io
}
