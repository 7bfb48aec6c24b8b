package rooms

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Times of a link.
const (
	pingInterval = 2 * time.Second
	pongPatience = 4500 * time.Millisecond // without any frame the connection is dead
	backoffMin   = 50 * time.Millisecond
	backoffMax   = 2 * time.Second
	// clockMargin is how much earlier than the last sign of life an outage is said to have
	// begun: clocks of nodes differ, and a message is older than its publication.
	clockMargin = 5 * time.Second
)

// chunk is how many channels one command names.
const chunk = 512

var (
	errSilent  = errors.New("rooms: Redis has stopped answering")
	errMoved   = errors.New("rooms: a slot has moved")
	errRefused = errors.New("rooms: Redis refused a subscription")
)

// link keeps one pub/sub connection alive and its channels subscribed.
type link struct {
	sub     *subscriber
	log     *slog.Logger
	options redis.Options
	addr    func(ctx context.Context) (string, error)
	slots   func(channel string) int // of a cluster's sharded channels, else nil
	// recovered is called when all channels are heard again after an outage, on the link's
	// goroutine.
	recovered func(since time.Time)
	failed    func(error) // a connection has ended

	wake chan struct{} // holds one: there is something to look at

	// guarded by sub.mu
	pending     []*subscription
	leaving     [2][]*subscription // nobody wants them: since the last tick, and since the one before
	connected   bool
	outstanding int       // commands that are not confirmed, of all subscriptions
	synced      bool      // everything has been heard on this connection
	missing     bool      // something may have been missed since lost
	lost        time.Time // last sign of life of the last connection on which everything was heard

	alive    atomic.Int64 // when anything came last, in Unix nanoseconds
	conn     atomic.Pointer[pubsubConn]
	connects atomic.Int64
}

func newLink(sub *subscriber, log *slog.Logger, options redis.Options, addr func(context.Context) (string, error)) *link {
	return &link{
		sub: sub, log: log, options: options, addr: addr, wake: make(chan struct{}, 1),
		recovered: func(time.Time) {}, failed: func(error) {}, lost: time.Now(),
	}
}

