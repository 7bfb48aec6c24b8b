package chat

import "time"

const minutesOfDay = 24 * 60

// End says whether it is quiet at now, and if so when that ends. It is quiet while the
// clock on the wall of the zone shows From or later and less than Until; From after
// Until is over midnight, equal is never. Where the clock is changed, what counts is
// what it shows: an hour that is skipped is not quiet, one that comes twice is quiet
// twice, and an Until that is skipped ends with the change. An unknown zone is never
// quiet: a late notification is worse than one at night.
func (q *QuietHours) End(now time.Time) (end time.Time, quiet bool) {
	if q == nil || q.From == q.Until {
		return time.Time{}, false
	}
	zone, err := time.LoadLocation(q.TimeZone)
	if err != nil {
		return time.Time{}, false
	}
	at := now.In(zone)
	for q.within(at) {
		quiet = true
		next := at.Add(q.left(at))
		// The zone's offset holds until change; up to there the clock just runs.
		if _, change := at.ZoneBounds(); !change.IsZero() && change.Before(next) {
			next = change
		}
		at = next.In(zone)
	}
	return at.UTC(), quiet
}

func (q *QuietHours) within(at time.Time) bool {
	minute := at.Hour()*60 + at.Minute()
	if q.From < q.Until {
		return q.From <= minute && minute < q.Until
	}
	return minute >= q.From || minute < q.Until
}

// left is how long a clock that just runs takes from at to Until.
func (q *QuietHours) left(at time.Time) time.Duration {
	minute := at.Hour()*60 + at.Minute()
	whole := time.Duration((q.Until-minute+minutesOfDay)%minutesOfDay) * time.Minute
	return whole - time.Duration(at.Second())*time.Second - time.Duration(at.Nanosecond())
}
