package doctor

import (
	"fmt"
	"time"
)

// How far clocks may be apart. Tokens expire, revocations are learned and presence is renewed by
// them; nodes count on less than 30 s.
const (
	clockWarning = time.Second
	clockProblem = 10 * time.Second
)

// ClockSample is another clock as it was read from here.
type ClockSample struct {
	Of     string        // whose
	Ahead  time.Duration // of ours; negative: behind
	Within time.Duration // half of the time that the question took: Ahead is not known better
}

// sampleClock reads a clock. now is ours.
func sampleClock(of string, now func() time.Time, read func() (time.Time, error)) (ClockSample, error) {
	before := now()
	theirs, err := read()
	if err != nil {
		return ClockSample{}, err
	}
	took := now().Sub(before)
	return ClockSample{Of: of, Ahead: theirs.Sub(before.Add(took / 2)), Within: took / 2}, nil
}

// Clock compares this machine's clock with those that were read on the way, and looks for time zones.
func Clock(r *Report, now func() time.Time, samples []ClockSample) {
	s := r.Section("clock")
	if len(samples) == 0 {
		s.OK("time", "%s; there is no other clock to compare it with", now().UTC().Format(time.RFC3339))
	}
	for _, c := range samples {
		off := max(c.Ahead.Abs()-c.Within, 0)
		direction := "ahead of"
		if c.Ahead < 0 {
			direction = "behind"
		}
		found := fmt.Sprintf("%s's is %s %s this machine's", c.Of, rounded(c.Ahead.Abs()), direction)
		do := "synchronise the clocks of all machines (chrony, systemd-timesyncd); order does not depend on them, but tokens, presence and revocations do"
		switch {
		case off >= clockProblem:
			s.Problem("time", do, "%s", found)
		case off >= clockWarning:
			s.Warn("time", do, "%s", found)
		default:
			s.OK("time", "%s's agrees, within %s", c.Of, rounded(max(c.Ahead.Abs(), c.Within)))
		}
	}
	zone := "Asia/Tashkent"
	if _, err := time.LoadLocation(zone); err != nil {
		s.Problem("time zones", "install tzdata: quiet hours are kept in users' own zones", "the zone %s is not known: %v", zone, err)
		return
	}
	s.OK("time zones", "known")
}
