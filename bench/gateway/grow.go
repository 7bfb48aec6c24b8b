//go:build linux

package main

import (
	"fmt"
	"strings"
	"time"

	"xabar/internal/loadtest"
)

// growth is a deployment that grows from one node to two, and its load with it.
type growth struct {
	name   string
	nodes  int
	apart  bool
	target float64 // times the messages of the first; 0: none
}

var growthSteps = []growth{
	{"1 node, 256 pairs", 1, false, 0},
	{"2 nodes, 512 pairs, each on one node", 2, false, 1.8},
	{"2 nodes, 512 pairs, each apart", 2, true, 1.35},
}

// title is the measurement's name.
func (g growth) title() string { return "direct, with Redis, " + g.name }

func growths(d time.Duration) (all []measurement) {
	for _, g := range growthSteps {
		all = append(all, measurement{
			name: g.title(), unit: "µs CPU a message", nodes: g.nodes, redis: true, ours: true, figure: cpu,
			options: loadtest.Options{Scenario: "direct", Users: 512 * g.nodes, Apart: g.apart, Duration: d, Warmup: warmUp},
		})
	}
	return all
}

// grown is how many messages two nodes carry for those of one. All processes share a few CPUs here, so it is
// the nodes' CPU for a message that tells: each node has a machine of its own where it counts.
func (r *report) grown() string {
	nodes := func(s sample) float64 { return s.parts["nodes"] }
	var b strings.Builder
	b.WriteString("One message in flight for each pair; with twice the nodes twice the pairs. By the CPU of the nodes, all of which\n" +
		"share one machine here.\n\n| | nodes, µs a message | PostgreSQL | Redis | times the messages of one node | target |\n|---|---|---|---|---|---|\n")
	one := r.samples[growthSteps[0].title()][sides[0].name]
	for _, g := range growthSteps {
		part := func(name string) spread {
			return r.spread(g.title(), sides[0].name, func(s sample) float64 { return s.parts[name] })
		}
		times, met := "", ""
		if g.target > 0 {
			var ratios []float64
			for i, s := range r.samples[g.title()][sides[0].name] {
				if i < len(one) {
					ratios = append(ratios, float64(g.nodes)*nodes(one[i])/nodes(s))
				}
			}
			carried := spreadOf(ratios)
			times, met = carried.String(), fmt.Sprintf("at least %g: met", g.target)
			if carried.median < g.target {
				met = fmt.Sprintf("at least %g: missed", g.target)
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", g.name, part("nodes"), part("postgres"), part("redis"), times, met)
	}
	return b.String()
}
