package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"xabar/bench/soak/check"
	"xabar/internal/testkit/faultproxy"
)

// fault is a kind of fault. prepare draws what is random, so that a seed gives one
// schedule, and returns what it is going to do: how it reads, and the doing, which returns
// when all is mended.
type fault struct {
	name    string
	clients bool // it is one of clients and their connections, and may go on beside another
	prepare func(s *soak, rng *rand.Rand) (detail string, do func(context.Context) error)
}

// between draws a time.
func (s *soak) between(rng *rand.Rand, low, high time.Duration) time.Duration {
	if s.opts.short { // the time of a test is dear
		high = max(low, high/3)
	}
	return (low + time.Duration(rng.Int64N(int64(high-low)+1))).Round(10 * time.Millisecond)
}

// mortal draws a node that may be ended. The first one never is: growth is measured on it.
func (s *soak) mortal(rng *rand.Rand) *node {
	nodes := s.cluster.nodes
	return nodes[1+rng.IntN(len(nodes)-1)]
}

func (s *soak) anyNode(rng *rand.Rand) *node {
	return s.cluster.nodes[rng.IntN(len(s.cluster.nodes))]
}

// faults are all kinds.
func faults() []fault {
	return append(processFaults(), connectionFaults()...)
}

func processFaults() []fault {
	return []fault{
		{"kill -9", false, func(s *soak, rng *rand.Rand) (string, func(context.Context) error) {
			n, away := s.mortal(rng), s.between(rng, 100*time.Millisecond, 6*time.Second)
			return fmt.Sprintf("%s, away for %v", n.name, away), func(ctx context.Context) error {
				if err := n.kill(); err != nil {
					return err
				}
				pause(ctx, away)
				return n.restart(ctx)
			}
		}},
		{"pause", false, func(s *soak, rng *rand.Rand) (string, func(context.Context) error) {
			n, d := s.anyNode(rng), s.between(rng, time.Second, 18*time.Second)
			return fmt.Sprintf("%s for %v", n.name, d), func(ctx context.Context) error {
				if err := n.signal(syscall.SIGSTOP); err != nil {
					return err
				}
				pause(ctx, d)
				return n.signal(syscall.SIGCONT)
			}
		}},
		{"drain", false, func(s *soak, rng *rand.Rand) (string, func(context.Context) error) {
			n := s.mortal(rng)
			return n.name, func(ctx context.Context) error {
				if err := n.drain(); err != nil {
					s.faults.Add(check.Crashed, "%v", err)
				}
				return n.restart(ctx)
			}
		}},
		{"Redis restart", false, func(s *soak, rng *rand.Rand) (string, func(context.Context) error) {
			away := s.between(rng, 0, 6*time.Second)
			return fmt.Sprintf("empty, away for %v", away), func(ctx context.Context) error {
				if err := s.cluster.redis.kill(); err != nil {
					return err
				}
				pause(ctx, away)
				return s.cluster.redis.startUntil(ctx, s.cluster.redisReady)
			}
		}},
		{"Redis pause", false, func(s *soak, rng *rand.Rand) (string, func(context.Context) error) {
			d := s.between(rng, 500*time.Millisecond, 8*time.Second)
			return fmt.Sprint("for ", d), func(ctx context.Context) error {
				if err := s.cluster.redis.signal(syscall.SIGSTOP); err != nil {
					return err
				}
				pause(ctx, d)
				return s.cluster.redis.signal(syscall.SIGCONT)
			}
		}},
		postgresFault("PostgreSQL restart immediate", true),
		postgresFault("PostgreSQL restart fast", false),
	}
}

func postgresFault(name string, immediate bool) fault {
	return fault{name, false, func(s *soak, rng *rand.Rand) (string, func(context.Context) error) {
		away := s.between(rng, 0, 4*time.Second)
		return fmt.Sprint("away for ", away), func(ctx context.Context) error {
			if err := s.cluster.postgres.Stop(immediate); err != nil {
				return err
			}
			pause(ctx, away)
			return s.cluster.postgres.Start()
		}
	}}
}

