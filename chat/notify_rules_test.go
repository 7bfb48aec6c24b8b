package chat

import (
	"testing"
	"time"
)

// TestDecide: what a look comes to, one condition at a time.
func TestDecide(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 15, 12, 0, 0, 0, time.UTC)
	muted, over := At(now.Add(time.Hour)), At(now.Add(-time.Second))
	night := &QuietHours{From: 11 * 60, Until: 13 * 60, TimeZone: "UTC"}
	policy := NotifyPolicy{Wait: 20 * time.Second}
	suppressed := func(why string) Decision { return Decision{Verdict: Suppress, Why: why} }
	again := func(d time.Duration) Decision { return Decision{Verdict: LookAgain, Until: now.Add(d)} }
	held := Decision{Verdict: Hold, Until: now.Add(time.Hour)}
	send := Decision{Verdict: Notify}
	for name, c := range map[string]struct {
		change func(v *NotifyView, d *ClaimedDue, p *NotifyPolicy)
		online bool
		want   Decision
	}{
		"nothing stands against it": {nil, false, send},
		"left the group":            {func(v *NotifyView, _ *ClaimedDue, _ *NotifyPolicy) { *v = NotifyView{} }, false, suppressed(WhyGone)},
		"delivered":                 {func(v *NotifyView, _ *ClaimedDue, _ *NotifyPolicy) { v.Delivered = 7 }, false, suppressed(WhyDelivered)},
		"delivered but for one":     {func(v *NotifyView, _ *ClaimedDue, _ *NotifyPolicy) { v.Delivered = 6 }, false, send},
		"read":                      {func(v *NotifyView, _ *ClaimedDue, _ *NotifyPolicy) { v.Delivered, v.Read = 7, 7 }, false, suppressed(WhyRead)},
		"notified before":           {func(v *NotifyView, _ *ClaimedDue, _ *NotifyPolicy) { v.Notified = 7 }, false, suppressed(WhyDecided)},
		"notified of less":          {func(v *NotifyView, _ *ClaimedDue, _ *NotifyPolicy) { v.Notified = 6 }, false, send},
		"erased messages":           {func(v *NotifyView, _ *ClaimedDue, _ *NotifyPolicy) { v.Undelivered = 0 }, false, suppressed(WhyGone)},
		"erased user": {func(v *NotifyView, _ *ClaimedDue, p *NotifyPolicy) {
			v.User.Name, v.Channels, p.Everybody = ErasedName, nil, []string{"webhook"}
		}, false, suppressed(WhyUnknown)},
		"muted":                     {func(v *NotifyView, _ *ClaimedDue, _ *NotifyPolicy) { v.MutedUntil = &muted }, false, suppressed(WhyMuted)},
		"no longer muted":           {func(v *NotifyView, _ *ClaimedDue, _ *NotifyPolicy) { v.MutedUntil = &over }, false, send},
		"muted in quiet hours":      {func(v *NotifyView, _ *ClaimedDue, _ *NotifyPolicy) { v.MutedUntil, v.Settings.Quiet = &muted, night }, false, suppressed(WhyMuted)},
		"wants none":                {func(v *NotifyView, _ *ClaimedDue, _ *NotifyPolicy) { v.Settings.Notify = false }, false, suppressed(WhyOff)},
		"only direct, a group":      {func(v *NotifyView, _ *ClaimedDue, _ *NotifyPolicy) { v.Settings.OnlyDirect, v.Kind = true, Group }, false, suppressed(WhyOnlyDirect)},
		"only direct, a direct one": {func(v *NotifyView, _ *ClaimedDue, _ *NotifyPolicy) { v.Settings.OnlyDirect = true }, false, send},
		"blocked":                   {func(v *NotifyView, _ *ClaimedDue, _ *NotifyPolicy) { v.Blocked = true }, false, suppressed(WhyBlocked)},
		"no channel":                {func(v *NotifyView, _ *ClaimedDue, _ *NotifyPolicy) { v.Channels = nil }, false, suppressed(WhyNoChannel)},
		"its channel switched off":  {func(v *NotifyView, _ *ClaimedDue, _ *NotifyPolicy) { v.Settings.ChannelsOff = []string{"web-push"} }, false, suppressed(WhyNoChannel)},
		"a channel for everybody": {func(v *NotifyView, _ *ClaimedDue, p *NotifyPolicy) {
			v.Channels, p.Everybody = nil, []string{"webhook"}
		}, false, send},
		"online, the first look":  {nil, true, again(10 * time.Second)},
		"online, the second look": {func(_ *NotifyView, d *ClaimedDue, _ *NotifyPolicy) { d.Looks = 1 }, true, send},
		"quiet":                   {func(v *NotifyView, _ *ClaimedDue, _ *NotifyPolicy) { v.Settings.Quiet = night }, false, held},
		"quiet by default":        {func(_ *NotifyView, _ *ClaimedDue, p *NotifyPolicy) { p.DefaultQuiet = night }, false, held},
		"quiet by default, not here": {func(v *NotifyView, _ *ClaimedDue, p *NotifyPolicy) {
			p.DefaultQuiet, v.Settings.Quiet = night, &QuietHours{TimeZone: "UTC"}
		}, false, send},
		"a reminder of what is delivered": {func(v *NotifyView, d *ClaimedDue, _ *NotifyPolicy) {
			v.Delivered, d.Reason, v.Settings.RemindAfter = 7, StillUnread, 5*time.Minute
		}, false, send},
		"a reminder, also online": {func(v *NotifyView, d *ClaimedDue, _ *NotifyPolicy) {
			v.Delivered, d.Reason, v.Settings.RemindAfter = 7, StillUnread, 5*time.Minute
		}, true, send},
		"a reminder of what was read, but not all": {func(v *NotifyView, d *ClaimedDue, _ *NotifyPolicy) {
			v.Delivered, v.Read, d.Reason, v.Settings.RemindAfter = 7, 6, StillUnread, 5*time.Minute
		}, false, again(5 * time.Minute)},
		"a reminder that is no longer wanted": {func(v *NotifyView, d *ClaimedDue, _ *NotifyPolicy) { v.Delivered, d.Reason = 7, StillUnread }, false, suppressed(WhyOff)},
	} {
		v := NotifyView{
			Member: true, Kind: Direct, LastSeq: 7, Delivered: 2, Undelivered: 5, Unread: 5, Settings: Settings{Notify: true},
			User: User{Name: "B"}, Channels: []NotifyTarget{{Channel: "web-push"}},
		}
		due, p := ClaimedDue{Due: Due{Reason: NotDelivered, Seq: 3}}, policy
		if c.change != nil {
			c.change(&v, &due, &p)
		}
		if got := p.Decide(now, due, &v, c.online); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestOutdated: what is about to be sent is looked at once more.
func TestOutdated(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 15, 12, 0, 0, 0, time.UTC)
	muted := At(now.Add(time.Hour))
	for name, c := range map[string]struct {
		change func(v *NotifyView)
		reason DueReason
		want   Decision
	}{
		"as it was":               {func(*NotifyView) {}, NotDelivered, Decision{Verdict: Notify}},
		"decided, which it is":    {func(v *NotifyView) { v.Notified = 7 }, NotDelivered, Decision{Verdict: Notify}},
		"delivered since":         {func(v *NotifyView) { v.Delivered = 5 }, NotDelivered, Decision{Verdict: Suppress, Why: WhyDelivered}},
		"delivered in part":       {func(v *NotifyView) { v.Delivered = 4 }, NotDelivered, Decision{Verdict: Notify}},
		"read since":              {func(v *NotifyView) { v.Read = 5 }, StillUnread, Decision{Verdict: Suppress, Why: WhyRead}},
		"a reminder":              {func(v *NotifyView) { v.Delivered = 7 }, StillUnread, Decision{Verdict: Notify}},
		"left":                    {func(v *NotifyView) { *v = NotifyView{} }, NotDelivered, Decision{Verdict: Suppress, Why: WhyGone}},
		"muted since":             {func(v *NotifyView) { v.MutedUntil = &muted }, NotDelivered, Decision{Verdict: Suppress, Why: WhyMuted}},
		"quiet by now":            {func(v *NotifyView) { v.Settings.Quiet = &QuietHours{From: 11 * 60, Until: 13 * 60, TimeZone: "UTC"} }, NotDelivered, Decision{Verdict: Hold, Until: now.Add(time.Hour)}},
		"its last target is gone": {func(v *NotifyView) { v.Channels = nil }, NotDelivered, Decision{Verdict: Suppress, Why: WhyNoChannel}},
	} {
		v := NotifyView{
			Member: true, Kind: Direct, LastSeq: 7, Delivered: 2, Undelivered: 5, Unread: 5, Settings: Settings{Notify: true},
			User: User{Name: "B"}, Channels: []NotifyTarget{{Channel: "web-push"}},
		}
		c.change(&v)
		if got := (NotifyPolicy{}).Outdated(now, c.reason, 5, &v); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
