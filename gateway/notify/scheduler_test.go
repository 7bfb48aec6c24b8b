package notify

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"xabar/chat"
)

func ptr[T any](v T) *T { return &v }

// TestOffline: exactly what is sent to users who are not there, and when.
func TestOffline(t *testing.T) {
	onBoth(t, func(f *fixture) {
		a, b := f.user("Ann"), f.user("Bob")
		c := f.direct(a, b)

		f.send(a, c, "hello")
		f.elapse(19 * time.Second)
		f.sent()
		f.elapse(time.Second)
		f.sent("20s Bob (1); Ann/Ann 1 hello")
		f.elapse(time.Hour)
		f.sent()
		f.move(chat.Read, b, c, 1)

		// Five messages in ten seconds: the first starts the wait.
		start := f.clock.Now().Sub(f.started)
		for n := range 5 {
			f.send(a, c, fmt.Sprint(n))
			f.elapse(2 * time.Second)
		}
		f.elapse(time.Minute)
		f.sent(fmt.Sprintf("%v Bob (5); Ann/Ann 5 4", start+20*time.Second))
	})
}

// TestComingBack: whoever has it in time is not notified.
func TestComingBack(t *testing.T) {
	onBoth(t, func(f *fixture) {
		a, b := f.user("Ann"), f.user("Bob")
		c := f.direct(a, b)

		f.send(a, c, "1") // read on the web after 5 s
		f.elapse(5 * time.Second)
		f.move(chat.Read, b, c, 1)
		f.elapse(time.Hour)
		f.sent()
		f.suppressed(chat.WhyRead, 1)

		f.send(a, c, "2") // comes back within the wait
		f.elapse(15 * time.Second)
		f.presence.set(b, true)
		f.move(chat.Delivered, b, c, 2)
		f.elapse(time.Hour)
		f.sent()
		f.suppressed(chat.WhyDelivered, 1)

		f.presence.set(b, false)
		f.send(a, c, "3") // comes back at its end, the catch-up on the way
		f.elapse(19 * time.Second)
		f.presence.set(b, true)
		f.elapse(3 * time.Second)
		f.move(chat.Delivered, b, c, 3)
		f.elapse(time.Hour)
		f.sent()
		f.suppressed(chat.WhyDelivered, 2)

		f.send(a, c, "4") // is there, and any of its devices acknowledges
		f.move(chat.Delivered, b, c, 4)
		f.elapse(time.Hour)
		f.sent()
	})
}

// TestNoAcknowledgement: connected is not the same as there.
func TestNoAcknowledgement(t *testing.T) {
	onBoth(t, func(f *fixture) {
		a, b := f.user("Ann"), f.user("Bob")
		c := f.direct(a, b)
		f.presence.set(b, true)

		seq := f.send(a, c, "hello")
		f.s.Unacknowledged(c, seq)
		f.s.flushSome(f.ctx)
		f.elapse(29 * time.Second)
		f.sent()
		f.elapse(time.Second)
		f.sent("30s Bob (1); Ann/Ann 1 hello")

		seq = f.send(a, c, "again") // acknowledged after the timeout
		f.s.Unacknowledged(c, seq)
		f.s.flushSome(f.ctx)
		f.move(chat.Delivered, b, c, seq)
		f.elapse(time.Hour)
		f.sent()
	})
}

// TestWentOffline: a connection that dies with messages in its hands.
func TestWentOffline(t *testing.T) {
	onBoth(t, func(f *fixture) {
		a, b := f.user("Ann"), f.user("Bob")
		c := f.direct(a, b)
		f.presence.set(b, true)
		f.send(a, c, "hello")
		f.elapse(time.Minute)
		f.sent()
		f.presence.set(b, false)
		f.s.WentOffline(b)
		f.s.WentOffline(a)
		f.s.flushSome(f.ctx)
		f.elapse(20 * time.Second)
		f.sent("1m20s Bob (1); Ann/Ann 1 hello")
		f.s.WentOffline(b) // again: of this it is decided
		f.s.flushSome(f.ctx)
		f.elapse(time.Hour)
		f.sent()
	})
}

// TestAfterACrash: what was stored and never scheduled is found at the next start.
func TestAfterACrash(t *testing.T) {
	onBoth(t, func(f *fixture) {
		a, b := f.user("Ann"), f.user("Bob")
		c := f.direct(a, b)
		f.presence.set(b, true)
		f.send(a, c, "hello") // and the node dies, before the acknowledgement
		f.presence.set(b, false)
		f.s.scheduleLeft(f.ctx)
		f.elapse(time.Hour)
		f.sent("20s Bob (1); Ann/Ann 1 hello")
		f.s.scheduleLeft(f.ctx)
		f.elapse(time.Hour)
		f.sent()
	})
}

