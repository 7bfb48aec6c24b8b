package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"xabar/internal/testkit"
	"xabar/internal/testkit/faultproxy"
	"xabar/internal/testkit/redistest"
)

// broken is a cluster under load: everybody talks to somebody on another node, half of
// them in a group with a third member on the third one, half with the second device of the
// recipient there.
type broken struct {
	*cluster
	t       *testing.T
	proxies []*faultproxy.Proxy // between each node and Redis
	talks   []*talk
	movers  *movers // may be nil
	sent    atomic.Int64
}

// presenceTTL is that of the clusters that are broken.
const presenceTTL = 10 * time.Second

func newBroken(t *testing.T) *broken {
	t.Helper()
	redis := redistest.Start(t)
	b := &broken{t: t}
	var urls []string
	for range 3 {
		proxy := faultproxy.Start(t, redis.Addr)
		b.proxies = append(b.proxies, proxy)
		urls = append(urls, "redis://"+proxy.Addr)
	}
	b.start(redis, urls)
	return b
}

// start starts the nodes and everybody who uses them.
func (b *broken) start(redis *redistest.Server, urls []string, args ...string) {
	b.t.Helper()
	b.cluster = startCluster(b.t, redis, urls, append(args, "--presence-ttl", presenceTTL.String()))
	b.talk()
	b.movers = b.newMovers()
}

func (b *broken) talk() {
	for i := range 6 {
		on := func(n int) *world { return b.nodes[(i+n)%3] }
		k := &talk{sender: on(0).page(fmt.Sprint("s", i), retrying), recipient: on(1).page(fmt.Sprint("r", i))}
		if i%2 == 0 {
			k.laptop = on(2).page(fmt.Sprint("r", i))
			k.conversation = k.sender.open(k.recipient).ID
		} else {
			k.simple = on(2).page(fmt.Sprint("t", i), simple)
			k.conversation = k.sender.must("conversation:open", obj{
				"title": fmt.Sprint("group ", i), "memberIds": []string{k.recipient.user.User.ID, k.simple.user.User.ID},
			}).Conversation.ID
		}
		b.talks = append(b.talks, k)
	}
}

// during runs the load while something is broken and mended again, and then checks
// everything: each acknowledged message is stored once, comes to every device once
// and in order, positions reach the end and are the same on all devices, and everybody
// knows who is there.
func (b *broken) during(fault func()) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 3*time.Minute)
	defer cancel()
	stop := make(chan struct{})
	var talking sync.WaitGroup
	for _, k := range b.talks {
		talking.Go(func() { k.keepTalking(b.t, ctx, stop, &b.sent) })
	}
	b.goesOn()
	var moving sync.WaitGroup
	if b.movers != nil {
		moving.Go(func() { b.movers.move(b.t, ctx) })
	}
	fault()
	moving.Wait()
	if b.movers != nil {
		b.movers.check(b)
	}
	b.goesOn()
	for _, node := range b.nodes {
		node.ready("ok")
	}
	b.goesOn()
	close(stop)
	talking.Wait()
	if b.t.Failed() {
		return
	}
	for _, k := range b.talks {
		last := k.acknowledged[len(k.acknowledged)-1].Seq
		// Before anybody asks: what a sync has brought need not come again.
		for _, p := range k.devices() {
			b.hasAll(p, k, last)
		}
		k.check(b.t)
		k.recipient.must("message:delivered", obj{"conversationId": k.conversation, "seq": last})
		if k.simple != nil {
			eventually(b.t, "everything is delivered to the simple page", func() bool {
				return k.simple.view(k.conversation).LastDeliveredSeq == last
			})
		}
		k.checkPositions(b.t, last)
	}
}

// devices are those that hear the sender.
func (k *talk) devices() []*page {
	return slices.DeleteFunc([]*page{k.recipient, k.laptop, k.simple}, func(p *page) bool { return p == nil })
}

// checkPositions has everybody read everything, and compares what each device is told with
// what it hears.
func (k *talk) checkPositions(t *testing.T, last int64) {
	t.Helper()
	readers := k.devices()
	for _, p := range readers {
		if p != k.laptop {
			p.must("message:read", obj{"conversationId": k.conversation, "seq": last})
		}
	}
	for _, p := range readers {
		eventually(t, p.user.User.Name+" has read everything on every device", func() bool {
			view := p.view(k.conversation)
			return view.LastReadSeq == last && view.LastDeliveredSeq == last && view.Unread == 0
		})
	}
	eventually(t, "the sender knows that everything was read", func() bool {
		view := k.sender.view(k.conversation)
		return view.OthersReadSeq != nil && *view.OthersReadSeq == last && *view.OthersDeliveredSeq == last
	})
	for _, p := range append(readers, k.sender) {
		if p != k.recipient {
			p.hearsPosition("message:read", k.recipient, last)
		}
	}
}

