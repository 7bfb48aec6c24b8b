package engineio

import (
	"net/netip"
	"sync"
	"time"
)

// maxAddresses bounds the memory of a rateLimit. Beyond it those that have waited long enough are
// forgotten; if there are none, newcomers are refused.
const maxAddresses = 1 << 16

// rateLimit is a token bucket per address.
type rateLimit struct {
	rate, burst float64
	now         func() time.Time

	mu      sync.Mutex // guards all below
	buckets map[netip.Prefix]bucket
}

type bucket struct {
	tokens float64
	at     time.Time
}

func newRateLimit(rate float64, burst int) *rateLimit {
	b := float64(burst)
	if b == 0 {
		b = max(1, rate)
	}
	return &rateLimit{rate: rate, burst: b, now: time.Now, buckets: map[netip.Prefix]bucket{}}
}

// allow takes a token of address. One that is no IP address shares a bucket with its likes.
func (l *rateLimit) allow(address string) bool {
	key := addressKey(address)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	b, known := l.buckets[key]
	if !known {
		if len(l.buckets) >= maxAddresses && !l.forget(now) {
			return false
		}
		b = bucket{tokens: l.burst, at: now}
	}
	b.tokens = min(l.burst, b.tokens+now.Sub(b.at).Seconds()*l.rate)
	b.at = now
	allowed := b.tokens >= 1
	if allowed {
		b.tokens--
	}
	l.buckets[key] = b
	return allowed
}

// forget drops the buckets that are full again and reports whether there is room now.
func (l *rateLimit) forget(now time.Time) bool {
	for key, b := range l.buckets {
		if b.tokens+now.Sub(b.at).Seconds()*l.rate >= l.burst {
			delete(l.buckets, key)
		}
	}
	return len(l.buckets) < maxAddresses
}

// addressKey is the address itself for IPv4 and its /64 for IPv6, which one customer holds whole.
func addressKey(address string) netip.Prefix {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	addr = addr.Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	prefix, err := addr.Prefix(bits)
	if err != nil { // cannot be: bits fits the family
		return netip.Prefix{}
	}
	return prefix
}
