package notify

import (
	"context"

	"xabar/chat"
)

// What became of an attempt, as attribute "xabar.outcome", beside the reasons to send
// nothing.
const (
	outcomeSent = "sent"
	outcomeHeld = "held" // until quiet hours end
)

// traceDue begins the span of a notification whose wait is over, and has its jobs come
// from there.
func (s *Scheduler) traceDue(job *chat.NotifyJob) chat.Span {
	span := chat.StartSpan(s.Tracer, nil, chat.ProducerSpan, "notification.due")
	if span != nil {
		identify(span, job)
		job.Trace = span.Context()
	}
	return span
}

// traceAttempt begins the span of an attempt to send. It may come a day after its
// notification was due: so it is a trace of its own, linked with that.
func (s *Scheduler) traceAttempt(a *chat.NotifyAttempt) chat.Span {
	if s.Tracer == nil || a.Trace == nil {
		return nil
	}
	span := s.Tracer.StartLinked(a.Trace, chat.ConsumerSpan, "notification.send")
	identify(span, &a.NotifyJob)
	span.Word("xabar.channel", a.Channel)
	span.Int("xabar.attempt", int64(a.Number))
	return span
}

func identify(span chat.Span, job *chat.NotifyJob) {
	span.ID("xabar.notification.id", job.Notification)
	span.ID("xabar.user.id", job.UserID)
	span.Int("xabar.conversations", int64(len(job.Conversations)))
	if len(job.Conversations) == 1 {
		span.ID("xabar.conversation.id", job.Conversations[0].ConversationID)
		span.Int("xabar.message.seq", job.Conversations[0].UpTo)
	}
}

// became says what became of the attempt that ctx stands in.
func became(ctx context.Context, outcome string) {
	if span := chat.SpanOf(ctx); span != nil {
		span.Word("xabar.outcome", outcome)
	}
}
