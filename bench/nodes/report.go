package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// report is what was measured; parts that were left out are empty.
type report struct {
	closed, paced [][]cost // by setup and round
	work          []work   // by node; the first two have the conversation
	workMessages  int64
	startTook     time.Duration
	startChannels int
	userMemory    float64
}

// progress tells whoever waits.
func (r *report) progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// target is a figure and its bound.
type target struct {
	what         string
	value, bound float64
	unit         string
}

func (t target) met() bool { return t.value <= t.bound }

func (t target) word() string {
	if t.met() {
		return "met"
	}
	return "MISSED"
}

func (r *report) targets() (list []target) {
	if r.closed != nil {
		list = append(list, target{"CPU of a message between two nodes beside one inside a node, gateway and Redis together", ratio(r.closed[2], r.closed[1]), 1.5, "times"})
	}
	if r.work != nil {
		events := 0.0
		for _, w := range r.work[2:] {
			events += w.events
		}
		list = append(list, target{"chat events at the six of eight nodes that hold neither user", events, 0, "events"})
	}
	if r.startChannels > 0 {
		list = append(list, target{"a node hears the channels of 100,000 users after", r.startTook.Seconds(), 10, "s"})
	}
	if r.userMemory > 0 {
		list = append(list, target{"Redis memory of a connected user", r.userMemory, 700, "bytes"})
	}
	return list
}

func (r *report) met() bool {
	for _, t := range r.targets() {
		if !t.met() {
			return false
		}
	}
	return true
}

func (r *report) print() { fmt.Print("\n", r.tables()) }

// tables is the report's figures in Markdown.
func (r *report) tables() string {
	var out strings.Builder
	out.WriteString("| target | measured | bound | |\n|---|---:|---:|---|\n")
	for _, t := range r.targets() {
		fmt.Fprintf(&out, "| %s | %.4g %s | %g | %s |\n", t.what, t.value, t.unit, t.bound, t.word())
	}
	if r.closed != nil {
		r.costTable(&out)
	}
	if r.work != nil {
		fmt.Fprintf(&out, "\nEight nodes, %d messages of one direct conversation:\n\n", r.workMessages)
		out.WriteString("| node | chat events from Redis | publications (probes included) | CPU, ms |\n|---|---:|---:|---:|\n")
		for i, w := range r.work {
			name := fmt.Sprint(i + 1)
			if i < 2 {
				name += []string{", the sender's", ", the recipient's"}[i]
			}
			fmt.Fprintf(&out, "| %s | %.0f | %.0f | %d |\n", name, w.events, w.published, w.cpu.Milliseconds())
		}
	}
	return out.String()
}

func (r *report) costTable(out *strings.Builder) {
	out.WriteString("\nCPU in µs for a message: stored, answered, acknowledged by the recipient's device, known as delivered to the sender.\n")
	gateway, redis := func(c cost) float64 { return c.gateway }, func(c cost) float64 { return c.redis }
	for _, way := range []struct {
		name  string
		costs [][]cost
	}{{"closed loop", r.closed}, {"paced", r.paced}} {
		fmt.Fprintf(out, "\n| users on (%s) | gateway | Redis | beside one node alone | beside one node with Redis | messages/s |\n|---|---:|---:|---:|---:|---:|\n", way.name)
		for i, s := range setups {
			costs := way.costs[i]
			fmt.Fprintf(out, "| %s | %.0f | %.0f | %.2f | %.2f | %.0f |\n", s.name, median(costs, gateway), median(costs, redis),
				ratio(costs, way.costs[0]), ratio(costs, way.costs[1]), median(costs, func(c cost) float64 { return c.perSecond }))
		}
	}
}

// page is the report as a document of its own.
func (r *report) page(ctx context.Context, b *bench) string {
	return fmt.Sprintf(`# What it costs to be several nodes

Measured by %s on %s: %s, %d processors, %s. PostgreSQL %s with fsync, Redis %s, %s. Everything
(nodes, PostgreSQL, Redis, clients) on that machine.

%s
Closed loop: %d pairs of users, each of which sends its next message when the last one has come through. Paced: the same
pairs, %d messages a second together. CPU is user plus system time of the processes (/proc); the medians of %d rounds of %v,
the ratios within each round. PostgreSQL's CPU is left out: it does the same for one node and for two. The target compares two nodes
with one of the same deployment, which publishes for the others too; beside a node that runs alone and needs no Redis the
step is larger, and stands in the table. Paced, the machine is nearly idle, and what is measured is mostly the waking of processes.
`, "`make bench-nodes`", time.Now().UTC().Format(time.DateOnly), processor(), runtime.NumCPU(), output(ctx, "uname", "-sr"),
		output(ctx, "sh", "-c", "psql --version | grep -o '[0-9.]*' | head -1"), output(ctx, "sh", "-c", "redis-server --version | grep -o 'v=[0-9.]*' | cut -c3-"),
		runtime.Version(), r.tables(), b.pairs, b.rate, b.rounds, b.duration)
}

func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	_, rest, _ := strings.Cut(string(text), "model name")
	name, _, _ := strings.Cut(rest, "\n")
	return strings.TrimLeft(name, "\t :")
}

// output is what a command says, or that it is not known.
func output(ctx context.Context, name string, args ...string) string {
	text, err := exec.CommandContext(ctx, name, args...).Output()
	if said := strings.TrimSpace(string(text)); err == nil && said != "" {
		return said
	}
	return "(unknown)"
}
