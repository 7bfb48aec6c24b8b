package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"xabar/bench/soak/check"
	"xabar/chat"
	"xabar/gateway/auth"
)

// user is one person with devices.
type user struct {
	name    string
	index   int
	devices []*device

	mu    sync.Mutex // guards id
	id    chat.ID
	known chan struct{} // closed when id is
}

func (u *user) learn(id chat.ID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.id == (chat.ID{}) {
		u.id = id
		for _, d := range u.devices {
			d.record.User = id
		}
		close(u.known)
	}
}

// device is one client of a user: it connects, talks, loses its connection, and comes back,
// with the record of what it holds.
type device struct {
	s       *soak
	user    *user
	name    string
	auth    []byte
	polling bool
	sync    bool // it keeps its own positions; else the server catches it up
	home    int  // the node that it prefers
	way     int
	rng     *rand.Rand // of run's goroutine
	record  *check.Record
	// patience is how long it waits for any answer before it takes its connection for dead.
	patience time.Duration
	tardy    atomic.Bool // it acknowledges later than the server waits

	// of run's goroutine
	at      int // the node that it tries
	pending []*outgoing
	made    int // messages

	mu    sync.Mutex // guards the fields below
	conn  *connection
	ready bool // connected and caught up
	idle  bool // nothing of it waits for an answer
	away  bool // it was told to stay away
	nudge chan struct{}
}

// newUsers makes the users: every fifth has one device that the server catches up, the
// others have one to three that sync. Some devices poll.
func (s *soak) newUsers() error {
	minter := auth.NewMinter([]byte(secret), nil)
	for i := range s.opts.users {
		u := &user{name: fmt.Sprint("user", i), index: i, known: make(chan struct{})}
		token, _, err := minter.Mint(chat.UserRef(u.name), u.name, 24*time.Hour)
		if err != nil {
			return err
		}
		simple := i%5 == 0
		n := 1 + i%3
		if simple {
			n = 1
		}
		for j := range n {
			d := &device{
				s: s, user: u, name: fmt.Sprintf("%s/%d", u.name, j), sync: !simple,
				polling: simple && i%10 == 0 || !simple && j == 1 && i%2 == 1,
				home:    (i + j) % len(s.cluster.nodes), way: (i/3 + j) % waysToNode,
				rng: s.random(uint64(1000 + i*8 + j)), nudge: make(chan struct{}, 1),
			}
			d.at = d.home
			d.patience = 3*time.Second + time.Duration(d.rng.Int64N(int64(5*time.Second)))
			d.record = check.NewRecord(d.name, chat.ID{}, &s.faults)
			if d.auth, err = json.Marshal(obj{"token": token, "sync": d.sync}); err != nil {
				return err
			}
			u.devices = append(u.devices, d)
			s.devices = append(s.devices, d)
		}
		s.users = append(s.users, u)
	}
	return nil
}

// run connects and talks until ctx ends.
func (d *device) run(ctx context.Context) {
	for ctx.Err() == nil {
		if d.isAway() {
			d.waitNudge(ctx, time.Minute)
			continue
		}
		c, err := d.connect(ctx)
		if err != nil {
			d.s.stats.failed.Add(1)
			d.elsewhere(ctx)
			continue
		}
		d.s.stats.connects.Add(1)
		began := time.Now()
		goodbye := d.talk(ctx, c)
		d.set(nil, false)
		if goodbye {
			c.sayGoodbye()
		}
		c.close()
		d.at = d.home
		if time.Since(began) < time.Second && !goodbye { // as a node does that can't open sessions now
			d.elsewhere(ctx)
		}
	}
}

// elsewhere has the device wait a moment, and try the next node.
func (d *device) elsewhere(ctx context.Context) {
	d.at = (d.at + 1) % len(d.s.cluster.nodes)
	pause(ctx, 100*time.Millisecond+time.Duration(d.rng.Int64N(int64(400*time.Millisecond))))
}

// connect dials and catches up.
func (d *device) connect(ctx context.Context) (*connection, error) {
	c, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	d.set(c, false)
	err = c.awaitSession()
	if err == nil && d.sync {
		err = c.catchUp(ctx)
	}
	if err != nil {
		d.set(nil, false)
		c.close()
		return nil, err
	}
	d.set(c, true)
	return c, nil
}

// awaitSession waits until the user's id is known, which the first event tells.
func (c *connection) awaitSession() error {
	timer := time.NewTimer(c.d.patience)
	defer timer.Stop()
	select {
	case <-c.d.user.known:
		return nil
	case <-c.ended:
	case <-timer.C:
	}
	return errNoAnswer
}

func (d *device) set(c *connection, ready bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn, d.ready, d.idle = c, ready, false
}

// connection is the present one, nil if there is none, and whether it is caught up.
func (d *device) connection() (c *connection, ready bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.conn, d.ready
}

// resting says that the device is caught up and owes nothing.
func (d *device) resting() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ready && d.idle
}

func (d *device) setIdle(idle bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = idle
}

func (d *device) isAway() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.away
}

// cut ends the connection: the device comes back by itself, unless it was told to stay
// away.
func (d *device) cut() {
	if c, _ := d.connection(); c != nil {
		c.hearAgain()
		c.client.Cut()
	}
	d.poke()
}

func (d *device) stayAway(away bool) {
	d.mu.Lock()
	d.away = away
	d.mu.Unlock()
	d.poke()
}

func (d *device) poke() {
	select {
	case d.nudge <- struct{}{}:
	default:
	}
}

// waitNudge waits for d at most, or until something about the device has changed.
func (d *device) waitNudge(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-d.nudge:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// talk does what users do until the connection is given up, and says whether that should
// be said to the server: most who leave do, some vanish.
func (d *device) talk(ctx context.Context, c *connection) (goodbye bool) {
	for ctx.Err() == nil && !d.isAway() {
		if len(d.pending) > 0 {
			d.setIdle(false)
			if d.sendPending(ctx, c) != nil {
				return false
			}
		}
		if !d.s.talking.Load() {
			d.setIdle(len(d.pending) == 0)
			if len(d.pending) == 0 && d.at != d.home {
				return true // home again: calm moments have everybody in the same place
			}
		}
		wait := time.NewTimer(time.Duration(d.rng.ExpFloat64() * float64(d.s.every)))
		select {
		case <-c.ended:
			wait.Stop()
			return false
		case <-ctx.Done():
			wait.Stop()
			return true
		case <-d.nudge:
		case <-wait.C:
			if !d.s.talking.Load() || c.isDeaf() {
				continue
			}
			if err := d.act(ctx, c); err != nil {
				return errors.Is(err, errReload)
			}
		}
		wait.Stop()
	}
	return true
}