func connectionFaults() []fault {
	way := func(s *soak, rng *rand.Rand) (*node, *faultproxy.Proxy) {
		n := s.anyNode(rng)
		return n, n.ways[rng.IntN(len(n.ways))]
	}
	return []fault{
		{"connections cut", true, func(s *soak, rng *rand.Rand) (string, func(context.Context) error) {
			n, p := way(s, rng)
			return during(s, rng, fmt.Sprintf("half of %s's clients", n.name), p, p.Cut, 0, 3*time.Second)
		}},
		{"connections half-open", true, func(s *soak, rng *rand.Rand) (string, func(context.Context) error) {
			n, p := way(s, rng)
			return during(s, rng, fmt.Sprintf("half of %s's clients", n.name), p, p.Blackhole, 2*time.Second, 14*time.Second)
		}},
		{"slow network", true, func(s *soak, rng *rand.Rand) (string, func(context.Context) error) {
			n, p := way(s, rng)
			delay := s.between(rng, 50*time.Millisecond, 600*time.Millisecond)
			return during(s, rng, fmt.Sprintf("%v for half of %s's clients", delay, n.name), p, func() { p.Slow(delay) }, 2*time.Second, 8*time.Second)
		}},
		{"node without Redis", false, func(s *soak, rng *rand.Rand) (string, func(context.Context) error) {
			n := s.anyNode(rng)
			begin, how := n.toRedis.Cut, "cut off"
			if rng.IntN(2) == 0 {
				begin, how = n.toRedis.Blackhole, "hears nothing"
			}
			return during(s, rng, n.name+" "+how, n.toRedis, begin, time.Second, 8*time.Second)
		}},
		{"node without PostgreSQL", false, func(s *soak, rng *rand.Rand) (string, func(context.Context) error) {
			n := s.anyNode(rng)
			begin, how := n.toDatabase.Cut, "cut off"
			if rng.IntN(2) == 0 {
				begin, how = n.toDatabase.Blackhole, "hears nothing"
			}
			return during(s, rng, n.name+" "+how, n.toDatabase, begin, time.Second, 6*time.Second)
		}},
		{"clients stop reading", true, deafness},
		{"clients reconnect", true, func(s *soak, rng *rand.Rand) (string, func(context.Context) error) {
			some := s.some(rng, 3)
			return fmt.Sprintf("%d at once", len(some)), func(context.Context) error {
				for _, d := range some {
					d.cut()
				}
				return nil
			}
		}},
		{"acknowledgements lost", true, lostAcks},
		{"acknowledgements late", true, func(s *soak, rng *rand.Rand) (string, func(context.Context) error) {
			some, d := s.some(rng, 3), s.between(rng, 3*time.Second, 8*time.Second)
			return fmt.Sprintf("%d clients for %v", len(some), d), func(ctx context.Context) error {
				for _, d := range some {
					d.tardy.Store(true)
				}
				pause(ctx, d)
				for _, d := range some {
					d.tardy.Store(false)
				}
				return nil
			}
		}},
	}
}

// during breaks a proxy for a while.
func during(s *soak, rng *rand.Rand, what string, p *faultproxy.Proxy, begin func(), low, high time.Duration) (string, func(context.Context) error) {
	d := s.between(rng, low, high)
	return fmt.Sprintf("%s, for %v", what, d), func(ctx context.Context) error {
		begin()
		pause(ctx, d)
		p.Heal()
		return nil
	}
}

// some draws a part of the devices, one at least.
func (s *soak) some(rng *rand.Rand, part int) []*device {
	var list []*device
	for _, i := range rng.Perm(len(s.devices))[:max(1, len(s.devices)/part)] {
		list = append(list, s.devices[i])
	}
	return list
}

// deafness has clients ask for much and read nothing.
func deafness(s *soak, rng *rand.Rand) (string, func(context.Context) error) {
	some, d := s.some(rng, 12), s.between(rng, 3*time.Second, 20*time.Second)
	choice := rand.New(rand.NewPCG(rng.Uint64(), 0)) // others go on drawing meanwhile
	return fmt.Sprintf("%d for %v", len(some), d), func(ctx context.Context) error {
		var deaf []*connection
		for _, d := range some {
			c, ready := d.connection()
			if conversation, ok := s.world.pick(d.user.index, choice); ok && ready {
				c.stopReading()
				c.flood(conversation, 400)
				deaf = append(deaf, c)
				s.stats.slows.Add(1)
			}
		}
		pause(ctx, d)
		for _, c := range deaf {
			c.hearAgain()
		}
		return nil
	}
}

// lostAcks has clients take messages in whose acknowledgements are lost with their
// connection.
func lostAcks(s *soak, rng *rand.Rand) (string, func(context.Context) error) {
	some, d := s.some(rng, 4), s.between(rng, time.Second, 5*time.Second)
	return fmt.Sprintf("%d clients for %v", len(some), d), func(ctx context.Context) error {
		silenced := map[*device]*connection{}
		for _, d := range some {
			if c, _ := d.connection(); c != nil {
				c.mu.Lock()
				c.silent = true
				c.mu.Unlock()
				silenced[d] = c
			}
		}
		pause(ctx, d)
		for _, c := range silenced {
			c.client.Cut()
		}
		return nil
	}
}

// deck deals all kinds of faults in a random order, again and again.
type deck struct {
	rng  *rand.Rand
	all  []fault
	left []fault
}

func (k *deck) deal() fault {
	if len(k.left) == 0 {
		for _, i := range k.rng.Perm(len(k.all)) {
			k.left = append(k.left, k.all[i])
		}
	}
	f := k.left[0]
	k.left = k.left[1:]
	return f
}

// beside deals a fault of clients, if the next one is one.
func (k *deck) beside(f fault) (fault, bool) {
	if len(k.left) == 0 || f.clients || !k.left[0].clients || k.rng.IntN(3) > 0 {
		return fault{}, false
	}
	return k.deal(), true
}

// breakThings deals faults until the time is over, with calm windows between them.
func (s *soak) breakThings(ctx context.Context, until time.Time, k *deck) error {
	for ctx.Err() == nil && time.Now().Before(until) {
		first := k.deal()
		dealt := []fault{first}
		if second, ok := k.beside(first); ok {
			dealt = append(dealt, second)
		}
		var going sync.WaitGroup
		errs := make([]error, len(dealt))
		for i, f := range dealt {
			detail, do := f.prepare(s, k.rng)
			s.say("%s: %s", f.name, detail)
			s.injected[f.name]++
			going.Go(func() { errs[i] = do(ctx) })
		}
		going.Wait()
		for i, err := range errs {
			if err != nil {
				return fmt.Errorf("%s: %w", dealt[i].name, err)
			}
		}
		pause(ctx, s.between(k.rng, 500*time.Millisecond, 7*time.Second))
		s.sayRates("  mended, calm")
		if err := s.lookAtDelivered(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}
