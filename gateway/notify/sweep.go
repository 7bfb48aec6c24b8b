package notify

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"xabar/chat"
)

const (
	sweepBatch = 500
	sweepLease = 30 * time.Second // a node that has died with waits in its hands is waited for that long
	// sweepPause is between two sweeps that found nothing to take although something is
	// due: another node has it.
	sweepPause = 100 * time.Millisecond
	retryPause = time.Second
)

// sweepOn sweeps whenever a wait ends. It need not be told of new ones: one that
// another node begins now ends later than the next look for it.
func (s *Scheduler) sweepOn(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := s.Sweep(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.log.Warn("a sweep of waiting notifications failed; it is repeated", "error", err)
			pause(ctx, retryPause)
		case n == 0:
			pause(ctx, s.untilNext(ctx))
		}
	}
}

// untilNext is how long there is nothing to do.
func (s *Scheduler) untilNext(ctx context.Context) time.Duration {
	at, any, err := s.Store.NextDue(ctx)
	if err != nil {
		return retryPause
	}
	idle := s.Policy.Wait / 2
	if !any {
		return idle
	}
	return min(max(at.Sub(s.Clock.Now()), sweepPause), idle)
}

// Sweep takes what is due, decides, and makes jobs. It returns how many waits it took;
// with 0 there is nothing more now.
func (s *Scheduler) Sweep(ctx context.Context) (int, error) {
	claimed, err := s.Store.ClaimDue(ctx, sweepBatch, sweepLease)
	if err != nil || len(claimed) == 0 {
		return 0, err
	}
	keys := make([]chat.DueKey, len(claimed))
	online := map[chat.ID]bool{}
	var users []chat.ID
	for i, due := range claimed {
		keys[i] = chat.DueKey{UserID: due.UserID, ConversationID: due.ConversationID}
		if _, ok := online[due.UserID]; !ok {
			online[due.UserID] = false
			users = append(users, due.UserID)
		}
	}
	views, err := s.Store.NotifyViews(ctx, keys)
	if err != nil {
		return 0, err
	}
	s.markOnline(ctx, users, online)
	done, sends := s.decide(claimed, views, online)
	// First the jobs: after a crash in between they are made again, and are the same.
	if err := s.Queue.Insert(ctx, s.jobs(sends)); err != nil {
		return 0, err
	}
	return len(claimed), s.Store.FinishDue(ctx, done)
}

// toSend is a wait that has come to a notification.
type toSend struct {
	chat.ClaimedDue
	view *chat.NotifyView
}

// decide applies the rules to each wait.
func (s *Scheduler) decide(claimed []chat.ClaimedDue, views []chat.NotifyView, online map[chat.ID]bool) (done []chat.DueDone, sends []toSend) {
	now := s.Clock.Now()
	first := 0
	for i, due := range claimed {
		v := &views[i]
		if due.Looks == 0 {
			first++
		}
		d := chat.DueDone{ClaimedDue: due}
		decision := s.Policy.Decide(now, due, v, online[due.UserID])
		switch decision.Verdict {
		case chat.LookAgain, chat.Hold:
			d.Again, d.Held = decision.Until, decision.Verdict == chat.Hold
			if due.Reason == chat.StillUnread && decision.Verdict == chat.LookAgain {
				d.Seq = v.LastSeq // what was read no longer counts; from now on this does
			}
		case chat.Suppress:
			s.Metrics.Suppressed(decision.Why)
		case chat.Notify:
			sends = append(sends, toSend{due, v})
		}
		if d.Again.IsZero() && (due.Reason == chat.NotDelivered || decision.Verdict == chat.Notify) {
			d.UpTo = v.LastSeq
		}
		if due.Reason == chat.NotDelivered {
			d.Next = now.Add(s.Policy.Wait)
		}
		done = append(done, d)
	}
	s.Metrics.Scheduled(first)
	return done, sends
}

// jobs makes one job for each notification and target. Waits of a user become one
// notification if quiet hours held one of them, else one each.
func (s *Scheduler) jobs(sends []toSend) []chat.NotifyJob {
	byUser := map[chat.ID][]toSend{}
	var users []chat.ID
	held := map[chat.ID]bool{}
	for _, one := range sends {
		if byUser[one.UserID] == nil {
			users = append(users, one.UserID)
		}
		byUser[one.UserID] = append(byUser[one.UserID], one)
		held[one.UserID] = held[one.UserID] || one.Held
	}
	var jobs []chat.NotifyJob
	for _, user := range users {
		waits := withoutRepeats(byUser[user])
		if held[user] {
			jobs = append(jobs, s.notification(waits)...)
			continue
		}
		for i := range waits {
			jobs = append(jobs, s.notification(waits[i:i+1])...)
		}
	}
	return jobs
}

// withoutRepeats drops a reminder of a conversation of which there is a notification
// anyway.
func withoutRepeats(waits []toSend) []toSend {
	notified := map[chat.ID]bool{}
	for _, w := range waits {
		if w.Reason == chat.NotDelivered {
			notified[w.ConversationID] = true
		}
	}
	return slices.DeleteFunc(waits, func(w toSend) bool { return w.Reason == chat.StillUnread && notified[w.ConversationID] })
}

// space makes notifications' ids out of those of their waits, so that after a crash
// the same waits become the same notification.
var space = uuid.MustParse("6d1f0c0e-6a52-4f55-9f0b-4f2f0f8d5b1c")

// maxMerged bounds the conversations that one notification names; the badge counts all.
const maxMerged = 20

func (s *Scheduler) notification(waits []toSend) []chat.NotifyJob {
	ids := make([]chat.ID, len(waits))
	for i, w := range waits {
		ids[i] = w.ID
	}
	slices.SortFunc(ids, func(a, b chat.ID) int { return bytes.Compare(a[:], b[:]) })
	var name []byte
	for _, id := range ids {
		name = append(name, id[:]...)
	}
	slices.SortStableFunc(waits, func(a, b toSend) int { return b.view.LastAt.Compare(a.view.LastAt.Time) })
	job := chat.NotifyJob{Notification: uuid.NewSHA1(space, name), UserID: waits[0].UserID, Reason: waits[0].Reason}
	for _, w := range waits[:min(len(waits), maxMerged)] {
		job.Conversations = append(job.Conversations, chat.JobConversation{ConversationID: w.ConversationID, UpTo: w.view.LastSeq})
	}
	span := s.traceDue(&job)
	defer chat.EndSpan(span, nil)
	var jobs []chat.NotifyJob
	for _, target := range s.Policy.Targets(waits[0].view) {
		if s.notifiers[target.Channel] == nil {
			continue // switched off by the operator since
		}
		job.Channel, job.TargetID = target.Channel, target.ID
		jobs = append(jobs, job)
		s.Metrics.Queued(job.Channel)
	}
	return jobs
}
