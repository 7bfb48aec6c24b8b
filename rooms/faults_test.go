package rooms_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"xabar/chat"
	"xabar/internal/testkit/faultproxy"
	"xabar/internal/testkit/redistest"
	"xabar/rooms"
)

// pair is a node behind a proxy and one that reaches Redis directly, with a user each, and a
// count of seqs.
type pair struct {
	*testing.T
	proxied, direct *node
	alice, bob      chat.ID // alice's socket is on proxied, bob's on direct
	seq             int64
}

func startPair(t *testing.T, throughProxy, url string, opts rooms.Options) *pair {
	p := &pair{T: t, alice: chat.NewID(), bob: chat.NewID()}
	p.proxied, p.direct = startNode(t, throughProxy, opts), startNode(t, url, opts)
	healthy(t, p.proxied.Redis, p.direct.Redis)
	p.proxied.hold(t, []chat.ID{p.alice}, nil)
	p.direct.hold(t, []chat.ID{p.bob}, nil)
	p.talk()
	return p
}

// send publishes at a node and takes no time for it, whatever Redis does.
func (p *pair) send(from *node) (seq int64, err error) {
	p.Helper()
	p.seq++
	start := time.Now()
	err = from.bus.Publish(context.Background(), direct(p.seq, p.alice, p.bob))
	if took := time.Since(start); took > 100*time.Millisecond {
		p.Errorf("a publication took %v", took)
	}
	return p.seq, err
}

// talk has messages arrive in both directions.
func (p *pair) talk() {
	p.Helper()
	for _, way := range [][2]*node{{p.proxied, p.direct}, {p.direct, p.proxied}} {
		eventually(p, "a message arrives", func() bool {
			seq, err := p.send(way[0])
			if err != nil {
				return false
			}
			deadline := time.Now().Add(500 * time.Millisecond)
			for time.Now().Before(deadline) {
				if list := way[1].seqs(); len(list) > 0 && list[len(list)-1] == seq {
					return true
				}
				time.Sleep(time.Millisecond) // the poll of a condition with a deadline
			}
			return false
		})
	}
}

// degraded waits until the node says so, which is within 10 s.
func degraded(t testing.TB, n *node) { t.Helper(); says(t, n, "redis") }

// deaf waits until the node says that it does not hear the others.
func deaf(t testing.TB, n *node) { t.Helper(); says(t, n, "subscriptions") }

func says(t testing.TB, n *node, reason string) {
	t.Helper()
	start := time.Now()
	eventually(t, "the node says that it is degraded", func() bool { return strings.Contains(strings.Join(n.Health(), ";"), reason) })
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("that took %v", took)
	}
	t.Logf("after %v: %s", time.Since(start).Round(time.Millisecond), strings.Join(n.Health(), "; "))
}

// recoveredSince waits for a recovery that covers everything from start on.
func recoveredSince(t testing.TB, n *node, start time.Time) {
	t.Helper()
	eventually(t, "the recovery is told", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return slices.ContainsFunc(n.recovered, func(since time.Time) bool { return !since.After(start) })
	})
}

func TestRedisStopsAndComesBackEmpty(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := startPair(t, server.URL, server.URL, isolated())
	start := time.Now()
	server.Kill()
	degraded(t, p.proxied)
	degraded(t, p.direct)
	before, sent := len(p.direct.local), 0
	eventually(t, "publications fail", func() bool {
		sent++
		_, err := p.send(p.direct)
		return errors.Is(err, rooms.ErrUnavailable)
	})
	if got := len(p.direct.local) - before; got != sent {
		t.Errorf("%d of %d were delivered here", got, sent)
	}
	server.Restart()
	healthy(t, p.proxied.Redis, p.direct.Redis)
	recoveredSince(t, p.proxied, start)
	recoveredSince(t, p.direct, start)
	p.talk()
}

func TestPubSubConnectionsAreKilled(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, sharded := range map[string]bool{"classic": false, "sharded": true} {
		t.Run(name, func(t *testing.T) {
			opts := isolated()
			opts.Sharded = sharded
			p := startPair(t, server.URL, server.URL, opts)
			for range 3 {
				start := time.Now()
				server.Do("CLIENT", "KILL", "TYPE", "pubsub")
				recoveredSince(t, p.proxied, start)
				recoveredSince(t, p.direct, start)
				p.talk()
			}
			healthy(t, p.proxied.Redis, p.direct.Redis)
		})
	}
}

func TestOneNodeIsCutOff(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, fault := range map[string]func(*faultproxy.Proxy){"cut": (*faultproxy.Proxy).Cut, "black hole": (*faultproxy.Proxy).Blackhole} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := faultproxy.Start(t, server.Addr)
			p := startPair(t, "redis://"+proxy.Addr, server.URL, isolated())
			start := time.Now()
			fault(proxy)
			for range 100 { // nobody knows yet, and nobody waits
				_, _ = p.send(p.proxied)
			}
			deaf(t, p.proxied)
			eventually(t, "publications fail", func() bool {
				_, err := p.send(p.proxied)
				return errors.Is(err, rooms.ErrUnavailable)
			})
			if reasons := p.direct.Health(); len(reasons) > 0 {
				t.Errorf("the other node: %v", reasons)
			}
			proxy.Heal()
			healthy(t, p.proxied.Redis)
			recoveredSince(t, p.proxied, start)
			p.talk()
		})
	}
}

