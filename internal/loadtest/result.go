package loadtest

import (
	"maps"
	"runtime"
	"time"
)

// Result is what a run has found.
type Result struct {
	Scenario string   `json:"scenario"`
	Server   string   `json:"server"` // the description's name
	Targets  []string `json:"targets"`
	Started  string   `json:"started"`
	Seconds  float64  `json:"seconds"` // measured
	Users    int      `json:"users"`
	Rate     float64  `json:"rate"` // asked for; 0: closed loop
	Window   int      `json:"window,omitempty"`
	Size     int      `json:"size"`

	Latency map[string]Latency `json:"latency"` // ms, by kind
	Points  []Point            `json:"points"`
	Faults  []Fault            `json:"faults"`
	Errors  map[string]int     `json:"errors"` // what requests have failed with

	// Interruptions is how many connections ended by themselves and came back (Options.Restarts).
	Interruptions int64 `json:"interruptions,omitempty"`
	// Repeats is how many messages came again live behind a sync that had them: no fault, since
	// clients keep messages by seq.
	Repeats int64 `json:"repeats,omitempty"`

	// Processes have used this much from the measurement's start until everything had arrived.
	Processes map[string]Cost `json:"processes"`
	Connect   Connecting      `json:"connect"`
	Tool      Cost            `json:"tool"`

	empty  map[string]Usage // before the first connection
	before map[string]Usage
	own    Usage
}

// Usage is of one moment.
type Usage struct {
	CPU float64 `json:"cpu"` // seconds since the process's start, its children included
	RSS int64   `json:"rss"` // bytes
}

// Cost is what a process has used, and in what units of work that is.
type Cost struct {
	CPUSeconds float64 `json:"cpuSeconds"`
	RSS        int64   `json:"rss"`       // at the end
	PerUnit    float64 `json:"perUnitUs"` // µs of CPU per message sent, or per what the scenario is about
}

// Connecting is what the connections cost that the run began with.
type Connecting struct {
	Latency    Latency            `json:"latency"`
	PerClient  map[string]float64 `json:"perClientUs"`  // CPU, µs, by process
	RSSPerConn map[string]float64 `json:"rssPerConnKB"` // by process: what its memory has grown by
	Tool       float64            `json:"toolKB"`       // the same of this process
}

// Failed says whether the server did something that it must not do.
func (r *Result) Failed() bool { return len(r.Faults) > 0 }

// unit is what the scenario's costs are counted by.
func (r *Result) unit() Kind {
	switch r.Scenario {
	case "group":
		return Received
	case "history":
		return Paged
	case "reconnect":
		return Connected
	}
	return Answered
}

// Count is how many of a kind there were.
func (r *Result) Count(k Kind) int64 { return r.Latency[k.String()].Count }

// CPU is the CPU time of all processes that were named, in µs per unit of the scenario.
func (r *Result) CPU() (perUnit float64) {
	for _, c := range r.Processes {
		perUnit += c.PerUnit
	}
	return perUnit
}

func (r *run) newResult() *Result {
	return &Result{
		Scenario: r.opts.Scenario, Server: r.desc.Name, Targets: r.opts.Targets,
		Started: r.start.UTC().Format(time.RFC3339), Users: r.opts.Users, Rate: r.opts.Rate,
		Window: r.opts.Window, Size: r.opts.Size, Processes: map[string]Cost{},
	}
}

// connected notes what the first connections cost.
func (r *Result) connected(run *run, before map[string]Usage, own Usage) {
	runtime.GC()
	n := float64(run.opts.Users)
	r.empty = before
	r.Connect.Latency = run.recorder.take()[Connected.String()]
	r.Connect.PerClient, r.Connect.RSSPerConn = map[string]float64{}, map[string]float64{}
	after, err := usageOf(run.opts.Processes)
	if err != nil { // a process that is gone is found again, and named, by begin
		return
	}
	for name, u := range after {
		r.Connect.PerClient[name] = (u.CPU - before[name].CPU) * 1e6 / n
		r.Connect.RSSPerConn[name] = float64(u.RSS-before[name].RSS) / 1000 / n
	}
	r.Connect.Tool = float64(ownUsage().RSS-own.RSS) / 1000 / n
}

// begin notes where the processes stand when the measurement starts.
func (r *Result) begin(run *run) (err error) {
	r.before, err = usageOf(run.opts.Processes)
	r.own = ownUsage()
	return err
}

func (r *Result) point(run *run, at, interval time.Duration) error {
	p := run.recorder.tick(at, interval)
	var err error
	if p.Process, err = usageOf(run.opts.Processes); err != nil {
		return err
	}
	r.Points = append(r.Points, p)
	run.view.point(r, p)
	return nil
}

// finish reads the figures after everything has arrived.
func (r *Result) finish(run *run) error {
	r.Latency = run.recorder.take()
	r.Faults = run.faults.list()
	run.mu.Lock()
	r.Errors = maps.Clone(run.errors)
	r.Interruptions, r.Repeats = run.interruptions, run.repeats.Load()
	run.mu.Unlock()
	after, err := usageOf(run.opts.Processes)
	if err != nil {
		return err
	}
	for name, u := range after {
		r.Processes[name] = r.cost(r.before[name], u)
		if r.Scenario == "idle" { // what they take in the long run, not while they come
			r.Connect.RSSPerConn[name] = float64(u.RSS-r.empty[name].RSS) / 1000 / float64(r.Users)
		}
	}
	r.Tool = r.cost(r.own, ownUsage())
	return nil
}

func (r *Result) cost(before, after Usage) Cost {
	c := Cost{CPUSeconds: after.CPU - before.CPU, RSS: after.RSS}
	if units := r.Count(r.unit()); units > 0 {
		c.PerUnit = c.CPUSeconds * 1e6 / float64(units)
	}
	return c
}
