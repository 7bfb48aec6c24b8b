package rooms

import (
	"context"
	"errors"
	"sync"
)

// ErrUnavailable: Redis cannot be reached now. What was asked concerns this node alone
// until it can.
var ErrUnavailable = errors.New("rooms: Redis is not available")

// sink is who hears a channel.
type sink interface {
	// receive takes a message, on the goroutine that reads the connection: it must not wait for
	// anything but the sink's own bounded queue. channel is the channel subscribed to (or the
	// pattern); payload is valid during the call only.
	receive(channel string, payload []byte)
	// wants says whether the channel is to be heard now. It is called under the
	// subscriber's lock.
	wants(channel string) bool
}

// subscription is one channel that is, was or shall be heard.
type subscription struct {
	verb    verb
	channel string
	sink    sink
	link    *link

	// guarded by the subscriber's mu
	queued      bool           // the link will look at it
	on          bool           // the last command sent for it was a SUBSCRIBE
	outstanding int            // commands sent on this connection that are not confirmed
	leaving     bool           // nobody wanted it when the link looked last; it has a place in link.leaving
	over        bool           // and its time there is over
	waiting     []chan<- error // who waits for the confirmation; each has room for one
}

// subscriber knows all channels that this node hears. Nobody counts references: who changes
// whether a channel is wanted calls touch afterwards, and before the link sends
// anything it asks the sink. So whatever joins and leaves race, the last look sees the
// last state.
type subscriber struct {
	mu    sync.RWMutex // guards the maps and the subscriptions' fields; before the sinks' locks
	byKey [verbs]map[string]*subscription

	linger bool // as Options say; set before use

	route func(v verb, channel string) *link // which connection hears it; set before use, called under mu
}

func newSubscriber() *subscriber {
	s := &subscriber{}
	for v := range s.byKey {
		s.byKey[v] = map[string]*subscription{}
	}
	return s
}

// touch has the channel's link look whether it is wanted. It returns at once.
func (s *subscriber) touch(v verb, channel string, owner sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue(v, channel, owner)
}

// joined is touch for a channel that has just gained somebody: nothing is to do while it is heard
// and nobody has doubts.
func (s *subscriber) joined(v verb, channel string, owner sink) {
	s.mu.RLock()
	sub := s.byKey[v][channel]
	fine := sub != nil && sub.on && !sub.queued
	s.mu.RUnlock()
	if !fine {
		s.touch(v, channel, owner)
	}
}

// queue makes the subscription if there is none and queues it. The caller holds mu.
func (s *subscriber) queue(v verb, channel string, owner sink) *subscription {
	sub := s.byKey[v][channel]
	if sub == nil {
		sub = &subscription{verb: v, channel: channel, sink: owner, link: s.route(v, channel)}
		s.byKey[v][channel] = sub
	}
	if !sub.queued {
		sub.queued = true
		sub.link.enqueue(sub)
	}
	return sub
}

// await returns when Redis has confirmed that the channels, which their sink wants, are heard.
// fresh says that one of them was not before the call. Errors: ErrUnavailable at once when there is
// no connection, or as soon as it is lost; ctx's.
func (s *subscriber) await(ctx context.Context, v verb, channels []string, owner sink) (fresh bool, err error) {
	confirmed := make(chan error, len(channels))
	waiting := 0
	s.mu.Lock()
	for _, channel := range channels {
		sub := s.byKey[v][channel]
		if sub != nil && sub.on && sub.outstanding == 0 && !sub.queued {
			continue
		}
		sub = s.queue(v, channel, owner)
		fresh = true
		if !sub.link.connected {
			s.mu.Unlock()
			return true, ErrUnavailable
		}
		sub.waiting = append(sub.waiting, confirmed)
		waiting++
	}
	s.mu.Unlock()
	for ; waiting > 0; waiting-- {
		select {
		case err := <-confirmed:
			if err != nil {
				return fresh, err
			}
		case <-ctx.Done():
			return fresh, ctx.Err()
		}
	}
	return fresh, nil
}

// find is the subscription that a frame is about.
func (s *subscriber) find(f *frame) *subscription {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byKey[f.verb][string(f.name)]
}

// len is how many channels are heard or about to be.
func (s *subscriber) len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := 0
	for _, m := range s.byKey {
		n += len(m)
	}
	return n
}

// release tells everybody who waits for the subscription. The caller holds mu.
func (sub *subscription) release(err error) {
	for _, ch := range sub.waiting {
		ch <- err // has room
	}
	sub.waiting = nil
}

// restart begins anew on a connection on which nothing is heard yet; the link will look at it. The
// caller holds mu.
func (sub *subscription) restart() {
	sub.on, sub.outstanding, sub.queued, sub.leaving, sub.over = false, 0, true, false, false
}

// settled is called when nothing is outstanding: it forgets what nobody wants. The
// caller holds mu.
func (s *subscriber) settled(sub *subscription) {
	if sub.on {
		sub.release(nil)
		return
	}
	if !sub.queued {
		delete(s.byKey[sub.verb], sub.channel)
	}
}

// move gives the sharded subscriptions to the links that their slots belong to now. old has
// stopped.
func (s *subscriber) move(old []*link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := map[*link]bool{}
	for _, l := range old {
		gone[l] = true
	}
	for _, sub := range s.byKey[sharded] {
		if !gone[sub.link] {
			continue
		}
		sub.release(ErrUnavailable)
		sub.restart()
		sub.link = s.route(sharded, sub.channel)
		sub.link.enqueue(sub)
	}
}
