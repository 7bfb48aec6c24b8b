package notify

import (
	"context"
	"errors"
	"slices"
	"time"

	"xabar/chat"
)

// Bounds of an attempt's life.
const (
	// giveUp is the age at which a notification that was only put off so far (a channel
	// that always wants a pause) is given up.
	giveUp = 24 * time.Hour
	// minPause keeps a pause of nothing from becoming a busy loop.
	minPause = time.Second
)

// Reasons of the sending itself to send nothing.
const (
	whyTargetGone = "target_gone" // removed, or somebody else's, since
	whySwitched   = "channel_off" // by the user, since
)

// send is chat.NotifyWork.
func (s *Scheduler) send(ctx context.Context, a chat.NotifyAttempt) (again time.Duration, permanent bool, err error) {
	span := s.traceAttempt(&a)
	again, permanent, err = s.attempt(chat.WithSpan(ctx, span), a)
	if span != nil {
		span.Int("xabar.again_ms", again.Milliseconds())
		span.End(err)
	}
	return again, permanent, err
}

func (s *Scheduler) attempt(ctx context.Context, a chat.NotifyAttempt) (again time.Duration, permanent bool, err error) {
	notifier := s.notifiers[a.Channel]
	if notifier == nil {
		return 0, true, errors.New("this node has no such channel")
	}
	n, target, d, err := s.render(ctx, a)
	switch {
	case err != nil:
		return s.failed(ctx, a, err)
	case d.Verdict == chat.Suppress:
		s.Metrics.Suppressed(d.Why)
		became(ctx, d.Why)
		return 0, false, nil
	case d.Verdict == chat.Hold:
		became(ctx, outcomeHeld)
		return max(d.Until.Sub(s.Clock.Now()), minPause), false, nil
	}
	outcome, err := notifier.Notify(ctx, n, target.Target)
	if outcome.Gone {
		s.Metrics.TargetGone(a.Channel)
		became(ctx, whyTargetGone)
		if target.ID != (chat.ID{}) {
			if err := s.Store.DropNotifyTarget(ctx, target.ID); err != nil {
				return s.failed(ctx, a, err)
			}
		}
		return 0, false, nil
	}
	switch {
	case err != nil:
		return s.failed(ctx, a, err)
	case outcome.RetryAfter > 0 && s.Clock.Now().Sub(a.CreatedAt) > giveUp:
		s.Metrics.Failed(a.Channel)
		return 0, true, errors.New("the channel wanted a pause for a whole day")
	case outcome.RetryAfter > 0:
		s.Metrics.Retried(a.Channel)
		return max(outcome.RetryAfter, minPause), false, nil
	case outcome.Sent:
		s.Metrics.Sent(a.Channel)
		became(ctx, outcomeSent)
	}
	return 0, false, nil
}

// failed is an attempt that failed; what is refused for good is not repeated.
func (s *Scheduler) failed(ctx context.Context, a chat.NotifyAttempt, err error) (time.Duration, bool, error) {
	refused := errors.Is(err, chat.ErrRefused)
	if refused || a.Last {
		s.Metrics.Failed(a.Channel)
		s.log.WarnContext(ctx, "a notification failed for good", "channel", a.Channel, "user", a.UserID, "attempt", a.Number, "error", err)
	} else {
		s.Metrics.Retried(a.Channel)
		s.log.InfoContext(ctx, "a notification failed; it will be tried again", "channel", a.Channel, "user", a.UserID, "attempt", a.Number, "error", err)
	}
	return 0, refused, err
}

// render looks again and says what is to be sent now, and where; or with another
// verdict than chat.Notify, that nothing is.
func (s *Scheduler) render(ctx context.Context, a chat.NotifyAttempt) (n chat.Notification, target chat.NotifyTarget, d chat.Decision, err error) {
	keys := make([]chat.DueKey, len(a.Conversations))
	for i, c := range a.Conversations {
		keys[i] = chat.DueKey{UserID: a.UserID, ConversationID: c.ConversationID}
	}
	views, err := s.Store.NotifyViews(ctx, keys)
	if err != nil {
		return n, target, d, err
	}
	n = chat.Notification{ID: a.Notification.String()}
	d = s.current(&n, a, views)
	if d.Verdict != chat.Notify {
		return n, target, d, nil
	}
	if slices.Contains(views[0].Settings.ChannelsOff, a.Channel) {
		return n, target, chat.Decision{Verdict: chat.Suppress, Why: whySwitched}, nil
	}
	if target, err = s.target(ctx, a); err != nil {
		return n, target, d, err
	}
	if target.Channel == "" {
		return n, target, chat.Decision{Verdict: chat.Suppress, Why: whyTargetGone}, nil
	}
	n.Badge, err = s.Store.UnreadTotal(ctx, a.UserID)
	return n, target, d, err
}

// current puts into n what still is to be told. The decision is that of the last
// conversation that is not, if none is; a single one that is held back holds back all.
func (s *Scheduler) current(n *chat.Notification, a chat.NotifyAttempt, views []chat.NotifyView) chat.Decision {
	now := s.Clock.Now()
	nothing := chat.Decision{Verdict: chat.Suppress, Why: chat.WhyGone}
	for i := range views {
		v := &views[i]
		d := s.Policy.Outdated(now, a.Reason, a.Conversations[i].UpTo, v)
		switch d.Verdict {
		case chat.Hold:
			return d
		case chat.Notify:
			n.User, n.Language, n.HideText = v.User, v.Settings.Language, v.Settings.HideText
			n.Conversations = append(n.Conversations, chat.NotifiedConversation{
				ConversationID: v.ConversationID, Kind: v.Kind, Title: v.Title, SenderName: v.SenderName,
				Count: v.Count(a.Reason), Preview: v.Text, LastSeq: v.LastSeq,
			})
		default:
			nothing = d
		}
	}
	switch len(n.Conversations) {
	case 0:
		return nothing
	case 1:
		n.Tag = "conversation:" + n.Conversations[0].ConversationID.String()
	default:
		n.Tag = "conversations"
	}
	return chat.Decision{Verdict: chat.Notify}
}

// target is where the job goes; one without a channel is gone.
func (s *Scheduler) target(ctx context.Context, a chat.NotifyAttempt) (chat.NotifyTarget, error) {
	if a.TargetID == (chat.ID{}) {
		return chat.NotifyTarget{UserID: a.UserID, Channel: a.Channel}, nil
	}
	targets, err := s.Store.NotifyTargets(ctx, a.UserID)
	for _, t := range targets {
		if t.ID == a.TargetID {
			return t, nil
		}
	}
	return chat.NotifyTarget{}, err
}
