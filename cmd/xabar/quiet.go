package main

import (
	"fmt"
	"strings"
	"time"

	"xabar/chat"
)

// Quiet is quiet hours of the form 22:00-07:00 Asia/Tashkent, or off.
type Quiet struct{ hours *chat.QuietHours }

// UnmarshalText reads a flag.
func (q *Quiet) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "off" {
		q.hours = nil
		return nil
	}
	times, zone, okZone := strings.Cut(s, " ")
	from, until, okTimes := strings.Cut(times, "-")
	start, errFrom := time.Parse("15:04", from)
	end, errUntil := time.Parse("15:04", until)
	hours := &chat.QuietHours{
		From: start.Hour()*60 + start.Minute(), Until: end.Hour()*60 + end.Minute(), TimeZone: strings.TrimSpace(zone),
	}
	if !okZone || !okTimes || errFrom != nil || errUntil != nil || hours.Check() != nil {
		return fmt.Errorf("%q is neither like 22:00-07:00 Asia/Tashkent nor off", s)
	}
	q.hours = hours
	return nil
}

// String is the form that UnmarshalText reads.
func (q Quiet) String() string {
	if q.hours == nil {
		return "off"
	}
	h := q.hours
	return fmt.Sprintf("%02d:%02d-%02d:%02d %s", h.From/60, h.From%60, h.Until/60, h.Until%60, h.TimeZone)
}
