package centrifugo

import (
	"context"
	"os"
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"xabar/bench/internal/proc"
	"xabar/internal/loadtest"
)

// measure drives the load and reads the figures.
func (r *run) measure(ctx context.Context) (*loadtest.Result, error) {
	runtime.GC() // what connecting has left behind is not the load's
	r.mu.Lock()
	for range r.opts.Window {
		r.send()
	}
	r.mu.Unlock()
	if !sleep(ctx, r.opts.Warmup) {
		return nil, ctx.Err()
	}
	server, tool, err := r.usage()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.reset()
	r.mu.Unlock()
	start := time.Now()
	if !sleep(ctx, r.opts.Duration) {
		return nil, ctx.Err()
	}
	seconds := time.Since(start).Seconds()
	r.end(ctx)
	serverAfter, toolAfter, err := r.usage()
	if err != nil {
		return nil, err
	}
	return r.result(seconds, serverAfter-server, toolAfter-tool), nil
}

// usage is the CPU time of the server and of this process. The server has no child processes.
func (r *run) usage() (server, tool time.Duration, err error) {
	if server, err = proc.CPU(r.opts.PID); err != nil {
		return 0, 0, err
	}
	tool, err = proc.CPU(os.Getpid())
	return server, tool, err
}

// end waits for what is on its way, and a little for what comes twice.
func (r *run) end(ctx context.Context) {
	for deadline := time.Now().Add(r.opts.Settle); time.Now().Before(deadline); {
		r.mu.Lock()
		r.ending = true
		missing := len(r.flying)
		r.mu.Unlock()
		if missing == 0 || !sleep(ctx, 20*time.Millisecond) {
			break
		}
	}
	sleep(ctx, 200*time.Millisecond)
}

// sleep says whether it was not interrupted.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(d.Microseconds(), 1), longest.Microseconds())) // it is within the bounds
}

// reset begins a phase. Call it with mu, or before there are connections.
func (r *run) reset() {
	r.answered = hdrhistogram.New(1, longest.Microseconds(), 3)
	r.received = hdrhistogram.New(1, longest.Microseconds(), 3)
}

// result judges what has not come, and sums up.
func (r *run) result(seconds float64, server, tool time.Duration) *loadtest.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n, f := range r.flying {
		r.fault("lost", "message %d: answered %t, missing at %d of %d members", n, f.answered, f.left, len(r.members))
	}
	result := &loadtest.Result{
		Scenario: "group", Server: "centrifugo", Targets: []string{r.opts.URL}, Started: r.start.UTC().Format(time.RFC3339),
		Seconds: seconds, Users: r.opts.Clients, Window: r.opts.Window, Size: r.opts.Size,
		Latency: map[string]loadtest.Latency{
			loadtest.Answered.String(): latency(r.answered), loadtest.Received.String(): latency(r.received),
		},
	}
	for _, f := range r.faults {
		result.Faults = append(result.Faults, *f)
	}
	cost := func(cpu time.Duration) loadtest.Cost {
		return loadtest.Cost{CPUSeconds: cpu.Seconds(), PerUnit: cpu.Seconds() * 1e6 / float64(max(1, r.received.TotalCount()))}
	}
	result.Processes, result.Tool = map[string]loadtest.Cost{"nodes": cost(server)}, cost(tool)
	return result
}

func latency(h *hdrhistogram.Histogram) loadtest.Latency {
	ms := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
	return loadtest.Latency{
		Count: h.TotalCount(), Mean: h.Mean() / 1000, P50: ms(50), P90: ms(90), P99: ms(99), P999: ms(99.9),
		Max: float64(h.Max()) / 1000,
	}
}
