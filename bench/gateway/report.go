//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"xabar/internal/loadtest"
)

// sample is one run of a measurement.
type sample struct {
	figure, p99, p50, rate float64
	parts                  map[string]float64 // µs of CPU per unit, by process
	tool                   float64
	redis                  float64 // kB of data a connection, of idle ones
}

// report gathers all rounds.
type report struct {
	config  *config
	order   []measurement
	samples map[string]map[string][]sample // by measurement and side
	wrong   map[string]string              // faults of a side, in words
	ours    []string                       // those of our own side
}

func newReport(c *config) *report {
	return &report{config: c, samples: map[string]map[string][]sample{}, wrong: map[string]string{}}
}

// add keeps a result and says in a line what it is.
func (r *report) add(m measurement, s *side, result *loadtest.Result) string {
	if r.samples[m.name] == nil {
		r.samples[m.name] = map[string][]sample{}
		r.order = append(r.order, m)
	}
	latency := result.Latency["delivered"]
	if latency.Count == 0 {
		latency = result.Latency["received"]
	}
	one := sample{
		figure: m.figure(result), p50: latency.P50, p99: latency.P99, tool: result.Tool.PerUnit,
		rate: float64(result.Count(loadtest.Answered)) / result.Seconds, parts: map[string]float64{}, redis: result.Connect.RSSPerConn["redis data"],
	}
	for name, cost := range result.Processes {
		one.parts[name] = cost.PerUnit
	}
	r.samples[m.name][s.name] = append(r.samples[m.name][s.name], one)
	text := fmt.Sprintf("%.1f %s; p50 %.1f p99 %.1f ms; %.0f messages/s; tool %.1f µs", one.figure, m.unit, one.p50, one.p99, one.rate, one.tool)
	for _, f := range result.Faults {
		fault := fmt.Sprintf("%s %d times", f.Kind, f.Count)
		text += "; " + fault
		if s.ours() {
			r.ours = append(r.ours, m.name+": "+fault+": "+f.Examples[0])
		} else {
			r.wrong[m.name+" "+s.name+" "+f.Kind] = fmt.Sprintf("%s, %s: %s", s.name, m.name, fault)
		}
	}
	return text
}

func (r *report) faults() error {
	if len(r.ours) == 0 {
		return nil
	}
	return errors.New("the gateway did what it must not do:\n" + strings.Join(r.ours, "\n"))
}

// spread is the middle and the ends.
type spread struct{ median, low, high float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	slices.Sort(values)
	n := len(values)
	return spread{(values[(n-1)/2] + values[n/2]) / 2, values[0], values[n-1]}
}

func (s spread) String() string {
	switch {
	case s == spread{}:
		return "-"
	case s.median < 10:
		return fmt.Sprintf("%.2f (%.2f to %.2f)", s.median, s.low, s.high)
	}
	return fmt.Sprintf("%.0f (%.0f to %.0f)", s.median, s.low, s.high)
}

func (r *report) spread(measurement, side string, of func(sample) float64) spread {
	var values []float64
	for _, s := range r.samples[measurement][side] {
		values = append(values, of(s))
	}
	return spreadOf(values)
}

// ratio is ours to the better Node peer of the same round.
func (r *report) ratio(measurement string, of func(sample) float64) spread {
	return r.ratioTo(measurement, of, sides[1:]...)
}

// ratioTo is ours to the best of some peers in the same round.
func (r *report) ratioTo(measurement string, of func(sample) float64, peers ...side) spread {
	var ratios []float64
	for i, our := range r.samples[measurement][sides[0].name] {
		best := 0.0
		for _, peer := range peers {
			if theirs := r.samples[measurement][peer.name]; i < len(theirs) && (best == 0 || of(theirs[i]) < best) {
				best = of(theirs[i])
			}
		}
		if best > 0 {
			ratios = append(ratios, of(our)/best)
		}
	}
	return spreadOf(ratios)
}

func figureOf(s sample) float64 { return s.figure }
func p99Of(s sample) float64    { return s.p99 }
func p50Of(s sample) float64    { return s.p50 }
func rateOf(s sample) float64   { return s.rate }

// verdict says whether a ratio is at most what is aimed at; 0 is no target.
func verdict(ratio spread, target float64) string {
	switch {
	case target == 0 || ratio.median == 0:
		return ""
	case ratio.median <= target:
		return fmt.Sprintf("at most %g: met", target)
	}
	return fmt.Sprintf("at most %g: missed", target)
}

