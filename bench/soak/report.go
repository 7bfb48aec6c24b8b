package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"xabar/bench/soak/check"
)

// report is the outcome, as JSON.
type report struct {
	Seed     uint64         `json:"seed"`
	Duration string         `json:"duration"`
	Took     float64        `json:"took"` // seconds, all together
	Nodes    int            `json:"nodes"`
	Users    int            `json:"users"`
	Devices  int            `json:"devices"`
	Injected map[string]int `json:"faults"`

	Acknowledged int            `json:"acknowledged"` // messages
	Repeats      int64          `json:"repeats"`      // sends that were tried again
	Worst        float64        `json:"worst_answer"` // seconds from the first try of a send to its answer
	Stored       int            `json:"stored"`
	Holes        int64          `json:"holes"`
	Heard        int64          `json:"heard"`  // new messages, live, on all devices
	Synced       int64          `json:"synced"` // new messages by sync
	Again        int64          `json:"again"`  // messages that the device held already
	Connects     int64          `json:"connects"`
	FailedDials  int64          `json:"failed_connects"`
	Pages        int64          `json:"pages_of_history"`
	Reads        int64          `json:"reads"`
	Typed        int64          `json:"typed"`
	Looks        int            `json:"looks_at_positions"`
	Closings     map[string]int `json:"closings"`
	Closed       map[string]int `json:"connections_closed"` // by nodes' words, as far as they were measured before they ended
	Refusals     map[string]int `json:"retryable_refusals"`
	Logged       map[string]int `json:"log"`

	Checks  []checked      `json:"checks"`
	Samples []check.Sample `json:"samples"`
	Wrong   []check.Found  `json:"wrong"`
}

func (s *soak) report() *report {
	st := &s.stats
	_, acknowledged := s.sends.Counts()
	return &report{
		Seed: s.opts.seed, Duration: s.opts.duration.String(), Took: time.Since(s.start).Seconds(),
		Nodes: nodes, Users: len(s.users), Devices: len(s.devices), Injected: s.injected,
		Acknowledged: acknowledged, Repeats: st.repeats.Load(), Worst: st.worst.Seconds(), Stored: s.stored, Holes: s.holes,
		Heard: st.heard.Load(), Synced: st.synced.Load(), Again: st.again.Load(), Connects: st.connects.Load(),
		FailedDials: st.failed.Load(), Pages: st.pages.Load(), Reads: st.reads.Load(), Typed: st.typed.Load(), Looks: s.looks,
		Closings: st.closings, Closed: s.closedWhy(), Refusals: st.refusals, Logged: st.logged,
		Checks: s.checks, Samples: append(s.fresh, s.samples...), Wrong: s.faults.List(),
	}
}

// ok says that nothing is wrong.
func (r *report) ok() bool { return len(r.Wrong) == 0 }

// text is the report for people.
func (r *report) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nSoak of %s, seed %d: %d users with %d devices on %d nodes; %.0f s in all\n\n", r.Duration, r.Seed, r.Users, r.Devices, r.Nodes, r.Took)
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("faults", "%s", counts(r.Injected))
	row("messages", "%d acknowledged, %d stored, %d numbers left as holes; %d sends repeated, the longest answered after %.1f s",
		r.Acknowledged, r.Stored, r.Holes, r.Repeats, r.Worst)
	row("devices", "%d messages heard live, %d by sync, %d again; %d connections, %d attempts that failed", r.Heard, r.Synced, r.Again, r.Connects, r.FailedDials)
	row("besides", "%d pages of history, %d reads, %d typing events; positions compared with devices %d times", r.Pages, r.Reads, r.Typed, r.Looks)
	row("connections ended", "%s", counts(r.Closed))
	row("told to come back", "%s", counts(r.Closings))
	row("told to try again", "%s", counts(r.Refusals))
	row("nodes' log", "%s", counts(r.Logged))
	_ = w.Flush() // a builder does not fail
	r.samplesText(&b)
	fmt.Fprintln(&b)
	for _, c := range r.Checks {
		word := "ok   "
		if !c.OK {
			word = "WRONG"
		}
		fmt.Fprintf(&b, "  %s  %s (%.1f s)\n", word, c.What, c.Took)
	}
	for _, found := range r.Wrong {
		fmt.Fprintf(&b, "\nWRONG, %s: %d times, for example\n", found.Kind, found.Count)
		for _, example := range found.Examples {
			fmt.Fprintf(&b, "  %s\n", example)
		}
	}
	if r.ok() {
		fmt.Fprintln(&b, "\nNothing lost, doubled, reordered or left behind.")
	} else {
		fmt.Fprintf(&b, "\nFAILED. The same faults again: make soak SOAK=%s SEED=%d\n", r.Duration, r.Seed)
	}
	return b.String()
}

// samplesText shows the first and the last sample of each life of a node that has two.
func (r *report) samplesText(b *strings.Builder) {
	fmt.Fprintf(b, "\nAt calm moments, after a garbage collection (tolerance: %d goroutines, %.0f %% and %.0f MB of heap):\n\n",
		tolerance.Goroutines, tolerance.Heap*100, float64(tolerance.HeapBytes)/1e6)
	w := tabwriter.NewWriter(b, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "node\tlife\tat s\tconnections\tgoroutines\theap MB\tin use MB\tRSS MB\t")
	mb := func(bytes int) float64 { return float64(bytes) / 1e6 }
	for _, n := range r.lives() {
		for _, s := range []check.Sample{n[0], n[len(n)-1]} {
			fmt.Fprintf(w, "%d\t%d\t%.0f\t%d\t%d\t%.1f\t%.1f\t%.1f\t\n", s.Node, s.Life, s.At.Seconds(), s.Connections, s.Goroutines, mb(s.Heap), mb(s.Inuse), mb(s.RSS))
			if len(n) == 1 {
				break
			}
		}
	}
	_ = w.Flush()
}

// lives groups the samples with clients by node and life.
func (r *report) lives() (lives [][]check.Sample) {
	for node := 1; node <= r.Nodes; node++ {
		byLife := map[int][]check.Sample{}
		last := 0
		for _, s := range r.Samples {
			if s.Node == node && s.Connections > 0 {
				byLife[s.Life] = append(byLife[s.Life], s)
				last = max(last, s.Life)
			}
		}
		for life := 0; life <= last; life++ {
			if len(byLife[life]) > 0 {
				lives = append(lives, byLife[life])
			}
		}
	}
	return lives
}