// TestASlowRedisIsNotADeadOne: everything takes its time and arrives.
func TestASlowRedisIsNotADeadOne(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
	p := startPair(t, "redis://"+proxy.Addr, server.URL, isolated())
	proxy.Slow(150 * time.Millisecond)
	before := len(p.direct.seqs())
	const count = 1000
	for range count {
		if _, err := p.send(p.proxied); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all have arrived", func() bool { return len(p.direct.seqs()) == before+count })
	if reasons := p.proxied.Health(); len(reasons) > 0 {
		t.Errorf("a slow Redis: %v", reasons)
	}
}

// TestRedisHangs: connections stay open and nothing answers.
func TestRedisHangs(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := startPair(t, server.URL, server.URL, isolated())
	start := time.Now()
	server.Pause()
	deaf(t, p.proxied)
	deaf(t, p.direct)
	server.Resume()
	healthy(t, p.proxied.Redis, p.direct.Redis)
	recoveredSince(t, p.direct, start)
	p.talk()
}

func TestSentinelFailsOver(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	p := startPair(t, s.URL, s.URL, isolated())
	start := time.Now()
	s.Master.Kill()
	degraded(t, p.proxied)
	s.Replica.Eventually("the replica is the master", func() bool {
		return strings.Contains(s.Replica.Do("ROLE").([]any)[0].(string), "master")
	})
	healthy(t, p.proxied.Redis, p.direct.Redis)
	recoveredSince(t, p.direct, start)
	p.talk()
}

// TestSlotsMove: sharded channels follow their slots to another master.
func TestSlotsMove(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	opts := isolated()
	opts.Sharded = true
	p := startPair(t, c.URL, c.URL, opts)
	var more []chat.ID // some of their channels are in the slots that move
	for range 40 {
		more = append(more, chat.NewID())
	}
	p.proxied.hold(t, more, nil)
	p.direct.hold(t, more, nil)
	start := time.Now()
	c.MoveSlots(0, 1)
	recoveredSince(t, p.proxied, start)
	recoveredSince(t, p.direct, start)
	healthy(t, p.proxied.Redis, p.direct.Redis)
	p.talk()
}

// TestTheQueueIsBounded: more than fits is refused, and what was taken is still delivered here.
func TestTheQueueIsBounded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	n := startNode(t, server.URL, isolated())
	healthy(t, n.Redis)
	server.Pause()
	big := direct(1, chat.NewID(), chat.NewID())
	big.JSON = make([]byte, 64<<10)
	var err error
	count := 0
	for ; err == nil && count < 10_000; count++ {
		err = n.bus.Publish(t.Context(), big)
	}
	if !errors.Is(err, rooms.ErrOverloaded) && !errors.Is(err, rooms.ErrUnavailable) {
		t.Fatalf("after %d: %v", count, err)
	}
	n.mu.Lock()
	delivered := len(n.local)
	n.mu.Unlock()
	if delivered != count || n.Stats().Refused == 0 {
		t.Errorf("%d of %d were delivered here; %+v", delivered, count, n.Stats())
	}
	server.Resume()
	healthy(t, n.Redis)
}

// TestAMasterOfAClusterDies: its replica takes over, and both kinds of channels move there.
func TestAMasterOfAClusterDies(t *testing.T) {
	t.Parallel()
	for name, sharded := range map[string]bool{"classic": false, "sharded": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := redistest.StartCluster(t)
			opts := isolated()
			opts.Sharded = sharded
			// The one through which ordinary pub/sub goes.
			dies := int(c.Masters[0].Do("CLUSTER", "KEYSLOT", "xabar").(int64)) * 3 / 16384
			witness := c.Masters[(dies+1)%3]
			c.AddReplica(c.Masters[dies])
			p := startPair(t, c.URL, c.URL, opts)
			var more []chat.ID // some of their channels are the dying one's
			for range 40 {
				more = append(more, chat.NewID())
			}
			p.proxied.hold(t, more, nil)
			p.direct.hold(t, more, nil)
			start := time.Now()
			c.Masters[dies].Kill()
			for _, state := range []string{"cluster_state:fail", "cluster_state:ok"} {
				witness.Eventually(state, func() bool {
					return strings.Contains(witness.Do("CLUSTER", "INFO").(string), state)
				})
			}
			recoveredSince(t, p.proxied, start)
			recoveredSince(t, p.direct, start)
			healthy(t, p.proxied.Redis, p.direct.Redis)
			p.talk()
		})
	}
}