// table is Markdown.
func (r *report) table() string {
	var b strings.Builder
	b.WriteString("| | xabar | node, cte | node, steps | ratio | target |\n|---|---|---|---|---|---|\n")
	line := func(title string, m measurement, of func(sample) float64, target float64) {
		ratio := r.ratio(m.name, of)
		fmt.Fprintf(&b, "| %s |", title)
		for _, s := range sides {
			fmt.Fprintf(&b, " %s |", r.spread(m.name, s.name, of))
		}
		fmt.Fprintf(&b, " %s | %s |\n", ratio, verdict(ratio, target))
	}
	for _, m := range r.order {
		if m.ours {
			continue
		}
		line(m.title(), m, figureOf, m.target)
		if m.p99 > 0 {
			line("the same: send to delivered, p50, ms", m, p50Of, 0)
			line("the same: send to delivered, p99, ms", m, p99Of, m.p99)
		} else if m.options.Scenario == "direct" || m.options.Scenario == "group" {
			line("the same: messages a second", m, rateOf, 0)
		}
	}
	return b.String()
}

// parts says where the gateway's side spends its time.
func (r *report) parts() string {
	var b strings.Builder
	b.WriteString("| | nodes | PostgreSQL | Redis | the tool itself |\n|---|---|---|---|---|\n")
	for _, m := range r.order {
		if m.options.Scenario == "idle" || m.ours {
			continue
		}
		part := func(name string) spread {
			return r.spread(m.name, sides[0].name, func(s sample) float64 { return s.parts[name] })
		}
		tool := r.spread(m.name, sides[0].name, func(s sample) float64 { return s.tool })
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", m.title(), part("nodes"), part("postgres"), part("redis"), tool)
	}
	return b.String()
}

// memory is of idle connections.
func (r *report) memory() string {
	for _, m := range r.order {
		if m.options.Scenario != "idle" {
			continue
		}
		redis := r.spread(m.name, sides[0].name, func(s sample) float64 { return s.redis * 1000 })
		return fmt.Sprintf("%d idle connections with presence: %s kB of the node each (target: at most 12), %s bytes of Redis each (target: at most 700).",
			m.options.Users, r.spread(m.name, sides[0].name, figureOf), redis)
	}
	return ""
}

func (r *report) write(path string, rounds int) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Benchmarks

The gateway beside a chat server as a good Node team writes it (`+"`bench/peer-node`"+`: socket.io, its Redis
adapter, pg), with the same PostgreSQL (fsync on), Redis, load and machine, alternating. What
counts is the ratio, formed within each round against the better of the peer's two variants.
Figures are medians over the rounds (%d), with the lowest and highest.

Repeat it: `+"`make bench`"+` (`+"`BENCH='-rounds 1 -duration 5s -only direct'`"+` is shorter). It needs Linux,
PostgreSQL 15, Redis 7 and Node 20. It builds Centrifugo from the Go proxy, and goes on without it where
that fails.

%s

## Beside the peer

CPU is that of all server processes together: nodes, PostgreSQL, Redis.

%s%s
## Where it goes

CPU of the gateway's side, µs per unit.

%s
%s

## Two nodes beside one

%s

## What must not make it dearer

%s

`, rounds, r.machine(), r.table(), r.besideCentrifugo(), r.parts(), r.memory(), r.grown(), r.flat())
	if len(r.wrong) > 0 {
		b.WriteString("## What the peers did wrong meanwhile\n\nOf the last round in which it happened:\n\n")
		var lines []string
		for _, text := range r.wrong {
			lines = append(lines, "* "+text)
		}
		slices.Sort(lines)
		b.WriteString(strings.Join(lines, "\n") + "\n")
	}
	return os.WriteFile(path, append(bytes.TrimRight(b.Bytes(), "\n"), '\n'), 0o644)
}

// machine says where and with what it was measured.
func (r *report) machine() string {
	lines := []string{"* " + time.Now().UTC().Format("2 January 2006"), fmt.Sprintf("* %s, %d CPUs, %s", model(), runtime.NumCPU(), runtime.Version())}
	for _, command := range [][]string{{"postgres", "--version"}, {"redis-server", "--version"}, {"node", "--version"}, {"uname", "-sr"}} {
		name := command[0]
		if name == "postgres" {
			name = "/usr/lib/postgresql/15/bin/postgres"
		}
		out, err := exec.Command(name, command[1:]...).Output()
		if err != nil {
			out = []byte("unknown")
		}
		lines = append(lines, "* "+command[0]+": "+strings.TrimSpace(string(out)))
	}
	lines = append(lines, "* centrifugo: "+r.config.centrifugoVersion())
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		lines = append(lines, "* load average at the end: "+strings.Join(strings.Fields(string(load))[:3], " "))
	}
	lines = append(lines, "* load averages far above the number of CPUs mean that other programs ran: then read the ratios, and those with care")
	return strings.Join(lines, "\n")
}

func model() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown CPU"
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
