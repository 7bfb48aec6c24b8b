package notify

import (
	"fmt"
	"testing"
	"time"

	"xabar/chat"
)

// TestQuietHours: what comes between 22:00 and 07:00 is told of at 07:00, in one
// notification; in three zones, in winter, in summer and in both nights of change.
func TestQuietHours(t *testing.T) {
	onBoth(t, func(f *fixture) {
		a, b, d := f.user("Ann"), f.user("Bob"), f.user("Dan")
		withAnn, withDan := f.direct(a, b), f.direct(d, b)
		nights := []struct{ zone, evening string }{
			{"Asia/Tashkent", "2027-01-15"}, {"Asia/Tashkent", "2027-07-15"},
			{"Europe/Berlin", "2027-01-16"}, {"Europe/Berlin", "2027-03-27"}, {"Europe/Berlin", "2027-07-16"}, {"Europe/Berlin", "2027-10-30"},
			{"America/New_York", "2027-01-17"}, {"America/New_York", "2027-03-13"}, {"America/New_York", "2027-07-17"}, {"America/New_York", "2027-11-06"},
		}
		for _, night := range nights {
			zone, err := time.LoadLocation(night.zone)
			f.ok(err)
			wall := func(days int, clock string) time.Time {
				f.Helper()
				day, err := time.ParseInLocation("2006-01-02", night.evening, zone)
				f.ok(err)
				at, err := time.ParseInLocation("2006-01-02 15:04:05", day.AddDate(0, 0, days).Format("2006-01-02 ")+clock, zone)
				f.ok(err)
				return at
			}
			f.set(b, chat.SettingsChange{SetQuiet: true, Quiet: &chat.QuietHours{From: 22 * 60, Until: 7 * 60, TimeZone: night.zone}})
			at := func(when time.Time, text string) string {
				return fmt.Sprintf("%v Bob %s", when.Sub(f.started), text)
			}
			to := func(when time.Time) {
				f.Helper()
				f.clock.Step(when.Sub(f.clock.Now())) // nights are not in order
			}

			to(wall(0, "21:59:30")) // told at once
			f.send(a, withAnn, "evening")
			f.elapse(20 * time.Second)
			f.sent(at(wall(0, "21:59:50"), "(1); Ann/Ann 1 evening"))
			f.move(chat.Read, b, withAnn, 1<<40)

			f.elapse(30 * time.Minute)
			f.send(a, withAnn, "night 1")
			f.elapse(time.Hour)
			f.send(a, withAnn, "night 2")
			f.elapse(wall(1, "06:59:00").Sub(f.clock.Now()))
			f.send(d, withDan, "06:59")
			f.elapse(59 * time.Second)
			f.sent()
			f.elapse(time.Second)
			f.sent(at(wall(1, "07:00:00"), "(3); Dan/Dan 1 06:59; Ann/Ann 2 night 2"))
			f.elapse(time.Hour)
			f.sent()
			if last := f.channel.all[len(f.channel.all)-1]; last.Tag != "conversations" {
				f.Errorf("the tag is %q", last.Tag)
			}
			f.move(chat.Read, b, withAnn, 1<<40)
			f.move(chat.Read, b, withDan, 1<<40)
		}
	})
}

// TestQuietHoursOver: what was delivered, muted or left in the night is not told of in
// the morning; the default of the operator counts; what fails goes on in the morning.
func TestQuietHoursOver(t *testing.T) {
	onBoth(t, func(f *fixture) {
		a, b, d := f.user("Ann"), f.user("Bob"), f.user("Dan")
		withAnn, withDan := f.direct(a, b), f.direct(d, b)
		f.s.Policy.DefaultQuiet = &chat.QuietHours{From: 8 * 60, Until: 12 * 60, TimeZone: "UTC"} // the clock begins at 9:00
		f.send(a, withAnn, "1")
		f.send(d, withDan, "2")
		f.elapse(time.Hour)
		f.move(chat.Delivered, b, withDan, 1)
		f.elapse(3 * time.Hour)
		f.sent("3h0m0s Bob (2); Ann/Ann 1 1")
		f.suppressed(chat.WhyDelivered, 1)

		f.set(b, chat.SettingsChange{SetQuiet: true, Quiet: &chat.QuietHours{TimeZone: "UTC"}}) // equal: none
		f.elapse(20 * time.Hour)
		f.send(d, withDan, "3")
		f.elapse(20 * time.Second)
		f.sent("24h0m20s Bob (3); Dan/Dan 1 3")

		// On its way when quiet hours begin: held back like any other.
		f.channel.answer = func(chat.Notification) (chat.Outcome, error) { return chat.Outcome{RetryAfter: 2 * time.Minute}, nil }
		f.send(d, withDan, "4")
		f.elapse(time.Minute)
		f.channel.answer = nil
		f.set(b, chat.SettingsChange{SetQuiet: true, Quiet: &chat.QuietHours{From: 9*60 + 1, Until: 9*60 + 30, TimeZone: "UTC"}})
		f.elapse(time.Hour)
		f.sent("24h30m0s Bob (4); Dan/Dan 2 4")
	})
}
