package check

import "time"

// Sample is what a node is made of at a calm moment, after a garbage collection.
type Sample struct {
	At          time.Duration `json:"at"`   // since the soak began
	Node        int           `json:"node"` // counted from 1
	Life        int           `json:"life"` // how often the node was started before
	Connections int           `json:"connections"`
	Goroutines  int           `json:"goroutines"`
	Heap        int           `json:"heap"`  // bytes of live objects
	Inuse       int           `json:"inuse"` // bytes of spans in use
	RSS         int           `json:"rss"`
}

// Tolerance is how much more a later sample may have than an earlier one with the same
// number of connections.
type Tolerance struct {
	Goroutines int     // as a number: pools and timers come and go
	Heap       float64 // as a share of the earlier one
	HeapBytes  int     // and beside that: caches fill, which are bounded
	// Settle is how long after the first sample of a life the earlier one is to be, where
	// there are enough: until then what is kept for a time piles up.
	Settle time.Duration
}

func (t Tolerance) compare(what string, early, late Sample, faults *Faults) {
	// A connection more has its goroutines and buffers.
	more := max(0, late.Connections-early.Connections)
	if bound := early.Goroutines + t.Goroutines + 3*more; late.Goroutines > bound {
		faults.Add(Growth, "%s of node %d: %d goroutines at %.0f s, %d at %.0f s (at most %d)", what, late.Node,
			early.Goroutines, early.At.Seconds(), late.Goroutines, late.At.Seconds(), bound)
	}
	if bound := int(float64(early.Heap)*(1+t.Heap)) + t.HeapBytes + 64<<10*more; late.Heap > bound {
		faults.Add(Growth, "%s of node %d: %.1f MB of heap at %.0f s, %.1f MB at %.0f s (at most %.1f)", what, late.Node,
			mb(early.Heap), early.At.Seconds(), mb(late.Heap), late.At.Seconds(), mb(bound))
	}
}

func mb(bytes int) float64 { return float64(bytes) / 1e6 }

// CompareGrowth compares, for each life of a node, an early sample with its last.
func CompareGrowth(samples []Sample, t Tolerance, faults *Faults) {
	type life struct{ node, life int }
	lives := map[life][]Sample{}
	for _, s := range samples {
		l := life{s.Node, s.Life}
		lives[l] = append(lives[l], s)
	}
	for _, of := range lives {
		early, last := of[0], of[len(of)-1]
		for _, s := range of[1 : len(of)-min(1, len(of)-1)] {
			if early.At < of[0].At+t.Settle {
				early = s
			}
		}
		if early.At < last.At {
			t.compare("a calm moment", early, last, faults)
		}
	}
}

// CompareIdle compares nodes without any client with the largest of them before there
// was one.
func CompareIdle(fresh, idle []Sample, t Tolerance, faults *Faults) {
	var base Sample
	for _, s := range fresh {
		base.Goroutines, base.Heap = max(base.Goroutines, s.Goroutines), max(base.Heap, s.Heap)
	}
	for _, s := range idle {
		t.compare("without clients,", base, s, faults)
	}
}
