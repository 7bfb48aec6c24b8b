package chat

import (
	"slices"
	"time"
)

// Verdict is what a look at a waiting notification comes to.
type Verdict uint8

// The verdicts.
const (
	Suppress  Verdict = iota + 1 // nothing is sent; Decision.Why says why
	LookAgain                    // not yet; Decision.Until says when
	Hold                         // quiet hours; Decision.Until says when they end
	Notify                       // now
)

// Decision is a verdict with what belongs to it.
type Decision struct {
	Verdict Verdict
	Why     string // of Suppress: a label for metrics
	Until   time.Time
}

// Why nothing is sent.
const (
	WhyGone       = "gone"         // the member left, or the messages were erased
	WhyDelivered  = "delivered"    // to some device
	WhyRead       = "read"         // on some device
	WhyDecided    = "decided"      // it was notified, or suppressed, before
	WhyMuted      = "muted"        // the conversation
	WhyOff        = "off"          // the user wants none
	WhyOnlyDirect = "only_direct"  // the user wants none of groups
	WhyBlocked    = "blocked"      // one side blocks the other
	WhyNoChannel  = "no_channel"   // there is no way to reach the user, or it is switched off
	WhyOutdated   = "outdated"     // between the decision and the sending things changed
	WhyUnknown    = "unknown_user" // erased
)

// NotifyPolicy is what the operator decides.
type NotifyPolicy struct {
	Wait         time.Duration // between the message and the look
	DefaultQuiet *QuietHours   // of users who set none
	// Everybody are channels that need no target of the user's.
	Everybody []string
}

// onlineGrace is how much longer a wait lasts, once, for a user who is online at its
// end: it has just come back, and its catch-up is on the way.
func (p NotifyPolicy) onlineGrace() time.Duration { return min(p.Wait/2, 10*time.Second) }

// Decide applies the rules to a wait that has ended.
func (p NotifyPolicy) Decide(now time.Time, due ClaimedDue, v *NotifyView, online bool) Decision {
	if why := v.obsolete(due.Reason); why != "" {
		return Decision{Verdict: Suppress, Why: why}
	}
	if due.Reason == StillUnread {
		if wait := v.Settings.RemindAfter; wait == 0 {
			return Decision{Verdict: Suppress, Why: WhyOff}
		} else if v.Read >= due.Seq { // later messages have not waited as long
			return Decision{Verdict: LookAgain, Until: now.Add(wait)}
		}
	}
	if why := p.unwanted(now, v); why != "" {
		return Decision{Verdict: Suppress, Why: why}
	}
	if online && due.Looks == 0 && due.Reason == NotDelivered {
		return Decision{Verdict: LookAgain, Until: now.Add(p.onlineGrace())}
	}
	if end, quiet := p.quiet(v).End(now); quiet {
		return Decision{Verdict: Hold, Until: end}
	}
	return Decision{Verdict: Notify}
}

// obsolete says why there is nothing to tell, if so.
func (v *NotifyView) obsolete(reason DueReason) string {
	switch {
	case !v.Member:
		return WhyGone
	case v.Read >= v.LastSeq:
		return WhyRead
	case reason == NotDelivered && v.Delivered >= v.LastSeq:
		return WhyDelivered
	case v.Notified >= v.LastSeq:
		return WhyDecided
	case v.Count(reason) == 0:
		return WhyGone
	}
	return ""
}

// unwanted says why the user does not want to hear of it, if so.
func (p NotifyPolicy) unwanted(now time.Time, v *NotifyView) string {
	switch {
	case v.User.Name == ErasedName && v.User.ExternalID == nil && len(v.Channels) == 0: // AdminStore.ErasePerson
		return WhyUnknown
	case v.MutedUntil != nil && v.MutedUntil.After(now):
		return WhyMuted
	case !v.Settings.Notify:
		return WhyOff
	case v.Settings.OnlyDirect && v.Kind == Group:
		return WhyOnlyDirect
	case v.Blocked:
		return WhyBlocked
	case len(p.Targets(v)) == 0:
		return WhyNoChannel
	}
	return ""
}

// Count is the number of messages that a notification for this reason tells of.
func (v *NotifyView) Count(reason DueReason) int64 {
	if reason == StillUnread {
		return v.Unread
	}
	return v.Undelivered
}

// Targets are where the user is reached now. Those of channels for everybody have no
// id.
func (p NotifyPolicy) Targets(v *NotifyView) []NotifyTarget {
	var targets []NotifyTarget
	for _, channel := range p.Everybody {
		targets = append(targets, NotifyTarget{UserID: v.UserID, Channel: channel})
	}
	targets = append(targets, v.Channels...)
	return slices.DeleteFunc(targets, func(t NotifyTarget) bool { return slices.Contains(v.Settings.ChannelsOff, t.Channel) })
}

func (p NotifyPolicy) quiet(v *NotifyView) *QuietHours {
	if v.Settings.Quiet != nil {
		return v.Settings.Quiet
	}
	return p.DefaultQuiet
}

// Outdated looks at a notification that is about to be sent, maybe again after hours:
// it says why not, or until when to hold it back. upTo is the last message it was
// decided for.
func (p NotifyPolicy) Outdated(now time.Time, reason DueReason, upTo int64, v *NotifyView) Decision {
	switch {
	case !v.Member:
		return Decision{Verdict: Suppress, Why: WhyGone}
	case v.Read >= upTo:
		return Decision{Verdict: Suppress, Why: WhyRead}
	case reason == NotDelivered && v.Delivered >= upTo:
		return Decision{Verdict: Suppress, Why: WhyDelivered}
	case v.Count(reason) == 0:
		return Decision{Verdict: Suppress, Why: WhyGone}
	}
	if why := p.unwanted(now, v); why != "" {
		return Decision{Verdict: Suppress, Why: why}
	}
	if end, quiet := p.quiet(v).End(now); quiet {
		return Decision{Verdict: Hold, Until: end}
	}
	return Decision{Verdict: Notify}
}
