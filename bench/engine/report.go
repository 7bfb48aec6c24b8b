//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report gathers the figures of all rounds.
type report struct {
	config *config
	peers  []*peer
	order  []string                        // figures, in the order in which they came first
	values map[string]map[string][]float64 // figure, peer, one value a round

	failures []string
}

func newReport(c *config) *report {
	return &report{config: c, values: map[string]map[string][]float64{}}
}

func (r *report) add(p *peer, f figures) {
	if !slices.Contains(r.peers, p) {
		r.peers = append(r.peers, p)
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if r.values[name] == nil {
			r.values[name] = map[string][]float64{}
			r.order = append(r.order, name)
		}
		r.values[name][p.name] = append(r.values[name][p.name], f[name])
	}
}

// fail notes that a peer could not be measured.
func (r *report) fail(p *peer, scenario string, err error) {
	if !slices.Contains(r.peers, p) {
		r.peers = append(r.peers, p)
	}
	r.failures = append(r.failures, fmt.Sprintf("%s, %s: %v", p.name, scenario, err))
}

// spread is the middle and the ends of some values.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return spread{}
	}
	return spread{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}
}

// ratio is the figure of a to that of b, formed round by round.
func (r *report) ratio(figure, a, b string) (spread, bool) {
	x, y := r.values[figure][a], r.values[figure][b]
	var ratios []float64
	for i := range min(len(x), len(y)) {
		if y[i] > 0 { // less than a tick of /proc is nothing to compare with
			ratios = append(ratios, x[i]/y[i])
		}
	}
	return spreadOf(ratios), len(ratios) > 0
}

// text is the table, what failed and the verdicts, under a line that says where and when.
func (r *report) text() (text string, met bool) {
	m := thisMachine()
	text = fmt.Sprintf("%s, %d CPUs, Linux %s, %s, Node %s, %s; %d rounds of %s\n",
		m.CPU, m.CPUs, m.Kernel, m.Go, m.Node, time.Now().UTC().Format(time.DateOnly), r.config.rounds, r.config.duration)
	text += "median (least..most), and the median ratio to ours\n" + r.table()
	for _, f := range r.failures {
		text += "FAILED " + f + "\n"
	}
	verdicts, met := r.verdicts()
	return text + verdicts, met
}

// table has a line for each figure and a column for each server: the median, the ends, and in brackets the
// ratio to ours.
func (r *report) table() string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprint(w, "\n")
	for _, p := range r.peers {
		fmt.Fprintf(w, "\t%s", p.name)
	}
	fmt.Fprint(w, "\n")
	for _, p := range r.peers {
		fmt.Fprintf(w, "\t%s", p.version)
	}
	fmt.Fprint(w, "\n")
	for _, figure := range r.order {
		fmt.Fprint(w, figure)
		for _, p := range r.peers {
			fmt.Fprintf(w, "\t%s", r.cell(figure, p))
		}
		fmt.Fprint(w, "\n")
	}
	_ = w.Flush() // a buffer does not fail
	return b.String()
}

func (r *report) cell(figure string, p *peer) string {
	values := r.values[figure][p.name]
	if len(values) == 0 {
		return "-"
	}
	s := spreadOf(values)
	text := fmt.Sprintf("%s (%s..%s)", short(s.Median), short(s.Min), short(s.Max))
	if ratio, ok := r.ratio(figure, p.name, ours); ok && p.name != ours && isCost(figure) {
		text += fmt.Sprintf(" %sx", short(ratio.Median))
	}
	return text
}

// isCost: less is better.
func isCost(figure string) bool {
	return strings.Contains(figure, "µs") || strings.Contains(figure, "kB")
}

func short(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 100:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// brief is what a measurement found, on a line.
func brief(f figures) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		parts = append(parts, name+" "+short(f[name]))
	}
	return strings.Join(parts, "; ")
}

// result is results.json.
type result struct {
	Date     string                         `json:"date"`
	Machine  machine                        `json:"machine"`
	Versions map[string]string              `json:"versions"`
	Rounds   int                            `json:"rounds"`
	Figures  map[string]map[string]measured `json:"figures"` // by figure and server
	Failures []string                       `json:"failures,omitempty"`
	Targets  []verdict                      `json:"targets"`
}

type measured struct {
	spread
	Rounds []float64 `json:"rounds"`
}

type machine struct {
	CPU    string `json:"cpu"`
	CPUs   int    `json:"cpus"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	Node   string `json:"node"`
}

func (r *report) writeJSON() error {
	out := result{
		Date: time.Now().UTC().Format(time.DateOnly), Machine: thisMachine(), Versions: map[string]string{},
		Rounds: r.config.rounds, Figures: map[string]map[string]measured{}, Failures: r.failures, Targets: r.judge(),
	}
	for _, p := range r.peers {
		out.Versions[p.name] = p.version
	}
	for figure, peers := range r.values {
		out.Figures[figure] = map[string]measured{}
		for name, values := range peers {
			out.Figures[figure][name] = measured{spreadOf(values), values}
		}
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	return r.write("results.json", append(text, '\n'))
}

func (r *report) write(name string, text []byte) error {
	if err := os.MkdirAll(r.config.out, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.config.out, name), text, 0o644)
}

func thisMachine() machine {
	m := machine{CPUs: runtime.NumCPU(), Go: runtime.Version(), Kernel: firstLine("/proc/sys/kernel/osrelease", "")}
	m.CPU = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(firstLine("/proc/cpuinfo", "model name"), "model name")), ":"))
	if out, err := exec.CommandContext(context.Background(), "node", "--version").Output(); err == nil {
		m.Node = strings.TrimSpace(string(out))
	}
	return m
}

// firstLine returns the first line of a file that starts with prefix, "" if there is none.
func firstLine(path, prefix string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, prefix) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
