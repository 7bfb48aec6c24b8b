// Command zishang-v2 is the engine benchmark's server (see bench/engine) on
// zishang520/socket.io v2.5.0.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/zishang520/socket.io/v2/socket"
)

const room = socket.Room("room")

func main() {
	ms, err := strconv.Atoi(os.Getenv("PING_INTERVAL_MS"))
	if err != nil {
		log.Fatal(err)
	}
	opts := socket.DefaultServerOptions()
	opts.SetPingInterval(time.Duration(ms) * time.Millisecond)
	opts.SetServeClient(false)
	server := socket.NewServer(nil, opts)
	err = server.On("connection", func(args ...any) { handle(server, args[0].(*socket.Socket)) })
	if err != nil {
		log.Fatal(err)
	}
	serve(server.ServeHandler(opts))
}

func handle(server *socket.Server, s *socket.Socket) {
	on := func(event string, f func(args ...any)) {
		if err := s.On(event, f); err != nil {
			log.Fatal(err)
		}
	}
	on("echo", func(args ...any) { answer(args, args[0]) })
	on("publish", func(args ...any) {
		if err := server.To(room).Emit("m", args[0]); err != nil {
			log.Print(err)
		}
	})
	on("join", func(args ...any) {
		s.Join(room)
		answer(args)
	})
	on("leave", func(args ...any) {
		s.Leave(room)
		answer(args)
	})
}

// answer calls the acknowledgement, which is the last argument.
func answer(args []any, values ...any) {
	args[len(args)-1].(socket.Ack)(values, nil)
}

// serve tells the port, collects garbage when asked to, and ends when the other side does.
func serve(h http.Handler) {
	mux := http.NewServeMux()
	mux.Handle("/socket.io/", h)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	collect := make(chan os.Signal, 1)
	signal.Notify(collect, syscall.SIGUSR2)
	go func() {
		for range collect {
			debug.FreeOSMemory()
			fmt.Println("collected")
		}
	}()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println("listening", l.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(l, mux))
}
