package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"xabar/chat"
	"xabar/gateway/engineio"
	"xabar/gateway/socketio"
	"xabar/internal/testkit/lightclient"
	"xabar/rooms"
)

// roomsPerSocket makes a few sockets stand for many users: each is in the rooms of so many.
const roomsPerSocket = 500

// dialers is how many connections are opened at a time.
const dialers = 32

// each calls f for 0 to n-1, a few at a time, until one fails.
func each(n int, f func(i int) error) error {
	var (
		all    sync.WaitGroup
		next   atomic.Int64
		mu     sync.Mutex // guards failed
		failed error
	)
	for range dialers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := f(i); err != nil {
					mu.Lock()
					defer mu.Unlock()
					failed = errors.Join(failed, err)
					next.Store(int64(n))
					return
				}
			}
		})
	}
	all.Wait()
	return failed
}

// start measures how long a node takes to hear the channels of all its users, who were
// there before Redis was: as after a restart of Redis. It has the adapter, the bus and
// presence of a gateway, in this process.
func (b *bench) start(ctx context.Context, r *report) (err error) {
	quiet := slog.New(slog.DiscardHandler)
	redis, err := rooms.Open(b.redis.url, rooms.Options{Prefix: "start", Key: "start", Logger: quiet})
	if err != nil {
		return err
	}
	redis.Bus(rooms.BusConfig{Local: nobody{}, Receive: func(chat.Event) {}})
	io := socketio.NewServer(socketio.Options{Options: engineio.Options{Logger: quiet}, Adapter: redis.Adapters()})
	server := httptest.NewServer(io)
	defer server.Close()
	defer func() { err = errors.Join(err, io.Shutdown(context.WithoutCancel(ctx))) }()
	io.Handle("join", func(ev *socketio.Event) {
		for range roomsPerSocket {
			if err := ev.Socket().Join("user:" + chat.NewID().String()); err != nil {
				return // no answer: the client gives up
			}
		}
		_ = ev.Ack(true) // a client that has gone is told of by its own error
	})
	clients := make([]*lightclient.Client, b.rooms/roomsPerSocket)
	err = each(len(clients), func(i int) (err error) {
		if clients[i], err = lightclient.Dial(ctx, lightclient.Options{URL: server.URL}); err != nil {
			return err
		}
		var joined bool
		asking, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		return clients[i].Ask(asking, "join", nil, &joined)
	})
	defer func() {
		for _, c := range clients {
			if c != nil {
				c.Close()
			}
		}
	}()
	if err != nil {
		return err
	}
	return b.timeStart(ctx, redis, r)
}

func (b *bench) timeStart(ctx context.Context, redis *rooms.Redis, r *report) error {
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- redis.Run(running) }()
	err := wait(ctx, "all channels are heard", func() (bool, error) { return len(redis.Health()) == 0, nil })
	r.startTook, r.startChannels = time.Since(began), redis.Stats().Subscriptions
	if err == nil && r.startChannels < 2*b.rooms {
		err = fmt.Errorf("%d channels for %d rooms", r.startChannels, b.rooms)
	}
	r.progress("%d rooms of users, %d channels: heard after %v", b.rooms, r.startChannels, r.startTook.Round(time.Millisecond))
	stop()
	return errors.Join(err, <-ended)
}

// nobody is no socket to deliver to.
type nobody struct{}

func (nobody) Publish(context.Context, chat.Event) error { return nil }
