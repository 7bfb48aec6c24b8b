//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"xabar/bench/internal/centrifugo"
	"xabar/internal/loadtest"
)

// messageSize is what a message weighs for a Xabar client: the WebSocket payload of a `message` event with
// the load test's text of 100 bytes, rounded. Centrifugo's messages weigh as much.
const messageSize = 375

// centrifugoSide takes part where messages are fanned out and nobody acknowledges them. It needs neither
// PostgreSQL nor Redis: its engine is memory, and it keeps no history and no presence.
var centrifugoSide = side{name: "centrifugo"}

// findCentrifugo says so when it is not there, which is no error: it cannot be had everywhere.
func (c *config) findCentrifugo() (err error) {
	if c.centrifugo == "" {
		fmt.Println("No binary of Centrifugo was named (-centrifugo): the measurements go on without it.")
		return nil
	}
	if c.centrifugo, err = filepath.Abs(c.centrifugo); err != nil {
		return err
	}
	if _, err = os.Stat(c.centrifugo); errors.Is(err, fs.ErrNotExist) {
		fmt.Printf("%s is not there: the measurements go on without Centrifugo.\n", c.centrifugo)
		c.centrifugo = ""
		return nil
	}
	return err
}

// centrifugoVersion is what the binary's name says; what it says of itself is set by release builds alone.
func (c *config) centrifugoVersion() string {
	if c.centrifugo == "" {
		return "not there"
	}
	return strings.TrimPrefix(filepath.Base(c.centrifugo), "centrifugo-")
}

// fanOut measures Centrifugo.
func (b *bench) fanOut(ctx context.Context, m *measurement) (*loadtest.Result, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(b.centrifugo)
	cmd.Dir = b.dir // where no configuration file is
	cmd.Env = append(os.Environ(), "CENTRIFUGO_HTTP_SERVER_ADDRESS=127.0.0.1", "CENTRIFUGO_HTTP_SERVER_PORT="+strconv.Itoa(port),
		"CENTRIFUGO_CLIENT_INSECURE=true", "CENTRIFUGO_USAGE_STATS_DISABLED=true")
	p, err := start(cmd)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	return centrifugo.Run(ctx, centrifugo.Options{
		URL: p.url, PID: p.cmd.Process.Pid, Clients: m.options.Users, Window: m.options.Window, Size: messageSize,
		Warmup: m.options.Warmup, Duration: m.options.Duration,
	})
}

// besideCentrifugo is a section: what a delivery costs beside a server that stores nothing.
func (r *report) besideCentrifugo() string {
	var b strings.Builder
	nodes := func(s sample) float64 { return s.parts["nodes"] }
	for _, m := range r.order {
		if len(r.samples[m.name][centrifugoSide.name]) == 0 {
			continue
		}
		line := func(title string, of func(sample) float64, target float64) {
			ratio := r.ratioTo(m.name, of, centrifugoSide)
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", title,
				r.spread(m.name, sides[0].name, of), r.spread(m.name, centrifugoSide.name, of), ratio, verdict(ratio, target))
		}
		line(m.title(), figureOf, 1)
		line("the same: the nodes alone", nodes, 0)
		line("the same: send to received, p50, ms", p50Of, 0)
		line("the same: send to received, p99, ms", p99Of, 0)
		line("the same: messages a second", rateOf, 0)
	}
	if b.Len() == 0 {
		return ""
	}
	return fmt.Sprintf(`
## Beside Centrifugo

Centrifugo fans out and does nothing else here: its engine is memory, it keeps no history, and no client
acknowledges. Its clients speak JSON by WebSocket, as those of Socket.IO do; the sender publishes by its
WebSocket too, which costs the server less than an HTTP request. A message weighs %d bytes for each who
receives it, as ours do. Ours are stored in PostgreSQL meanwhile.

| | xabar | centrifugo | ratio | target |
|---|---|---|---|---|
%s`, messageSize, b.String())
}
