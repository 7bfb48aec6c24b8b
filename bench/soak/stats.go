package main

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// stats counts what clients do. Safe for concurrent use.
type stats struct {
	answered, repeats          atomic.Int64 // sends
	heard, again, synced       atomic.Int64 // messages: new, not new, by sync
	connects, failed           atomic.Int64 // connections
	typed, pages, reads, slows atomic.Int64

	mu                         sync.Mutex // guards what follows
	closings, refusals, logged map[string]int
	latencies                  []time.Duration // since they were last taken
	worst                      time.Duration
	byLife                     map[lifeOf]*lifeStats
}

// lifeOf names one life of a node.
type lifeOf struct{ node, life int }

// lifeStats is what clients know of one life.
type lifeStats struct{ connects, answers int }

func (s *stats) lifeLocked(of lifeOf) *lifeStats {
	if s.byLife == nil {
		s.byLife = map[lifeOf]*lifeStats{}
	}
	if s.byLife[of] == nil {
		s.byLife[of] = &lifeStats{}
	}
	return s.byLife[of]
}

func (s *stats) connectedTo(of lifeOf) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lifeLocked(of).connects++
}

func (s *stats) answeredIn(of lifeOf) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lifeLocked(of).answers++
}

func (s *stats) connected(of lifeOf) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lifeLocked(of).connects
}

func (s *stats) answeredBy(of lifeOf) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lifeLocked(of).answers
}

func (s *stats) count(in *map[string]int, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *in == nil {
		*in = map[string]int{}
	}
	(*in)[key]++
}

func (s *stats) latency(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latencies = append(s.latencies, d)
	s.worst = max(s.worst, d)
}

// takeLatencies returns the median and the 99th percentile since the last time.
func (s *stats) takeLatencies() (p50, p99 time.Duration) {
	s.mu.Lock()
	list := s.latencies
	s.latencies = nil
	s.mu.Unlock()
	if len(list) == 0 {
		return 0, 0
	}
	slices.Sort(list)
	return list[len(list)/2], list[len(list)*99/100]
}

// rates are the figures of a live line: those since the line before.
type rates struct {
	at                             time.Time
	answered, heard, synced, again int64
	connects                       int64
}

// line is what has happened since the last one.
func (s *soak) line() string {
	now := rates{time.Now(), s.stats.answered.Load(), s.stats.heard.Load(), s.stats.synced.Load(), s.stats.again.Load(), s.stats.connects.Load()}
	before := s.last
	s.last = now
	seconds := max(now.at.Sub(before.at).Seconds(), 0.001)
	rate := func(now, before int64) float64 { return float64(now-before) / seconds }
	p50, p99 := s.stats.takeLatencies()
	connected := 0
	for _, d := range s.devices {
		if c, _ := d.connection(); c != nil {
			connected++
		}
	}
	return fmt.Sprintf("sent %4.0f/s heard %5.0f/s synced %4.0f/s  answer p50 %3d p99 %5d ms  back %3d  on %d/%d",
		rate(now.answered, before.answered), rate(now.heard, before.heard), rate(now.synced, before.synced),
		p50.Milliseconds(), p99.Milliseconds(), now.connects-before.connects, connected, len(s.devices))
}

// say prints a live line.
func (s *soak) say(format string, args ...any) {
	s.printing.Lock()
	defer s.printing.Unlock()
	fmt.Fprintf(s.opts.out, "%7.1f s  %s\n", time.Since(s.start).Seconds(), fmt.Sprintf(format, args...))
}

// sayRates prints a live line with what has happened since the last one of them.
func (s *soak) sayRates(what string) {
	s.say("%-16s %s", what, s.line())
}
