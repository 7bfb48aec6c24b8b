package chat

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func at(t testing.TB, zone, clock string) time.Time {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	moment, err := time.ParseInLocation("2006-01-02 15:04:05", clock, location)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

// TestQuietHours in three zones: one without summer time, one whose clocks change in
// the night, one that is behind UTC; in winter, in summer and on both days of change.
func TestQuietHours(t *testing.T) {
	t.Parallel()
	const night, early = "night", "early" // 22:00 to 07:00, 02:15 to 02:45
	hours := map[string][2]int{night: {22 * 60, 7 * 60}, early: {2*60 + 15, 2*60 + 45}, "none": {8 * 60, 8 * 60}, "noon": {12 * 60, 13 * 60}}
	for name, c := range map[string]struct {
		hours, zone, now string
		end              string // in UTC; "": not quiet
	}{
		"Tashkent, winter, before":     {night, "Asia/Tashkent", "2026-01-15 21:59:59", ""},
		"Tashkent, winter, begins":     {night, "Asia/Tashkent", "2026-01-15 22:00:00", "2026-01-16 02:00:00"},
		"Tashkent, winter, midnight":   {night, "Asia/Tashkent", "2026-01-16 00:00:00", "2026-01-16 02:00:00"},
		"Tashkent, summer, 06:59":      {night, "Asia/Tashkent", "2026-07-16 06:59:00", "2026-07-16 02:00:00"},
		"Tashkent, summer, last":       {night, "Asia/Tashkent", "2026-07-16 06:59:59", "2026-07-16 02:00:00"},
		"Tashkent, summer, over":       {night, "Asia/Tashkent", "2026-07-16 07:00:00", ""},
		"Berlin, winter":               {night, "Europe/Berlin", "2026-01-15 23:30:00", "2026-01-16 06:00:00"},
		"Berlin, summer":               {night, "Europe/Berlin", "2026-07-15 23:30:00", "2026-07-16 05:00:00"},
		"Berlin, an hour shorter":      {night, "Europe/Berlin", "2026-03-28 23:00:00", "2026-03-29 05:00:00"},
		"Berlin, after the change":     {night, "Europe/Berlin", "2026-03-29 03:30:00", "2026-03-29 05:00:00"},
		"Berlin, an hour longer":       {night, "Europe/Berlin", "2026-10-24 23:00:00", "2026-10-25 06:00:00"},
		"New York, winter":             {night, "America/New_York", "2026-01-15 22:30:00", "2026-01-16 12:00:00"},
		"New York, summer":             {night, "America/New_York", "2026-07-15 22:30:00", "2026-07-16 11:00:00"},
		"New York, an hour shorter":    {night, "America/New_York", "2026-03-07 22:30:00", "2026-03-08 11:00:00"},
		"New York, an hour longer":     {night, "America/New_York", "2026-10-31 22:30:00", "2026-11-01 12:00:00"},
		"Berlin, hours that are none":  {early, "Europe/Berlin", "2026-03-29 03:15:00", ""},
		"Berlin, just before the none": {early, "Europe/Berlin", "2026-03-29 01:59:59", ""},
		"equal is none":                {"none", "Asia/Tashkent", "2026-01-15 08:00:00", ""},
		"at noon":                      {"noon", "Asia/Tashkent", "2026-01-15 12:30:00", "2026-01-15 08:00:00"},
		"not at noon":                  {"noon", "Asia/Tashkent", "2026-01-15 13:00:00", ""},
	} {
		q := &QuietHours{From: hours[c.hours][0], Until: hours[c.hours][1], TimeZone: c.zone}
		end, quiet := q.End(at(t, c.zone, c.now))
		if quiet != (c.end != "") {
			t.Errorf("%s: quiet is %v", name, quiet)
		} else if quiet && !end.Equal(at(t, "UTC", c.end)) {
			t.Errorf("%s: ends at %v, want %s", name, end, c.end)
		}
	}
	twice := &QuietHours{From: hours[early][0], Until: hours[early][1], TimeZone: "Europe/Berlin"}
	for second, want := range map[string]string{
		"2026-10-25 00:20:00": "2026-10-25 00:45:00", "2026-10-25 00:50:00": "", "2026-10-25 01:20:00": "2026-10-25 01:45:00",
	} {
		end, quiet := twice.End(at(t, "UTC", second))
		if quiet != (want != "") || quiet && !end.Equal(at(t, "UTC", want)) {
			t.Errorf("the hour that comes twice, %s UTC: %v, %v", second, end, quiet)
		}
	}
	for _, none := range []*QuietHours{nil, {From: 0, Until: 60, TimeZone: "Mars/Olympus"}} {
		if _, quiet := none.End(at(t, "UTC", "2026-01-15 00:30:00")); quiet {
			t.Errorf("%v is quiet", none)
		}
	}
}

// TestQuietHoursModel: it is quiet just while the clock on the wall says so, and End is
// the first moment at which it no longer does.
func TestQuietHoursModel(t *testing.T) {
	t.Parallel()
	zones := []string{"Asia/Tashkent", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "UTC"}
	changes := []string{"2026-03-29 01:00:00", "2026-10-25 01:00:00", "2026-03-08 07:00:00", "2026-11-01 06:00:00",
		"2026-04-04 15:00:00", "2026-10-03 15:30:00", "2011-12-30 10:00:00", "2026-07-01 00:00:00"}
	rapid.Check(t, func(r *rapid.T) {
		q := &QuietHours{
			From: rapid.IntRange(0, 1439).Draw(r, "from"), Until: rapid.IntRange(0, 1439).Draw(r, "until"),
			TimeZone: rapid.SampledFrom(zones).Draw(r, "zone"),
		}
		location, err := time.LoadLocation(q.TimeZone)
		if err != nil {
			r.Fatal(err)
		}
		now := at(t, "UTC", rapid.SampledFrom(changes).Draw(r, "change")).
			Add(time.Duration(rapid.Int64Range(-30*3600, 30*3600).Draw(r, "seconds")) * time.Second)
		says := func(moment time.Time) bool {
			local := moment.In(location)
			minute := local.Hour()*60 + local.Minute()
			if q.From <= q.Until {
				return q.From <= minute && minute < q.Until
			}
			return minute >= q.From || minute < q.Until
		}
		end, quiet := q.End(now)
		if quiet != says(now) {
			r.Fatalf("quiet is %v at %v", quiet, now.In(location))
		}
		if !quiet {
			return
		}
		if says(end) {
			r.Fatalf("it is still quiet at the end %v", end.In(location))
		}
		for moment := now; moment.Before(end); moment = moment.Add(time.Minute) {
			if !says(moment) {
				r.Fatalf("it was no longer quiet at %v, before the end %v", moment.In(location), end.In(location))
			}
		}
		if last := end.Add(-time.Nanosecond); !says(last) {
			r.Fatalf("it was not quiet just before the end %v", end.In(location))
		}
	})
}