// goesOn waits until sends are acknowledged.
func (b *broken) goesOn() {
	b.t.Helper()
	before := b.sent.Load()
	eventually(b.t, "sends are acknowledged", func() bool { return b.sent.Load() > before+60 })
}

// hasAll checks what a page heard without asking. A page that stayed connected heard
// every message, rising. A simple page that came back was caught up, and may have
// heard again what it could not acknowledge; one that syncs asks in k.check.
func (b *broken) hasAll(p *page, k *talk, last int64) {
	b.t.Helper()
	stayed := len(p.Events("disconnect")) == 0
	if p != k.simple && !stayed {
		return
	}
	missing := func() []int64 {
		held := map[int64]bool{}
		for _, seq := range p.heardSeqs(k.conversation) {
			held[seq] = true
		}
		return slices.DeleteFunc(upTo(last), func(seq int64) bool { return held[seq] })
	}
	defer func() {
		if left := missing(); len(left) > 0 {
			b.t.Errorf("%s of %d lacks %v", p.user.User.Name, last, left)
		}
	}()
	eventually(b.t, p.user.User.Name+" has heard everything", func() bool { return len(missing()) == 0 })
	if seqs := p.heardSeqs(k.conversation); stayed && !slices.Equal(seqs, upTo(last)) {
		b.t.Errorf("%s heard %v", p.user.User.Name, seqs)
	}
}

func TestFaultsLoseNothing(t *testing.T) {
	t.Parallel()
	wait := func(d time.Duration) { <-time.After(d) } // how long a fault lasts is the case
	for name, fault := range map[string]func(b *broken){
		"redis restarts": func(b *broken) { b.redis.Stop(); b.redis.Restart() },
		"redis is gone for a while": func(b *broken) {
			b.redis.Kill()
			b.goesOn()
			b.nodes[0].ready("degraded")
			b.redis.Restart()
		},
		"pub/sub connections are killed": func(b *broken) {
			for range 3 {
				b.redis.Do("CLIENT", "KILL", "TYPE", "pubsub")
				b.goesOn()
			}
		},
		"redis hangs": func(b *broken) {
			b.redis.Pause()
			b.goesOn()
			b.nodes[1].ready("degraded")
			b.redis.Resume()
		},
		"redis is slow": func(b *broken) {
			for _, proxy := range b.proxies {
				proxy.Slow(150 * time.Millisecond)
			}
			b.goesOn()
			for _, proxy := range b.proxies {
				proxy.Heal()
			}
		},
		"a node is cut off from redis": func(b *broken) {
			b.proxies[1].Cut()
			b.nodes[1].ready("degraded")
			b.goesOn()
			b.proxies[1].Heal()
		},
		"a node's way to redis swallows everything": func(b *broken) {
			b.proxies[2].Blackhole()
			b.nodes[2].ready("degraded")
			b.goesOn()
			b.proxies[2].Heal()
		},
		"a node is killed": func(b *broken) {
			b.nodes[1].gateway.Kill()
			b.goesOn()
			b.nodes[1].gateway.Restart()
		},
		"a node is paused for a minute": func(b *broken) {
			b.nodes[1].gateway.Signal(syscall.SIGSTOP)
			wait(time.Minute)
			b.nodes[1].gateway.Signal(syscall.SIGCONT)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroken(t)
			b.during(func() { fault(b) })
		})
	}
}

func TestASentinelFailoverLosesNothing(t *testing.T) {
	t.Parallel()
	sentinel := redistest.StartSentinel(t)
	b := &broken{t: t}
	b.start(sentinel.Master, slices.Repeat([]string{sentinel.URL}, 3))
	b.during(func() {
		sentinel.Master.Kill()
		b.goesOn()
	})
}

func TestNodesShareARedisCluster(t *testing.T) {
	t.Parallel()
	redis := redistest.StartCluster(t)
	for name, args := range map[string][]string{"classic": nil, "sharded": {"--redis-sharded"}} {
		t.Run(name, func(t *testing.T) {
			b := &broken{t: t}
			b.start(redis.Masters[0], slices.Repeat([]string{redis.URL}, 3), args...)
			b.during(func() {})
		})
	}
}

// A SIGTERM under load: nothing is lost, clients go on elsewhere (here: on the same
// address, started again), and the process ends in time.
func TestADrainLosesNothing(t *testing.T) {
	t.Parallel()
	b := newBroken(t)
	b.during(func() {
		for range 3 {
			started := time.Now()
			b.nodes[0].gateway.Stop()
			if took := time.Since(started); took > 30*time.Second {
				b.t.Errorf("draining took %v", took)
			}
			b.nodes[0].gateway.Restart()
			b.goesOn()
		}
	})
	for _, k := range b.talks {
		if on := k.sender.Events("session:closing"); len(on) > 0 {
			type closing struct {
				Code  string
				Retry bool
			}
			if said := testkit.Decode[closing](on[0]); said.Code != "draining" || !said.Retry {
				t.Errorf("a client was told %+v", said)
			}
			return
		}
	}
	t.Error("no client was told that its node drains")
}
