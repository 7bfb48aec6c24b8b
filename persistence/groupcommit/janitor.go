package groupcommit

import (
	"sync"
	"time"

	"xabar/chat"
)

// lookEvery is how often the janitor looks for contexts that have ended: a
// request's timeout is answered at most this much late.
const lookEvery = 25 * time.Millisecond

// janitor is the Batcher's goroutine beside the shards'. It answers what must be
// answered while a shard is busy: refusals, and requests whose context has
// ended, waiting or in a batch. It sleeps while no request is there.
type janitor[Req, Res any] struct {
	wake    chan struct{}        // capacity 1: a shard has work
	refused chan *Item[Req, Res] // closed by close
	pending sync.WaitGroup       // senders on refused
	ended   chan struct{}
	once    sync.Once
}

func (j *janitor[Req, Res]) init() {
	j.wake = make(chan struct{}, 1)
	j.refused = make(chan *Item[Req, Res], 64)
	j.ended = make(chan struct{})
}

// close is called when no shard takes requests any more.
func (j *janitor[Req, Res]) close() {
	j.once.Do(func() {
		j.pending.Wait()
		close(j.refused)
	})
	<-j.ended
}

func (j *janitor[Req, Res]) run(shards []*shard[Req, Res]) {
	defer close(j.ended)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	ticker.Stop()
	for {
		select {
		case it, ok := <-j.refused:
			if !ok {
				return
			}
			var none Res
			it.answer(none, chat.Errorf(chat.CodeOverloaded, ""))
		case <-j.wake:
			ticker.Reset(lookEvery)
		case <-ticker.C:
			if !look(shards) {
				ticker.Stop()
			}
		}
	}
}

// look answers the requests whose context has ended and says whether any request
// is left.
func look[Req, Res any](shards []*shard[Req, Res]) (left bool) {
	now := time.Now()
	for _, s := range shards {
		var expired []*Item[Req, Res]
		s.mu.Lock()
		kept := s.queue[:0]
		for _, it := range s.queue {
			if it.ended(now) {
				expired = append(expired, it)
				s.left(it)
			} else {
				kept = append(kept, it)
			}
		}
		clear(s.queue[len(kept):])
		s.queue = kept
		for _, it := range s.inflight {
			if it.ended(now) {
				expired = append(expired, it) // it may be committed all the same
			}
		}
		left = left || len(kept) > 0 || len(s.inflight) > 0
		s.mu.Unlock()
		for _, it := range expired {
			expire(it)
		}
	}
	return left
}
