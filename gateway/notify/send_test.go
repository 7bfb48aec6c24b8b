package notify

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"xabar/chat"
)

// TestTargets: each is told; one that is gone is removed, and its notification with it.
func TestTargets(t *testing.T) {
	onBoth(t, func(f *fixture) {
		a, b := f.user("Ann"), f.user("Bob")
		c := f.direct(a, b)
		_, err := f.store.AddNotifyTarget(f.ctx, b, chat.ChannelWebPush, "phone", json.RawMessage(`"phone"`))
		f.ok(err)
		f.send(a, c, "1")
		f.elapse(time.Minute)
		f.sent("20s Bob (1); Ann/Ann 1 1", "20s Bob (1); Ann/Ann 1 1")
		if all := f.channel.all; all[0].ID != all[1].ID || all[0].ID == "" {
			f.Errorf("ids %q and %q", all[0].ID, all[1].ID)
		}

		f.channel.answer = func(chat.Notification) (chat.Outcome, error) { return chat.Outcome{Gone: true}, nil }
		f.send(a, c, "2")
		f.elapse(time.Minute)
		if targets, err := f.store.NotifyTargets(f.ctx, b); err != nil || len(targets) != 0 || f.metrics.gone != 2 {
			f.Errorf("left are %+v, %v; %d gone", targets, err, f.metrics.gone)
		}
		f.channel.answer = nil
		f.send(a, c, "3")
		f.elapse(time.Hour)
		f.sent()
		f.suppressed(chat.WhyNoChannel, 1)
	})
}

// TestOutcomes: pauses, failures and refusals.
func TestOutcomes(t *testing.T) {
	onBoth(t, func(f *fixture) {
		a, b := f.user("Ann"), f.user("Bob")
		c := f.direct(a, b)
		answers := func(all ...any) {
			f.channel.answer = func(chat.Notification) (chat.Outcome, error) {
				if len(all) == 0 {
					return chat.Outcome{Sent: true}, nil
				}
				next := all[0]
				all = all[1:]
				if err, ok := next.(error); ok {
					return chat.Outcome{}, err
				}
				return next.(chat.Outcome), nil
			}
		}
		answers(chat.Outcome{RetryAfter: 3 * time.Second})
		f.send(a, c, "1")
		f.elapse(time.Minute)
		f.sent("23s Bob (1); Ann/Ann 1 1")

		answers(errors.New("500"), errors.New("timeout"))
		f.send(a, c, "2")
		f.elapse(time.Minute)
		f.sent("1m40s Bob (2); Ann/Ann 2 2")
		if f.metrics.retried != 3 || f.metrics.failed != 0 || f.metrics.sentN != 2 {
			f.Errorf("counted %+v", f.metrics)
		}

		answers(errors.Join(chat.ErrRefused, errors.New("400")), errors.New("never asked"))
		f.send(a, c, "3")
		f.elapse(time.Hour)
		f.sent()
		if f.metrics.failed != 1 {
			f.Errorf("%d failed", f.metrics.failed)
		}

		answers(chat.Outcome{}) // nothing to do
		f.send(a, c, "4")
		f.elapse(time.Hour)
		f.sent()
	})
}

// TestBetweenAttempts: what changes while a notification is repeated.
func TestBetweenAttempts(t *testing.T) {
	onBoth(t, func(f *fixture) {
		a, b := f.user("Ann"), f.user("Bob")
		c := f.direct(a, b)
		failing := func(text string) int64 {
			f.Helper()
			f.channel.answer = func(chat.Notification) (chat.Outcome, error) { return chat.Outcome{}, errors.New("500") }
			seq := f.send(a, c, text)
			f.elapse(25 * time.Second)
			f.channel.answer = nil
			return seq
		}
		f.move(chat.Read, b, c, failing("read"))
		f.elapse(time.Hour)
		f.suppressed(chat.WhyRead, 1)

		f.move(chat.Delivered, b, c, failing("delivered"))
		f.elapse(time.Hour)
		f.suppressed(chat.WhyDelivered, 1)

		failing("target")
		f.ok(f.store.RemoveNotifyTarget(f.ctx, b, chat.ChannelWebPush, ""))
		_, err := f.store.AddNotifyTarget(f.ctx, b, chat.ChannelWebPush, "new", json.RawMessage(`"new"`))
		f.ok(err)
		f.elapse(time.Hour)
		f.suppressed(whyTargetGone, 1)

		failing("channel")
		_, err = f.store.AddNotifyTarget(f.ctx, b, chat.ChannelTelegram, "chat", json.RawMessage(`"chat"`))
		f.ok(err)
		f.set(b, chat.SettingsChange{ChannelsOff: ptr([]string{chat.ChannelWebPush})})
		f.elapse(time.Hour)
		f.suppressed(whySwitched, 1)
		f.set(b, chat.SettingsChange{ChannelsOff: ptr([]string{})})

		failing("erased")
		_, err = f.store.ErasePerson(f.ctx, b)
		f.ok(err)
		f.elapse(time.Hour)
		f.sent()
	})
}

// TestGivenUp: a channel that wants a pause for a whole day.
func TestGivenUp(t *testing.T) {
	onBoth(t, func(f *fixture) {
		a, b := f.user("Ann"), f.user("Bob")
		f.channel.answer = func(chat.Notification) (chat.Outcome, error) { return chat.Outcome{RetryAfter: time.Hour}, nil }
		f.send(a, f.direct(a, b), "1")
		f.elapse(48 * time.Hour)
		if f.metrics.failed != 1 || f.metrics.retried != 25 {
			f.Errorf("%d failed after %d pauses", f.metrics.failed, f.metrics.retried)
		}
		if len(f.queue.jobs) != 0 {
			f.Errorf("left are %+v", f.queue.jobs)
		}
	})
}
