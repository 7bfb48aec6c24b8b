package loadtest

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"
)

// Restarts of nodes under load (Options.Restarts): a connection that ends is opened again, after
// pauses like those of a page. The client calls sync, which brings what came meanwhile, and sends
// again what got no answer, under the same ids. So all checks hold over the interruption, and
// latencies, which count from the moment at which a message was due, tell what users felt of it.

// The pauses of the page's client library: half to one and a half times the first one, doubled after
// each failure.
const (
	firstPause   = 300 * time.Millisecond
	longestPause = 5 * time.Second
)

// interrupted is called when the connection has ended by itself. It must not wait.
func (a *actor) interrupted() {
	a.mu.Lock()
	if a.returning { // whoever brings it back notices
		a.mu.Unlock()
		return
	}
	a.returning = true
	a.lives++
	life := a.lives
	a.mu.Unlock()
	for _, s := range a.streams() {
		s.hold(life)
	}
	a.run.comeback(func() { a.comeBack(life) })
}

// comeback runs f on a goroutine for which the run's end waits, unless that has come.
func (r *run) comeback(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over.Load() {
		return
	}
	r.interruptions++
	r.comebacks.Go(f)
}

// comeBack returns when the user is connected again, or the run is over.
func (a *actor) comeBack(life int) {
	leaving, start, pause := a.run.leaving, time.Now(), firstPause
	for {
		if !sleepUntil(leaving, time.Now().Add(pause/2+rand.N(pause))) {
			return
		}
		err := a.tryAgain()
		switch {
		case leaving.Err() != nil:
			return
		case err == nil:
			a.readAgain()
			for _, s := range a.streams() {
				s.resume(life)
			}
			return
		case time.Since(start) > answerTimeout:
			a.run.faults.add(faultBroken, "%s does not get back: %v", a.name(), err)
			return
		}
		pause = min(2*pause, longestPause)
	}
}

func (a *actor) tryAgain() error {
	ctx, cancel := context.WithTimeout(a.run.leaving, answerTimeout)
	defer cancel()
	err := a.connect(ctx)
	a.mu.Lock()
	if err == nil && a.client == nil {
		err = errNotConnected
	}
	a.returning = err != nil
	a.mu.Unlock()
	if err != nil {
		a.cut()
		a.mu.Lock()
		a.early = nil // it belongs to what has failed
		a.mu.Unlock()
	}
	return err
}

// readAgain says once more how far this user has read: what it said before may have been lost.
func (a *actor) readAgain() {
	d := a.run.desc.Read
	a.mu.Lock()
	read := map[string]int64{}
	for _, b := range a.inbox {
		if b.read > 0 {
			read[b.room.id] = b.read
		}
	}
	a.mu.Unlock()
	for id, seq := range read {
		_ = a.emit(d.Event, d.fill("conversation", id, "seq", strconv.FormatInt(seq, 10)), nil)
	}
}

// streams are those in which this user sends.
func (a *actor) streams() (own []*stream) {
	a.mu.Lock()
	rooms := a.rooms
	a.mu.Unlock()
	for _, room := range rooms {
		for _, s := range room.streams {
			if s.sender == a {
				own = append(own, s)
			}
		}
	}
	return own
}
