// Package roomstest holds the contracts of package rooms. An adapter that passes Exercise can
// carry the broadcasts of Socket.IO namespaces.
package roomstest

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xabar/gateway/engineio"
	"xabar/gateway/socketio"
	"xabar/gateway/socketio/socketiotest"
)

// Cluster makes the adapter factories of nodes that belong together, and stops what stands
// behind them when the test ends. Clusters of one test must not hear each other.
type Cluster func(t *testing.T, nodes int) []socketio.AdapterFactory

// Exercise runs the whole contract of socketio.Adapter on clusters of one node and, when the
// adapter can have several, of two.
func Exercise(t *testing.T, several bool, cluster Cluster) {
	nodes := []int{1}
	if several {
		nodes = append(nodes, 2)
	}
	for _, n := range nodes {
		for name, f := range everywhere {
			t.Run(fmt.Sprintf("%d/%s", n, name), func(t *testing.T) {
				t.Parallel()
				f(startBench(t, cluster, n))
			})
		}
	}
	for name, f := range alone {
		t.Run("1/"+name, func(t *testing.T) {
			t.Parallel()
			f(startBench(t, cluster, 1))
		})
	}
	if !several {
		return
	}
	for name, f := range together {
		t.Run("2/"+name, func(t *testing.T) {
			t.Parallel()
			f(startBench(t, cluster, 2))
		})
	}
}

// everywhere are the cases whose outcome is the same whatever the number of nodes: clients are spread
// over them.
var everywhere = map[string]func(b *bench){
	"rooms":                 exerciseRooms,
	"except":                exerciseExcept,
	"own id":                exerciseOwnID,
	"order":                 exerciseOrder,
	"binary":                exerciseBinary,
	"management":            exerciseManagement,
	"fetch":                 exerciseFetch,
	"disconnect":            exerciseDisconnect,
	"acknowledgements":      exerciseAcks,
	"acknowledgements late": exerciseAcksLate,
	"namespaces":            exerciseNamespaces,
}

// bench is a cluster with clients spread over its nodes.
type bench struct {
	*testing.T
	nodes   []*socketio.Server
	urls    []string
	clients []*player
}

// player is a client, and the server's side of it.
type player struct {
	*socketiotest.Client
	socket *socketio.Socket
	node   *socketio.Server
}

func startBench(t *testing.T, cluster Cluster, nodes int) *bench {
	b := &bench{T: t}
	for _, f := range cluster(t, nodes) {
		io := socketio.NewServer(socketio.Options{
			Options: engineio.Options{Logger: slog.New(slog.DiscardHandler)},
			Adapter: f,
		})
		b.nodes = append(b.nodes, io)
		b.urls = append(b.urls, socketiotest.Start(t, io))
	}
	b.await("the nodes know each other", func() bool {
		for _, n := range b.nodes {
			if count, err := n.Adapter().ServerCount(t.Context()); err != nil || count != nodes {
				return false
			}
		}
		return true
	})
	return b
}

// join connects a client to the next node in turn and puts its socket into rooms.
func (b *bench) join(rooms ...string) *player {
	b.Helper()
	i := len(b.clients) % len(b.nodes)
	c := socketiotest.Dial(b, b.urls[i], socketiotest.Options{})
	p := &player{Client: c, node: b.nodes[i]}
	p.socket = p.node.Socket(c.Connect("/", ""))
	b.ok(p.socket.Join(rooms...))
	b.clients = append(b.clients, p)
	for _, n := range b.nodes {
		if n != p.node {
			b.reach(n, p, append(rooms, p.socket.ID()))
		}
	}
	return p
}

// reach waits until broadcasts of a node to each of rooms arrive at p: until then the adapter may still be
// subscribing. Probes that come late are skipped by expect.
func (b *bench) reach(n *socketio.Server, p *player, rooms []string) {
	b.Helper()
	for _, room := range rooms {
		token := fmt.Sprint("probe-", probes.Add(1))
		got := make(chan struct{})
		go func() {
			defer close(got)
			for !strings.Contains(p.Next(), token) {
			}
		}()
		for done := false; !done; {
			b.ok(n.To(room).Emit("probe", token))
			select {
			case <-got:
				done = true
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

var probes atomic.Int64

// expect checks the next packet that is no probe.
func (p *player) expect(b *bench, packet string) {
	b.Helper()
	for {
		got := p.Next()
		if strings.HasPrefix(got, `42["probe"`) {
			continue
		}
		if got != "4"+packet {
			b.Fatalf("got %q, want %q", got, "4"+packet)
		}
		return
	}
}

// settle makes sure that p got nothing but what the test has seen: a last event from every node comes next.
func (b *bench) settle(players ...*player) {
	b.Helper()
	for _, p := range players {
		for i, n := range b.nodes {
			b.ok(n.To(p.socket.ID()).Emit("settle", i))
			p.expect(b, fmt.Sprintf(`2["settle",%d]`, i))
		}
	}
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) await(what string, f func() bool) {
	b.Helper()
	deadline := time.Now().Add(socketiotest.Wait)
	for !f() {
		if time.Now().After(deadline) {
			b.Fatalf("%s: not in time", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

func ids(players ...*player) []string {
	var list []string
	for _, p := range players {
		list = append(list, p.socket.ID())
	}
	return sorted(list)
}