// TestTwoConversations in one wait: a notification each.
func TestTwoConversations(t *testing.T) {
	onBoth(t, func(f *fixture) {
		a, b, d := f.user("Ann"), f.user("Bob"), f.user("Dan")
		f.send(a, f.direct(a, b), "from Ann")
		f.elapse(5 * time.Second)
		f.send(d, f.direct(d, b), "from Dan")
		f.elapse(time.Hour)
		f.sent("20s Bob (2); Ann/Ann 1 from Ann", "25s Bob (2); Dan/Dan 1 from Dan")
	})
}

// TestWhileOnItsWay: a message that comes while the notification is sent is told of
// after a wait of its own.
func TestWhileOnItsWay(t *testing.T) {
	onBoth(t, func(f *fixture) {
		a, b := f.user("Ann"), f.user("Bob")
		c := f.direct(a, b)
		f.send(a, c, "1")
		f.clock.Step(20 * time.Second)
		f.sweep() // the job is made
		f.send(a, c, "2")
		f.queue.work()
		f.sent("20s Bob (2); Ann/Ann 2 2")
		f.elapse(time.Hour)
		f.sent("40s Bob (2); Ann/Ann 2 2")
	})
}

// TestUnwanted: what users have said that they don't want.
func TestUnwanted(t *testing.T) {
	onBoth(t, func(f *fixture) {
		a, b := f.user("Ann"), f.user("Bob")
		c := f.direct(a, b)
		group, err := f.store.CreateGroup(f.ctx, a, "Team", []chat.ID{b})
		f.ok(err)

		until := f.clock.Now().Add(2 * time.Hour)
		f.ok(f.store.Mute(f.ctx, b, c, &until))
		f.send(a, c, "muted")
		f.elapse(time.Hour)
		f.ok(f.store.Mute(f.ctx, b, c, nil)) // what came while it was muted stays quiet
		f.s.WentOffline(b)
		f.s.flushSome(f.ctx)
		f.elapse(time.Hour)
		f.sent()
		f.suppressed(chat.WhyMuted, 1)

		f.set(b, chat.SettingsChange{OnlyDirect: ptr(true), HideText: ptr(true), Language: ptr("uz")})
		f.send(a, group.ID, "to all")
		f.elapse(time.Hour)
		f.sent()
		f.suppressed(chat.WhyOnlyDirect, 1)

		f.send(a, c, "direct")
		f.elapse(time.Hour)
		if last := f.channel.all[len(f.channel.all)-1]; !last.HideText || last.Language != "uz" || last.Tag != "conversation:"+c.String() {
			f.Errorf("given %+v", last)
		}
		f.channel.take()

		f.set(b, chat.SettingsChange{ChannelsOff: ptr([]string{chat.ChannelWebPush})})
		f.send(a, c, "no channel")
		f.elapse(time.Hour)
		f.suppressed(chat.WhyNoChannel, 1)
		f.set(b, chat.SettingsChange{ChannelsOff: ptr([]string{}), Notify: ptr(false)})
		f.send(a, c, "off")
		f.elapse(time.Hour)
		f.suppressed(chat.WhyOff, 1)
		f.sent()

		f.set(b, chat.SettingsChange{Notify: ptr(true), OnlyDirect: ptr(false)})
		f.send(a, group.ID, "then he leaves")
		f.ok(f.store.RemoveMember(f.ctx, b, group.ID, b))
		f.elapse(time.Hour)
		f.suppressed(chat.WhyGone, 1)
		f.send(a, c, "then blocked")
		f.ok(f.store.Block(f.ctx, b, a))
		f.elapse(time.Hour)
		f.suppressed(chat.WhyBlocked, 1)
		f.sent()
	})
}

// TestErased: a user who was erased meanwhile, and messages that were.
func TestErased(t *testing.T) {
	onBoth(t, func(f *fixture) {
		f.s.Policy.Everybody = []string{chat.ChannelWebPush} // also a channel that needs no target
		a, b, d := f.user("Ann"), f.user("Bob"), f.user("Dan")
		f.send(a, f.direct(a, b), "to Bob")
		f.send(d, f.direct(a, d), "to Ann")
		_, err := f.store.ErasePerson(f.ctx, b)
		f.ok(err)
		_, err = f.store.EraseMessages(f.ctx, d, 10)
		f.ok(err)
		f.send(a, f.direct(a, b), "to nobody")
		f.elapse(time.Hour)
		f.sent()
		f.suppressed(chat.WhyGone, 1)
		f.suppressed(chat.WhyUnknown, 1)
	})
}

