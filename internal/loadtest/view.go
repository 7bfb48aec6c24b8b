package loadtest

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// view shows a run while it goes on.
type view struct {
	out   io.Writer
	live  bool
	total time.Duration
	every time.Duration
	last  time.Time
	lines int // on the terminal that the next view replaces
}

func newView(o *Options) *view {
	v := &view{out: o.Progress, live: o.Live, total: o.Duration, every: o.Every}
	if v.out == nil {
		v.out = io.Discard
	}
	return v
}

// due limits how often something is shown.
func (v *view) due() bool {
	now := time.Now()
	if now.Sub(v.last) < v.every-100*time.Millisecond {
		return false
	}
	v.last = now
	return true
}

// show replaces what a terminal shows, and else adds lines.
func (v *view) show(text string) {
	if v.live && v.lines > 0 {
		fmt.Fprintf(v.out, "\x1b[%dA\x1b[J", v.lines)
	}
	fmt.Fprint(v.out, text)
	v.lines = strings.Count(text, "\n")
}

func (v *view) progress(text string) {
	if v.due() {
		v.show(text + "\n")
	}
}

// begin tells whoever restarts nodes meanwhile that it is time.
func (v *view) begin() { v.show(fmt.Sprintf("measuring for %v\n", v.total)) }

func (v *view) point(r *Result, p Point) {
	if !v.due() {
		return
	}
	if !v.live {
		var parts []string
		for _, kind := range slices.Sorted(maps.Keys(p.Rate)) {
			parts = append(parts, fmt.Sprintf("%s %.0f/s p50 %.1f p99 %.1f ms", kind, p.Rate[kind], p.P50[kind], p.P99[kind]))
		}
		v.show(fmt.Sprintf("%4.0f s  %s  errors %d\n", p.At, strings.Join(parts, "; "), p.Errors))
		return
	}
	var b strings.Builder
	const width = 40
	done := min(width, int(p.At/v.total.Seconds()*width))
	fmt.Fprintf(&b, "%s on %s  [%s%s] %.0f of %.0f s  errors %d\n", r.Scenario, r.Server,
		strings.Repeat("#", done), strings.Repeat(".", width-done), p.At, v.total.Seconds(), p.Errors)
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tper second\tp50 ms\tp99 ms\t")
	for _, kind := range kindNames {
		if p.Rate[kind] > 0 {
			fmt.Fprintf(w, "%s\t%.0f\t%.1f\t%.1f\t\n", kind, p.Rate[kind], p.P50[kind], p.P99[kind])
		}
	}
	_ = w.Flush() // a builder does not fail
	v.show(b.String())
}

func (v *view) end() {
	if v.live && v.lines > 0 {
		v.show("")
	}
}

// Table is the result for a terminal.
func (r *Result) Table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(&b, "%s on %s: %d users, %.1f s\n\n", r.Scenario, r.Server, r.Users, r.Seconds)
	fmt.Fprintln(w, "ms\tcount\tmean\tp50\tp90\tp99\tp99.9\tmax\t")
	line := func(name string, l Latency) {
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", name, l.Count, l.Mean, l.P50, l.P90, l.P99, l.P999, l.Max)
	}
	line("at first connected", r.Connect.Latency)
	for _, kind := range kindNames {
		l, ok := r.Latency[kind]
		switch {
		case kind == Typed.String() && ok:
			fmt.Fprintf(w, "%s\t%d\t\t\t\t\t\t\t\n", kind, l.Count)
		case ok:
			line(kind, l)
		}
	}
	_ = w.Flush()
	fmt.Fprintln(&b)
	fmt.Fprintf(w, "\tCPU s\tµs per %s\tmemory MB\tkB per connection\tµs to connect\t\n", r.unit())
	for _, name := range slices.Sorted(maps.Keys(r.Processes)) {
		c := r.Processes[name]
		fmt.Fprintf(w, "%s\t%.2f\t%.1f\t%.1f\t%.1f\t%.0f\t\n", name, c.CPUSeconds, c.PerUnit, float64(c.RSS)/1e6,
			r.Connect.RSSPerConn[name], r.Connect.PerClient[name])
	}
	fmt.Fprintf(w, "(this tool)\t%.2f\t%.1f\t%.1f\t%.1f\t\t\n", r.Tool.CPUSeconds, r.Tool.PerUnit, float64(r.Tool.RSS)/1e6, r.Connect.Tool)
	_ = w.Flush()
	if r.Interruptions > 0 {
		fmt.Fprintf(&b, "\nConnections ended %d times, and were opened again.\n", r.Interruptions)
	}
	if r.Repeats > 0 {
		fmt.Fprintf(&b, "%d messages came again behind a sync.\n", r.Repeats)
	}
	for _, what := range slices.Sorted(maps.Keys(r.Errors)) {
		fmt.Fprintf(&b, "\n%d times %s", r.Errors[what], what)
	}
	if len(r.Errors) > 0 {
		fmt.Fprintln(&b)
	}
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "\nWRONG, %s: %d times, for example\n", f.Kind, f.Count)
		for _, example := range f.Examples {
			fmt.Fprintf(&b, "  %s\n", example)
		}
	}
	if !r.Failed() {
		fmt.Fprintln(&b, "\nNothing lost, doubled or out of order.")
	}
	return b.String()
}
