// Package ratelimit has token buckets: one by itself (Bucket) and one for each of
// many keys, with bounded memory (Buckets).
//
// A bucket holds up to burst tokens and is filled again at a rate. It is kept as
// one number, the moment at which it would be full again (GCRA, ITU-T I.371), so a
// bucket costs 8 bytes, and one that is full need not be kept at all. Limits are
// local to a node: nothing here waits for anything.
package ratelimit

import (
	"hash/maphash"
	"math"
	"sync"
	"time"
)

// Rate is how many tokens come back a second, and how many there are at most. The
// zero Rate is no limit.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Off says that there is no limit.
func (r Rate) Off() bool { return r.PerSecond <= 0 }

// interval is the time in which a token comes back, in nanoseconds.
func (r Rate) interval() int64 {
	return int64(min(float64(time.Second)/r.PerSecond, math.MaxInt64/float64(4*max(r.Burst, 1))))
}

// take takes a token of the bucket that would be full at fullAt. It returns the
// bucket's new state, and how long to wait for the token if there is none.
func (r Rate) take(fullAt, now int64) (newFullAt int64, wait time.Duration) {
	interval := r.interval()
	fullAt = max(fullAt, now) + interval
	if wait := fullAt - now - interval*int64(max(r.Burst, 1)); wait > 0 {
		return fullAt - interval, time.Duration(wait)
	}
	return fullAt, 0
}

// start makes times small: a bucket's state is counted from here.
var start = time.Now()

// since is the monotonic time of a bucket. Clocks that tests step are not asked:
// what a limit protects is real time.
func since() int64 { return int64(time.Since(start)) }

// Bucket is one bucket; the zero value is full. It is not safe for concurrent use.
type Bucket struct{ fullAt int64 }

// Take takes a token, or says how long to wait for one.
func (b *Bucket) Take(r Rate) (wait time.Duration, ok bool) {
	if r.Off() {
		return 0, true
	}
	b.fullAt, wait = r.take(b.fullAt, since())
	return wait, wait == 0
}

const shards = 16

// Buckets are a bucket for each key. At most limit of them are remembered: beyond it
// the one of a few that would be full soonest is forgotten, which gives its key the
// whole burst again. Safe for concurrent use.
type Buckets[K comparable] struct {
	rate Rate
	each int // keys of a shard
	seed maphash.Seed
	now  func() int64

	shards [shards]struct {
		mu     sync.Mutex // guards fullAt
		fullAt map[K]int64
	}
}

// New makes buckets of the rate for at most limit keys. A Rate that is off gives
// buckets that never run out and remember nothing.
func New[K comparable](rate Rate, limit int) *Buckets[K] {
	b := &Buckets[K]{rate: rate, each: max(1, limit/shards), seed: maphash.MakeSeed(), now: since}
	for i := range b.shards {
		b.shards[i].fullAt = map[K]int64{}
	}
	return b
}

// Take takes a token of key's bucket, or says how long to wait for one. A nil
// Buckets has no limit.
func (b *Buckets[K]) Take(key K) (wait time.Duration, ok bool) {
	if b == nil || b.rate.Off() {
		return 0, true
	}
	s := &b.shards[maphash.Comparable(b.seed, key)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	now := b.now()
	old, known := s.fullAt[key]
	if !known && len(s.fullAt) >= b.each {
		forget(s.fullAt, now)
	}
	fullAt, wait := b.rate.take(old, now)
	if wait > 0 {
		return wait, false
	}
	s.fullAt[key] = fullAt
	return 0, true
}

// Return gives a token back that was taken for something that did not happen.
func (b *Buckets[K]) Return(key K) {
	if b == nil || b.rate.Off() {
		return
	}
	s := &b.shards[maphash.Comparable(b.seed, key)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if fullAt, known := s.fullAt[key]; known {
		s.fullAt[key] = fullAt - b.rate.interval()
	}
}

// forget makes room for a key: it looks at a few, in the map's random order, drops
// those that are full, or if there are none the one that is nearest to it.
func forget[K comparable](fullAt map[K]int64, now int64) {
	const looks = 16
	var nearest K
	best, seen, dropped := int64(math.MaxInt64), 0, false
	for key, at := range fullAt {
		if seen++; seen > looks {
			break
		}
		if at <= now {
			delete(fullAt, key)
			dropped = true
		} else if at < best {
			nearest, best = key, at
		}
	}
	if !dropped {
		delete(fullAt, nearest)
	}
}

// Len is the number of keys that are remembered.
func (b *Buckets[K]) Len() int {
	n := 0
	for i := range b.shards {
		s := &b.shards[i]
		s.mu.Lock()
		n += len(s.fullAt)
		s.mu.Unlock()
	}
	return n
}
