package main

import (
	"fmt"
	"strconv"
	"strings"
)

// Rate is a limit of the form RATE/s:BURST (or /m, /h), or off.
type Rate struct {
	PerSecond float64 // 0: off
	Burst     int
}

// seconds of the units in which a rate can be given.
var seconds = map[string]float64{"s": 1, "m": 60, "h": 3600}

// UnmarshalText reads a flag.
func (r *Rate) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "off" {
		*r = Rate{}
		return nil
	}
	rate, burst, ok := strings.Cut(s, ":")
	rate, unit, okUnit := strings.Cut(rate, "/")
	amount, err := strconv.ParseFloat(rate, 64)
	if !ok || !okUnit || err != nil || seconds[unit] == 0 || !(amount > 0 && amount <= 1e9) {
		return fmt.Errorf("%q is neither RATE/s:BURST (50/s:500; /m and /h too) nor off", s)
	}
	n, err := strconv.Atoi(burst)
	if err != nil || n < 1 {
		return fmt.Errorf("%q needs a burst of at least 1", s)
	}
	*r = Rate{PerSecond: amount / seconds[unit], Burst: n}
	return nil
}

// String is the form that UnmarshalText reads.
func (r Rate) String() string {
	if r.PerSecond == 0 {
		return "off"
	}
	return strconv.FormatFloat(r.PerSecond, 'f', -1, 64) + "/s:" + strconv.Itoa(r.Burst)
}

// Count is a number of things, or off.
type Count int

// UnmarshalText reads a flag.
func (c *Count) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "off" {
		*c = 0
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is neither a number from 1 nor off", s)
	}
	*c = Count(n)
	return nil
}

// String is the form that UnmarshalText reads.
func (c Count) String() string {
	if c == 0 {
		return "off"
	}
	return strconv.Itoa(int(c))
}
