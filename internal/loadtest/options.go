package loadtest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Scenarios are what can be run.
var Scenarios = []string{"idle", "direct", "group", "typing", "reconnect", "history", "mixed"}

// Options say what to run. Zero values are the defaults that stand with them.
type Options struct {
	Targets     []string // URLs of the nodes; at least one
	Scenario    string   // one of Scenarios
	Description *Description

	Users     int           // connections; default 100
	Apart     bool          // the two of a direct conversation connect to different targets
	GroupSize int           // members of a group; default 100
	Rate      float64       // open loop: messages (or other units) a second; 0: closed loop
	Window    int           // closed loop: messages in flight of each sender; default 1
	Duration  time.Duration // default 30 s
	Warmup    time.Duration // before it, not measured; default none
	RampUp    time.Duration // over which connections are opened; 0: as fast as it goes
	Settle    time.Duration // for what is missing at the end; default 10 s
	Size      int           // bytes of a text; default 100
	Polling   float64       // share of the connections that poll, 0 to 1
	NoAcks    bool          // recipients acknowledge nothing
	ReadEvery int           // recipients read every so manieth message; 0: none
	Seed      int           // messages in each conversation before a history scenario; default 50
	Jitter    time.Duration // over which reconnections are spread; default 1 s
	Restarts  bool          // nodes may be restarted meanwhile: connections that end come back, see comeback.go

	// Token makes a user's token and says how others refer to the user.
	Token func(index int) (token, user string, err error)

	Processes []Process     // whose CPU and memory are measured
	Progress  io.Writer     // nil: none
	Live      bool          // Progress is a terminal, on which one view is refreshed
	Every     time.Duration // between two progress reports; default 1 s, 5 s when not Live
}

// Process is one to measure, with all its descendants.
type Process struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
}

func (o *Options) complete() error {
	if o.Description == nil {
		o.Description = Xabar()
	}
	setDefault(&o.Users, 100)
	setDefault(&o.GroupSize, 100)
	setDefault(&o.Window, 1)
	setDefault(&o.Duration, 30*time.Second)
	setDefault(&o.Settle, 10*time.Second)
	setDefault(&o.Size, 100)
	setDefault(&o.Seed, 50)
	setDefault(&o.Jitter, time.Second)
	if o.Every == 0 {
		o.Every = 5 * time.Second
		if o.Live {
			o.Every = time.Second
		}
	}
	o.GroupSize = min(o.GroupSize, o.Users)
	for i, target := range o.Targets {
		if !strings.HasPrefix(target, "http://") && !strings.HasPrefix(target, "https://") {
			return fmt.Errorf("the target %q is not a URL that starts with http:// or https://", target)
		}
		o.Targets[i] = strings.TrimSuffix(target, "/")
	}
	switch {
	case len(o.Targets) == 0:
		return errors.New("name at least one target")
	case !slices.Contains(Scenarios, o.Scenario):
		return fmt.Errorf("there is no scenario %q, but %s", o.Scenario, strings.Join(Scenarios, ", "))
	case o.Token == nil:
		return errors.New("tokens are wanted")
	case o.Users < 2 && o.Scenario != "idle":
		return errors.New("at least two users are wanted")
	case o.Rate < 0, o.Window < 1, o.Size > 2000, o.Polling < 0, o.Polling > 1, o.Duration < 0:
		return errors.New("a rate, window, size, share or duration is out of its bounds")
	}
	if o.Restarts && (o.Scenario == "reconnect" || o.Scenario == "mixed") {
		return fmt.Errorf("the scenario %s cuts connections itself, and does not go with restarts", o.Scenario)
	}
	return o.check(o.Description)
}

// check says whether the server can do what the scenario needs.
func (o *Options) check(d *Description) error {
	for event, needed := range map[string]bool{
		"openGroup": o.Scenario == "group" && d.OpenGroup.Event == "",
		"typing":    o.Scenario == "typing" && d.Typing.Event == "",
		"history":   o.Scenario == "history" && d.History.Event == "",
		"sync":      (o.Scenario == "reconnect" || o.Restarts) && d.Sync.Event == "",
		"read":      o.ReadEvery > 0 && (d.Read.Event == "" || d.ReadBy.Event == ""),
	} {
		if needed {
			return fmt.Errorf("the description of %s has no %s", d.Name, event)
		}
	}
	return nil
}

func setDefault[T int | time.Duration](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}
