package loadtest

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Kind is what a latency is of.
type Kind int

// The kinds. Those of messages count from the moment at which the message was due.
const (
	Answered  Kind = iota // the sender has its answer
	Received              // a recipient has the message
	Delivered             // the sender knows that the recipient has it
	Read                  // the sender knows that the recipient has read it
	Connected             // from dialling to the namespace joined, sync included where it is called
	Paged                 // a page of history
	Typed                 // typing events that arrived; counted only
	kinds
)

var kindNames = [kinds]string{"answered", "received", "delivered", "read", "connected", "history", "typing"}

func (k Kind) String() string { return kindNames[k] }

// longest is the largest latency that is told apart.
const longest = time.Minute

// recorder gathers latencies: for each second, and for each phase of the run.
type recorder struct {
	mu      sync.Mutex // guards what follows
	current [kinds]*hdrhistogram.Histogram
	totals  [kinds]*hdrhistogram.Histogram
	counts  [kinds]int64 // since the last reset, what is in current included
	errors  int64
}

func newRecorder() *recorder {
	r := &recorder{}
	for k := range kinds {
		r.current[k] = newHistogram()
		r.totals[k] = newHistogram()
	}
	return r
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, longest.Microseconds(), 3)
}

func (r *recorder) record(k Kind, d time.Duration) {
	us := min(max(d.Microseconds(), 1), longest.Microseconds())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[k]++
	_ = r.current[k].RecordValue(us) // it is within the bounds
}

func (r *recorder) fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors++
}

// Point is what happened in one interval.
type Point struct {
	At       float64            `json:"at"` // seconds since the measurement's start
	Rate     map[string]float64 `json:"rate"`
	P50      map[string]float64 `json:"p50"` // ms
	P99      map[string]float64 `json:"p99"` // ms
	Errors   int64              `json:"errors"`
	Counts   map[string]int64   `json:"-"`
	Process  map[string]Usage   `json:"process,omitempty"`
	Duration float64            `json:"-"`
}

// tick ends an interval: its figures, added to the phase's.
func (r *recorder) tick(at, interval time.Duration) Point {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := Point{
		At: at.Seconds(), Rate: map[string]float64{}, P50: map[string]float64{}, P99: map[string]float64{},
		Errors: r.errors, Counts: map[string]int64{}, Duration: interval.Seconds(),
	}
	for k, h := range r.current {
		p.Counts[Kind(k).String()] = r.counts[k]
		if h.TotalCount() == 0 {
			continue
		}
		name := Kind(k).String()
		p.Rate[name] = float64(h.TotalCount()) / interval.Seconds()
		p.P50[name] = float64(h.ValueAtQuantile(50)) / 1000
		p.P99[name] = float64(h.ValueAtQuantile(99)) / 1000
		r.totals[k].Merge(h)
		h.Reset()
	}
	return p
}

// Latency is a distribution.
type Latency struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"` // ms, as all that follow
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

// take ends a phase: its figures. The next one starts at zero.
func (r *recorder) take() map[string]Latency {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]Latency{}
	for k := range kinds {
		h := r.totals[k]
		h.Merge(r.current[k])
		r.current[k].Reset()
		if h.TotalCount() > 0 {
			all[k.String()] = latencyOf(h)
		}
		h.Reset()
		r.counts[k] = 0
	}
	return all
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	ms := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
	return Latency{
		Count: h.TotalCount(), Mean: h.Mean() / 1000, P50: ms(50), P90: ms(90), P99: ms(99), P999: ms(99.9),
		Max: float64(h.Max()) / 1000,
	}
}
