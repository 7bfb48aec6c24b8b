package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"xabar/internal/testkit"
	"xabar/internal/testkit/faultproxy"
	"xabar/internal/testkit/lightclient"
	"xabar/internal/testkit/pgtest"
)

// balancer is a TCP proxy in front of nodes, as every deployment has one: it asks each
// node's readyz and gives new connections only to those that are ready.
type balancer struct {
	url      string
	listener net.Listener
	nodes    []*world
	ready    []atomic.Bool
	next     atomic.Int64
	running  sync.WaitGroup
	stopping chan struct{}
}

func newBalancer(t *testing.T, nodes []*world) *balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{
		url: "http://" + listener.Addr().String(), listener: listener, nodes: nodes,
		ready: make([]atomic.Bool, len(nodes)), stopping: make(chan struct{}),
	}
	for i := range nodes {
		b.ready[i].Store(true)
		b.running.Go(func() { b.watch(i, nodes[i].gateway.AdminURL+"/readyz") })
	}
	b.running.Go(b.accept)
	t.Cleanup(func() {
		close(b.stopping)
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		b.running.Wait()
	})
	return b
}

func (b *balancer) watch(i int, url string) {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-b.stopping:
			return
		case <-ticker.C:
		}
		response, err := client.Get(url)
		b.ready[i].Store(err == nil && response.StatusCode == http.StatusOK)
		if err == nil {
			response.Body.Close()
		}
	}
}

func (b *balancer) accept() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.running.Go(func() { b.forward(conn) })
	}
}

// pick is the next node that is ready; nil if none is.
func (b *balancer) pick() *world {
	for range b.nodes {
		if i := int(b.next.Add(1)) % len(b.nodes); b.ready[i].Load() {
			return b.nodes[i]
		}
	}
	return nil
}

func (b *balancer) forward(client net.Conn) {
	defer client.Close()
	node := b.pick()
	if node == nil {
		return
	}
	server, err := net.Dial("tcp", strings.TrimPrefix(node.gateway.URL, "http://"))
	if err != nil {
		return // the client comes back
	}
	var both sync.WaitGroup
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // how a connection ends is what tests look at elsewhere
		_, _ = to.Close(), from.Close()
	}
	both.Go(func() { pipe(server, client) })
	both.Go(func() { pipe(client, server) })
	ended := make(chan struct{})
	go func() {
		both.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-b.stopping:
		_, _ = client.Close(), server.Close()
		<-ended
	}
}

// crowd is many connections that come back by themselves, as official clients do.
type crowd struct {
	url       string
	connected atomic.Int64
	comebacks atomic.Int64
	running   sync.WaitGroup
}

// join adds a connection until ctx ends.
func (c *crowd) join(ctx context.Context, token string) {
	c.running.Go(func() {
		for ctx.Err() == nil {
			client, err := lightclient.Dial(ctx, lightclient.Options{URL: c.url, Auth: obj{"token": token, "sync": true}})
			if err == nil {
				c.connected.Add(1)
				select {
				case <-client.Done():
				case <-ctx.Done():
				}
				c.connected.Add(-1)
				client.Close()
				c.comebacks.Add(1)
			}
			select { // the official client's reconnectionDelay, shorter
			case <-time.After(time.Duration(50+rand.IntN(200)) * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
}

// A SIGTERM under 500 messages a second and 2,000 connections: nothing that was
// acknowledged is lost, everybody goes on at the other node by their own reconnection, and
// the process ends in time.
func TestADrainUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	const (
		connections = 2000
		perSecond   = 500
		pairs       = 20
	)
	c := newCluster(t, 2)
	lb := newBalancer(t, c.nodes)
	through := func(o *testkit.ClientOptions) { o.URL = lb.url }
	pace := time.NewTicker(time.Second / perSecond)
	defer pace.Stop()
	b := &broken{cluster: c, t: t}
	for i := range pairs {
		k := &talk{sender: c.nodes[0].page(fmt.Sprint("s", i), retrying, through), pace: pace.C}
		k.recipient = c.nodes[0].page(fmt.Sprint("r", i), through)
		k.conversation = k.sender.open(k.recipient).ID
		b.talks = append(b.talks, k)
	}
	others := &crowd{url: lb.url}
	ctx, leave := context.WithCancel(t.Context())
	defer func() {
		leave()
		others.running.Wait()
	}()
	for i := range connections {
		others.join(ctx, mint(t, fmt.Sprint("u", i%200)))
	}
	eventually(t, "all are connected", func() bool { return others.connected.Load() == connections })
	before := c.nodes[0].metric("xabar_connections")
	if before < connections/3 {
		t.Fatalf("the node has %v connections", before)
	}
	b.during(func() {
		started, sent := time.Now(), b.sent.Load()
		c.nodes[0].gateway.Stop() // fails unless it exits with 0
		took := time.Since(started)
		if took > 30*time.Second {
			t.Errorf("draining took %v", took)
		}
		t.Logf("%v connections were drained in %v, at %.0f messages/s", before, took.Round(time.Millisecond), float64(b.sent.Load()-sent)/took.Seconds())
		if log := c.nodes[0].gateway.Log(); strings.Contains(log, "last times were not stored") {
			t.Error("the node ended before it had stored who was there last")
		}
		eventually(t, "everybody is at the other node", func() bool {
			return c.nodes[1].metric("xabar_connections") == connections+2*pairs
		})
		c.nodes[0].gateway.Restart()
	})
	if came := float64(others.comebacks.Load()); came < before-2*pairs || came > 2*before {
		t.Errorf("%v connections were drained, and %v came back", before, came)
	}
}

// What cannot be finished does not keep the process: here PostgreSQL has stopped
// answering.
func TestADrainEndsInTime(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	proxy := faultproxy.Start(t, fmt.Sprint("127.0.0.1:", server.Port()))
	database := "postgres://xabar@" + proxy.Addr + "/postgres?sslmode=disable"
	w := newWorld(t, "--database-url", database, "--drain-timeout", "3s")
	a, b := w.page("A"), w.page("B")
	conversation := a.open(b)
	a.send(conversation.ID, "x1")
	proxy.Blackhole()
	if err := a.Send(testkit.Context(t), "message:send", message(conversation.ID, "x2", "text")); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	w.gateway.Signal(syscall.SIGTERM)
	if err := w.gateway.Wait(testkit.Context(t)); err == nil {
		t.Error("it says that it has finished everything")
	}
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