// TestReminder: a user who wants to be reminded of what is delivered and stays unread.
func TestReminder(t *testing.T) {
	onBoth(t, func(f *fixture) {
		a, b := f.user("Ann"), f.user("Bob")
		c := f.direct(a, b)
		f.set(b, chat.SettingsChange{RemindAfter: ptr(5 * time.Minute)})
		reminders, err := f.store.Reminders(f.ctx)
		f.ok(err)
		f.s.reminders = reminders
		f.presence.set(b, true)

		f.send(a, c, "1")
		f.move(chat.Delivered, b, c, 1)
		f.elapse(time.Hour)
		f.sent("5m0s Bob (1); Ann/Ann 1 1")

		f.send(a, c, "2") // read in time
		f.move(chat.Read, b, c, 2)
		f.elapse(time.Hour)
		f.sent()

		start := f.clock.Now().Sub(f.started)
		f.send(a, c, "3") // read, but not what came after
		f.elapse(4 * time.Minute)
		f.send(a, c, "4")
		f.move(chat.Read, b, c, 3)
		f.move(chat.Delivered, b, c, 4)
		f.elapse(time.Hour)
		f.sent(fmt.Sprintf("%v Bob (1); Ann/Ann 1 4", start+10*time.Minute))

		f.presence.set(b, false) // notified as undelivered: no reminder of the same
		start = f.clock.Now().Sub(f.started)
		f.send(a, c, "5")
		f.elapse(time.Hour)
		f.sent(fmt.Sprintf("%v Bob (2); Ann/Ann 1 5", start+20*time.Second))
	})
}

// TestBigGroup: 500 absent members are scheduled in one transaction and notified in a
// bounded time.
func TestBigGroup(t *testing.T) {
	onBoth(t, func(f *fixture) {
		const size = 500
		owner := f.user("Ann")
		members := make([]chat.ID, size)
		for i := range members {
			members[i] = f.user(fmt.Sprintf("m%03d", i))
		}
		group, err := f.store.CreateGroup(f.ctx, owner, "All", members)
		f.ok(err)
		start := time.Now()
		f.send(owner, group.ID, "hello")
		f.elapse(time.Minute)
		if took := time.Since(start); took > 20*time.Second {
			f.Errorf("it took %v", took)
		}
		got := f.channel.take()
		seen := map[string]bool{}
		for _, note := range got {
			seen[note] = true
		}
		for i := range members {
			if want := fmt.Sprintf("20s m%03d (1); All/Ann 1 hello", i); !seen[want] {
				f.Fatalf("%q was not sent", want)
			}
		}
		if len(got) != size {
			f.Errorf("%d were sent", len(got))
		}
	})
}

// TestCrashWhileSweeping: dying after any step gives one notification.
func TestCrashWhileSweeping(t *testing.T) {
	onBoth(t, func(f *fixture) {
		a, b := f.user("Ann"), f.user("Bob")
		c := f.direct(a, b)
		died := errors.New("died")
		sweepFails := func() {
			f.Helper()
			if _, err := f.s.Sweep(f.ctx); !errors.Is(err, died) {
				f.Fatalf("the sweep: %v", err)
			}
		}

		f.send(a, c, "1")
		f.clock.Step(20 * time.Second)
		f.queue.fails = died
		sweepFails() // before the job is stored
		f.queue.fails = nil
		f.elapse(time.Hour)
		f.sent("50s Bob (1); Ann/Ann 1 1") // after the lease
		f.move(chat.Read, b, c, 1)

		f.send(a, c, "2")
		start := f.clock.Now().Sub(f.started)
		f.clock.Step(20 * time.Second)
		f.store.finishFails = died
		sweepFails() // after
		f.store.finishFails = nil
		f.queue.work()
		f.elapse(time.Hour)
		f.sent(fmt.Sprintf("%v Bob (1); Ann/Ann 1 2", start+20*time.Second))
	})
}

// TestPresenceUnknown: while nobody knows who is online, everybody counts as absent, and
// the look decides.
func TestPresenceUnknown(t *testing.T) {
	onBoth(t, func(f *fixture) {
		a, b, d := f.user("Ann"), f.user("Bob"), f.user("Dan")
		f.presence.set(b, true)
		f.presence.fails = errors.New("no Redis")
		group, err := f.store.CreateGroup(f.ctx, a, "Team", []chat.ID{b, d})
		f.ok(err)
		seq := f.send(a, group.ID, "hello")
		f.move(chat.Delivered, b, group.ID, seq)
		f.elapse(time.Hour)
		f.sent("20s Dan (1); Team/Ann 1 hello")
	})
}