// enqueue has the link look at a subscription. The caller holds sub.mu.
func (l *link) enqueue(sub *subscription) {
	l.pending = append(l.pending, sub)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// reset ends the connection; the link makes another.
func (l *link) reset() {
	if c := l.conn.Load(); c != nil {
		c.close()
	}
}

// up says that there is a connection on which everything is heard.
func (l *link) up() bool {
	l.sub.mu.RLock()
	defer l.sub.mu.RUnlock()
	return l.connected && l.synced
}

// run connects again and again until ctx ends, and returns when its goroutines have ended.
func (l *link) run(ctx context.Context) {
	wait := backoffMin
	for ctx.Err() == nil {
		worked, err := l.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if worked {
			wait = backoffMin
		}
		l.log.Warn("the pub/sub connection to Redis is down", "error", err)
		l.failed(err)
		timer := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		wait = min(2*wait, backoffMax)
	}
}

// session is one connection's life. worked says that everything was heard on it.
func (l *link) session(ctx context.Context) (worked bool, err error) {
	defer func() { worked = l.end() }()
	dialing, cancel := context.WithTimeout(ctx, 2*l.options.DialTimeout)
	defer cancel()
	addr, err := l.addr(dialing)
	if err != nil {
		return false, err
	}
	c, err := dialPubsub(dialing, l.options, addr)
	if err != nil {
		return false, err
	}
	l.connects.Add(1)
	l.alive.Store(time.Now().UnixNano())
	c.alive = &l.alive
	l.conn.Store(c)
	defer l.conn.Store(nil)
	stop := context.AfterFunc(ctx, c.close)
	defer stop()
	l.begin()
	writing := make(chan error, 1)
	done := make(chan struct{})
	go func() { writing <- l.write(c, done) }()
	reading := l.read(c)
	close(done)
	c.close()
	if err = <-writing; err == nil {
		err = reading
	}
	return false, err
}

// begin marks everything as not subscribed on the new connection, to be looked at.
func (l *link) begin() {
	l.sub.mu.Lock()
	defer l.sub.mu.Unlock()
	l.pending, l.leaving = nil, [2][]*subscription{}
	for _, subs := range l.sub.byKey {
		for _, sub := range subs {
			if sub.link == l {
				sub.restart()
				l.enqueue(sub)
			}
		}
	}
	l.connected, l.outstanding, l.synced = true, 0, false
}

// end tells who waits that it is in vain, and says whether everything was heard.
func (l *link) end() bool {
	l.sub.mu.Lock()
	defer l.sub.mu.Unlock()
	worked := l.connected && l.synced
	if worked {
		l.lost = time.Unix(0, l.alive.Load())
	}
	l.connected, l.missing = false, true
	for _, subs := range l.sub.byKey {
		for _, sub := range subs {
			if sub.link == l {
				sub.release(ErrUnavailable)
			}
		}
	}
	return worked
}

// checkSynced notices that everything is heard now, and says so once for each connection.
func (l *link) checkSynced() {
	l.sub.mu.Lock()
	if !l.connected || l.synced || l.outstanding > 0 || len(l.pending) > 0 {
		l.sub.mu.Unlock()
		return
	}
	l.synced = true
	missing, since := l.missing, l.lost.Add(-clockMargin)
	l.missing = false
	l.sub.mu.Unlock()
	l.log.Info("hearing all channels on Redis", "connection", l.connects.Load(), "missing", missing)
	if missing {
		l.recovered(since)
	}
}

// write sends what is pending, and a ping now and then, until done is closed. It closes
// the connection when it fails or nothing comes back.
func (l *link) write(c *pubsubConn, done <-chan struct{}) error {
	defer c.close()
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	for {
		if err := l.flush(c); err != nil {
			return err
		}
		select {
		case <-done:
			return nil
		case <-l.wake:
		case now := <-ticker.C:
			if now.UnixNano()-l.alive.Load() > int64(pongPatience) {
				return errSilent
			}
			l.lingered()
			if err := c.command("PING"); err != nil {
				return err
			}
		}
	}
}

// flush looks at what is pending and sends the commands that come of it.
func (l *link) flush(c *pubsubConn) error {
	for {
		on, off, more := l.take()
		if len(on)+len(off) > 0 {
			err := c.write(func(out *bufio.Writer) {
				l.commands(out, subscribeCommands, on)
				l.commands(out, unsubscribeCommands, off)
			})
			if err != nil {
				return err
			}
		}
		if !more {
			l.checkSynced()
			return nil
		}
	}
}

// take decides about up to a chunk of what is pending.
func (l *link) take() (on, off []*subscription, more bool) {
	l.sub.mu.Lock()
	defer l.sub.mu.Unlock()
	n := min(len(l.pending), chunk)
	for _, sub := range l.pending[:n] {
		over := sub.over
		sub.queued, sub.over = false, false
		switch wanted := sub.sink.wants(sub.channel); {
		case wanted && !sub.on:
			on = append(on, sub)
		case !wanted && sub.on && (over || !l.sub.linger):
			off = append(off, sub)
		default:
			if !wanted && sub.on && !sub.leaving {
				sub.leaving = true
				l.leaving[0] = append(l.leaving[0], sub)
			}
			if sub.outstanding == 0 {
				l.sub.settled(sub)
			}
			continue
		}
		sub.on = !sub.on
		sub.outstanding++
		l.outstanding++
	}
	if l.pending = l.pending[n:]; len(l.pending) == 0 {
		l.pending = nil
	}
	return on, off, len(l.pending) > 0
}

// lingered has the link look again at what nobody has wanted for a tick or two. Called at each tick.
func (l *link) lingered() {
	l.sub.mu.Lock()
	defer l.sub.mu.Unlock()
	for _, sub := range l.leaving[1] {
		sub.leaving, sub.over = false, true
		if !sub.queued {
			sub.queued = true
			l.enqueue(sub)
		}
	}
	l.leaving = [2][]*subscription{nil, l.leaving[0]}
}

// commands writes one command for each verb, or for each slot of a cluster.
func (l *link) commands(out *bufio.Writer, names [verbs]string, subs []*subscription) {
	type group struct {
		verb verb
		slot int
	}
	groups := map[group][]string{}
	for _, sub := range subs {
		g := group{verb: sub.verb}
		if l.slots != nil {
			g.slot = l.slots(sub.channel)
		}
		groups[g] = append(groups[g], sub.channel)
	}
	for g, channels := range groups {
		appendCommand(out, names[g.verb], channels)
	}
}

// read hands out what comes until the connection ends.
func (l *link) read(c *pubsubConn) error {
	var f frame
	for {
		if err := c.read(&f); err != nil {
			return err
		}
		switch f.kind {
		case frameMessage:
			if sub := l.sub.find(&f); sub != nil {
				sub.sink.receive(sub.channel, f.payload)
			}
		case frameSubscribed, frameUnsubscribed:
			if err := l.confirm(&f); err != nil {
				return err
			}
		case frameError:
			return refusal(f.payload)
		}
	}
}

// confirm counts Redis's answer to a command.
func (l *link) confirm(f *frame) error {
	l.sub.mu.Lock()
	sub := l.sub.byKey[f.verb][string(f.name)]
	if sub == nil || sub.link != l || sub.outstanding == 0 {
		l.sub.mu.Unlock()
		// Nobody asked: the slot was given to another server of the cluster.
		return errMoved
	}
	sub.outstanding--
	l.outstanding--
	if sub.outstanding == 0 {
		l.sub.settled(sub)
	}
	last := l.outstanding == 0 && !l.synced
	l.sub.mu.Unlock()
	if last {
		l.checkSynced()
	}
	return nil
}

// refusal makes an error of Redis's, whose text may name channels.
func refusal(text []byte) error {
	code, _, _ := bytes.Cut(text, []byte(" "))
	if string(code) == "MOVED" {
		return errMoved
	}
	return fmt.Errorf("%w: %s", errRefused, code)
}
