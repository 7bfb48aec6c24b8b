package main

import (
	"fmt"
	"slices"
	"time"
)

// result is one measurement.
type result struct {
	count     int // messages
	perSecond float64
	cpu       time.Duration // PostgreSQL's
	latencies []time.Duration
}

// add joins a further turn of the same measurement.
func (r *result) add(turn result) {
	seconds := float64(turn.count) / max(turn.perSecond, 1)
	if r.perSecond > 0 {
		seconds += float64(r.count) / r.perSecond
	}
	r.count += turn.count
	r.perSecond = float64(r.count) / max(seconds, 1e-9)
	r.cpu += turn.cpu
	r.latencies = append(r.latencies, turn.latencies...)
}

func (r result) cpuEach() float64 { return float64(r.cpu.Microseconds()) / float64(max(r.count, 1)) }

func (r result) percentile(p float64) time.Duration {
	if len(r.latencies) == 0 {
		return 0
	}
	slices.Sort(r.latencies)
	return r.latencies[min(int(p*float64(len(r.latencies))), len(r.latencies)-1)]
}

func (r result) String() string {
	return fmt.Sprintf("%8.0f/s  PostgreSQL %5.1f µs each  p50 %6.2f ms  p99 %6.2f ms", r.perSecond, r.cpuEach(),
		ms(r.percentile(0.5)), ms(r.percentile(0.99)))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// median of a figure over rounds.
func median(all []result, figure func(result) float64) float64 {
	values := make([]float64, len(all))
	for i, r := range all {
		values[i] = figure(r)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// report prints the targets; what was not measured is left out.
func report(series map[string][]result, reads []read) (met bool) {
	met = true
	check := func(what string, value, bound float64, atLeast bool) {
		ok, sign := value <= bound, "<="
		if atLeast {
			ok, sign = value >= bound, ">="
		}
		word := "met"
		if !ok {
			word, met = "MISSED", false
		}
		fmt.Printf("%-62s %8.2f  (%s %g)  %s\n", what, value, sign, bound, word)
	}
	perSecond := func(r result) float64 { return r.perSecond }
	p99 := func(r result) float64 { return ms(r.percentile(0.99)) }
	fmt.Println()
	if peer, send := series["peer"], series["send"]; peer != nil && send != nil {
		check("sends/s at saturation, times pgbench's transactions", median(send, perSecond)/median(peer, perSecond), 4, true)
	}
	if send := series["send"]; send != nil {
		check("PostgreSQL CPU for a send, µs", median(send, result.cpuEach), 50, false)
	}
	if complete := series["complete"]; complete != nil {
		check("PostgreSQL CPU for a complete direct message, µs", median(complete, result.cpuEach), 75, false)
	}
	if peer, rate := series["peer-rate"], series["rate"]; peer != nil && rate != nil {
		check("p99 at the rate, times the single transaction's", median(rate, p99)/median(peer, p99), 1.5, false)
	}
	for i, r := range reads {
		if i == 0 { // before anything is settled
			fmt.Printf("PostgreSQL CPU, ms: %-42s %8.2f\n", r.name, ms(r.cpu))
			continue
		}
		check("PostgreSQL CPU, ms: "+r.name, ms(r.cpu), 3, false)
	}
	return met
}
