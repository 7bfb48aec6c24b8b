// Package centrifugo loads a Centrifugo server (https://centrifugal.dev) with one group whose members hear
// every message, and counts as package loadtest does for a group without acknowledgements: one member sends,
// in a closed loop with a window; a message is done when the sender has its answer and all others have the
// message; costs are CPU time of the server for each that was received.
//
// The server is spoken to in JSON, since Socket.IO is text as well. The sender publishes by its WebSocket,
// which costs the server half of what its HTTP API does (26 and 51 µs a message with one receiver). Every
// member checks that each message comes once and in order.
package centrifugo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"xabar/internal/loadtest"
)

// Options say what to run.
type Options struct {
	URL      string        // http://host:port
	PID      int           // of the server
	Clients  int           // the sender is one of them; at least 2
	Window   int           // messages in flight, at least 1
	Size     int           // bytes of a message as a client gets it, without the frame's header; at least minSize
	Warmup   time.Duration // not measured
	Duration time.Duration // measured
	Settle   time.Duration // for what is on its way at the end; default 10 s
}

const (
	channel  = "group"
	patience = 30 * time.Second // for connections
	longest  = time.Minute      // of latencies that are told apart

	// envelope is what stands around a publication's data.
	envelope = `{"push":{"channel":"` + channel + `","pub":{"data":,"info":{"user":"","client":"00000000-0000-0000-0000-000000000000"}}}}`
	minSize  = len(envelope) + 64
)

// Run connects the clients, measures, and returns when all of them are closed. What the server did wrong
// stands in the result's Faults; its Latency has "answered" and "received", its Processes "nodes".
func Run(ctx context.Context, o Options) (*loadtest.Result, error) {
	if o.Clients < 2 || o.Window < 1 || o.Size < minSize {
		return nil, errors.New("centrifugo: too few clients or messages, or too small ones")
	}
	if o.Settle == 0 {
		o.Settle = 10 * time.Second
	}
	r := &run{opts: o, start: time.Now(), flying: map[int64]*flight{}, faults: map[string]*loadtest.Fault{}}
	r.reset()
	defer r.disconnect()
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	result, err := r.measure(ctx)
	if err == nil && result.Count(loadtest.Received) == 0 { // costs of nothing are no figures
		err = fmt.Errorf("centrifugo: no message was received: %+v", result.Faults)
	}
	return result, err
}

// run is one load test.
type run struct {
	opts    Options
	start   time.Time
	sender  *client
	members []*member
	readers sync.WaitGroup

	mu       sync.Mutex // guards what follows
	next     int64      // number of the next message
	flying   map[int64]*flight
	ending   bool // a message that is done is not followed by another
	closing  bool // connections may end
	answered *hdrhistogram.Histogram
	received *hdrhistogram.Histogram
	faults   map[string]*loadtest.Fault
}

// flight is a message that is not done.
type flight struct {
	due      time.Duration // since the run's start
	left     int           // members that have not received it
	answered bool
}

// member is a client that hears the channel. next and holes belong to the goroutine that reads.
type member struct {
	*client
	index int
	next  int64          // the lowest number that is higher than all that came
	holes map[int64]bool // what is missing below it
}

func (r *run) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	const hello, listen = `{"id":1,"connect":{}}`, `{"id":2,"subscribe":{"channel":"` + channel + `"}}`
	var err error
	if r.sender, err = dialFirst(ctx, r.opts.URL, hello); err != nil {
		return err
	}
	r.serve(r.sender, "the sender", r.answer)
	for i := range r.opts.Clients - 1 {
		c, err := dial(ctx, r.opts.URL, hello, listen)
		if err != nil {
			return err
		}
		m := &member{client: c, index: i, holes: map[int64]bool{}}
		r.members = append(r.members, m)
		r.serve(c, fmt.Sprintf("member %d", i), func(line []byte) error { return r.receive(m, line) })
	}
	return nil
}

// dialFirst waits for the server: it says where it listens a moment before it does.
func dialFirst(ctx context.Context, url string, commands ...string) (*client, error) {
	for {
		c, err := dial(ctx, url, commands...)
		if err == nil {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// serve reads a connection until it ends, which disconnect waits for.
func (r *run) serve(c *client, name string, handle func([]byte) error) {
	r.readers.Go(func() {
		for {
			if err := c.read(handle); err != nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				if !r.closing {
					r.fault("connection lost", "%s: %v", name, err)
				}
				return
			}
		}
	})
}

func (r *run) disconnect() {
	r.mu.Lock()
	r.closing = true
	r.mu.Unlock()
	if r.sender != nil {
		_ = r.sender.conn.Close()
	}
	for _, m := range r.members {
		_ = m.conn.Close()
	}
	r.readers.Wait()
}
