package main

import (
	"fmt"
	"strconv"
	"strings"
)

// Rate is a limit of the form RATE/s:BURST, or off.
type Rate struct {
	PerSecond float64 // 0: off
	Burst     int
}

// UnmarshalText reads a flag.
func (r *Rate) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "off" {
		*r = Rate{}
		return nil
	}
	rate, burst, ok := strings.Cut(s, "/s:")
	perSecond, err := strconv.ParseFloat(rate, 64)
	if !ok || err != nil || !(perSecond > 0 && perSecond <= 1e9) {
		return fmt.Errorf("%q is neither RATE/s:BURST (50/s:500) nor off", s)
	}
	n, err := strconv.Atoi(burst)
	if err != nil || n < 1 {
		return fmt.Errorf("%q needs a burst of at least 1", s)
	}
	*r = Rate{PerSecond: perSecond, Burst: n}
	return nil
}

// String is the form that UnmarshalText reads.
func (r Rate) String() string {
	if r.PerSecond == 0 {
		return "off"
	}
	return strconv.FormatFloat(r.PerSecond, 'f', -1, 64) + "/s:" + strconv.Itoa(r.Burst)
}
