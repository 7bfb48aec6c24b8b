//go:build linux

package main

import (
	"bytes"
	"fmt"
	"text/tabwriter"
)

// A target is what a figure of ours may be at most: as a ratio to a peer's, or by itself.
type target struct {
	figure string
	peer   string // "": max is in the figure's own unit
	max    float64
}

var targets = []target{
	{fanOut1, floor, 1.15},
	{fanOut8, floor, 0.6},
	{fanOut1, node, 0.4},
	{fanOut8, node, 0.4},
	{echoCPU, floor, 1.2},
	{echoCPU, node, 0.5},
	{idleRSS, "", 10},
	{"upgraded " + idleRSS, "", 12},
	{idleCPU, node, 0.5},
	{connectCPU, node, 0.4},
	{"upgraded " + connectCPU, node, 0.4},
	{churnFactor, "", 1.3},
}

// verdict is a target with what was found.
type verdict struct {
	Figure string  `json:"figure"`
	To     string  `json:"ratioTo,omitempty"`
	Max    float64 `json:"max"`
	Found  spread  `json:"found"`
	Met    bool    `json:"met"`
}

// judge holds what was measured against the targets.
func (r *report) judge() (list []verdict) {
	for _, t := range targets {
		v := verdict{Figure: t.figure, To: t.peer, Max: t.max}
		if t.peer == "" {
			values := r.values[t.figure][ours]
			if len(values) == 0 {
				continue
			}
			v.Found = spreadOf(values)
		} else {
			found, ok := r.ratio(t.figure, ours, t.peer)
			if !ok {
				continue
			}
			v.Found = found
		}
		v.Met = v.Found.Median <= t.max
		list = append(list, v)
	}
	return list
}

// verdicts prints the targets and says whether all are met.
func (r *report) verdicts() (text string, met bool) {
	met = true
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprint(w, "\ntarget\tat most\tfound (median, ends)\t\n")
	for _, v := range r.judge() {
		name, word := v.Figure, "met"
		if v.To != "" {
			name += ", ratio to " + v.To
		}
		if !v.Met {
			word, met = fmt.Sprintf("MISSED by %.0f %%", 100*(v.Found.Median/v.Max-1)), false
		}
		fmt.Fprintf(w, "%s\t%s\t%s (%s..%s)\t%s\n", name, short(v.Max), short(v.Found.Median), short(v.Found.Min), short(v.Found.Max), word)
	}
	_ = w.Flush() // a buffer does not fail
	return b.String(), met
}
