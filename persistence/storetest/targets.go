package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"xabar/chat"
)

func (e *env) target(user chat.ID, channel, address string) chat.NotifyTarget {
	e.Helper()
	t, err := e.store.AddNotifyTarget(e.ctx, user, channel, address, json.RawMessage(`{"at":"`+address+`"}`))
	e.ok(err, "AddNotifyTarget")
	return t
}

// addresses are those of user's targets.
func (e *env) addresses(user chat.ID) []string {
	e.Helper()
	targets, err := e.store.NotifyTargets(e.ctx, user)
	e.ok(err, "NotifyTargets")
	var all []string
	for _, t := range targets {
		if t.UserID != user || string(t.Target) != `{"at":"`+t.Address+`"}` {
			e.Errorf("target %+v", t)
		}
		all = append(all, t.Channel+" "+t.Address)
	}
	return all
}

func (e *env) reachedAt(user chat.ID, want ...string) {
	e.Helper()
	if got := e.addresses(user); !slices.Equal(got, want) {
		e.Fatalf("targets %v, want %v", got, want)
	}
}

var targetCases = map[string]func(*env){
	"targets/AddReplaceRemove": func(e *env) {
		a, b := e.user("a"), e.user("b")
		first := e.target(a, "web-push", "one")
		e.Clock.Step(time.Millisecond)
		e.target(a, "web-push", "two")
		e.target(b, "telegram", "one") // another channel's
		e.reachedAt(a, "web-push one", "web-push two")
		e.Clock.Step(time.Millisecond)
		if again := e.target(a, "web-push", "one"); again.ID == first.ID {
			e.Error("a target that is added again is the same")
		}
		e.ok(e.store.DropNotifyTarget(e.ctx, first.ID), "DropNotifyTarget of what was replaced")
		e.reachedAt(a, "web-push two", "web-push one")
		e.target(b, "web-push", "two") // the browser changes hands
		e.reachedAt(a, "web-push one")
		e.reachedAt(b, "telegram one", "web-push two")
		e.ok(e.store.RemoveNotifyTarget(e.ctx, a, "web-push", "two"), "another's target")
		e.ok(e.store.RemoveNotifyTarget(e.ctx, b, "telegram", ""), "all of a channel")
		e.reachedAt(b, "web-push two")
		e.ok(e.store.RemoveNotifyTarget(e.ctx, b, "web-push", "two"), "RemoveNotifyTarget")
		e.ok(e.store.RemoveNotifyTarget(e.ctx, b, "web-push", "two"), "again")
		e.reachedAt(b)
		_, err := e.store.AddNotifyTarget(e.ctx, chat.NewID(), "web-push", "x", json.RawMessage(`{}`))
		e.code(chat.CodeNotFound, err, "nobody's target")
	},
	"targets/TheOldestGoes": func(e *env) {
		a := e.user("a")
		e.target(a, "telegram", "chat")
		var want []string
		for n := range chat.MaxNotifyTargets + 2 {
			e.Clock.Step(time.Millisecond)
			e.target(a, "web-push", fmt.Sprint(n))
			if n >= 2 {
				want = append(want, fmt.Sprintf("web-push %d", n))
			}
		}
		e.reachedAt(a, append([]string{"telegram chat"}, want...)...)
	},
	"targets/LinkCodes": func(e *env) {
		a, b := e.user("a"), e.user("b")
		soon := e.Clock.Now().Add(time.Minute)
		take := func(code string) chat.ID {
			e.Helper()
			user, err := e.store.TakeLinkCode(e.ctx, "telegram", code)
			e.ok(err, "TakeLinkCode(%s)", code)
			return user
		}
		e.ok(e.store.AddLinkCode(e.ctx, a, "telegram", "A", soon), "AddLinkCode")
		e.code(chat.CodeConflict, e.store.AddLinkCode(e.ctx, b, "telegram", "A", soon), "a code that another has")
		_, err := e.store.TakeLinkCode(e.ctx, "other", "A")
		e.code(chat.CodeNotFound, err, "another channel's code")
		if take("A") != a {
			e.Error("A is another's")
		}
		_, err = e.store.TakeLinkCode(e.ctx, "telegram", "A")
		e.code(chat.CodeNotFound, err, "a code used twice")
		e.ok(e.store.AddLinkCode(e.ctx, a, "telegram", "B", soon), "AddLinkCode")
		e.ok(e.store.AddLinkCode(e.ctx, a, "telegram", "C", soon), "another one instead")
		_, err = e.store.TakeLinkCode(e.ctx, "telegram", "B")
		e.code(chat.CodeNotFound, err, "a code that was replaced")
		e.Clock.Step(time.Minute)
		_, err = e.store.TakeLinkCode(e.ctx, "telegram", "C")
		e.code(chat.CodeNotFound, err, "a code that has expired")
		e.ok(e.store.AddLinkCode(e.ctx, b, "telegram", "C", e.Clock.Now().Add(time.Minute)), "the code of nobody")
		if take("C") != b {
			e.Error("C is not b's")
		}
		e.code(chat.CodeNotFound, e.store.AddLinkCode(e.ctx, chat.NewID(), "telegram", "D", soon), "nobody's code")
	},
	"targets/SecretsAndLeases": func(e *env) {
		second := e.open(Tuning{})
		one, err := e.store.Secret(e.ctx, "vapid", []byte("first"))
		e.ok(err, "Secret")
		two, err := second.Secret(e.ctx, "vapid", []byte("second"))
		e.ok(err, "Secret of another node")
		if string(one) != "first" || string(two) != "first" {
			e.Errorf("secrets %q and %q", one, two)
		}
		x, y := chat.NewID(), chat.NewID()
		lease := func(store chat.Store, holder chat.ID, want bool, when string) {
			e.Helper()
			got, err := store.TakeLease(e.ctx, "poller", holder, time.Minute)
			e.ok(err, "TakeLease")
			if got != want {
				e.Errorf("%s: %v", when, got)
			}
		}
		lease(e.store, x, true, "the first")
		lease(second, y, false, "another one")
		e.Clock.Step(40 * time.Second)
		lease(e.store, x, true, "the holder again")
		e.Clock.Step(40 * time.Second)
		lease(second, y, false, "before the end")
		e.Clock.Step(20 * time.Second)
		lease(second, y, true, "after the end")
		lease(e.store, x, false, "the one before")
	},
	"targets/SettingsOfNotifications": func(e *env) {
		a, b := e.user("a"), e.user("b")
		got, err := e.store.Settings(e.ctx, a)
		e.ok(err, "Settings")
		if got.Language != "" || got.OnlyDirect || got.HideText || got.RemindAfter != 0 || got.ChannelsOff != nil {
			e.Errorf("defaults %+v", got)
		}
		_, err = e.store.ChangeSettings(e.ctx, a, chat.SettingsChange{
			Language: ptr("uz"), OnlyDirect: ptr(true), HideText: ptr(true), RemindAfter: ptr(5 * time.Minute), ChannelsOff: ptr([]string{"telegram", "webhook"}),
		})
		e.ok(err, "ChangeSettings")
		_, err = e.store.ChangeSettings(e.ctx, a, chat.SettingsChange{OnlyDirect: ptr(false)})
		e.ok(err, "one of them")
		got, err = e.store.Settings(e.ctx, a)
		e.ok(err, "Settings")
		if !got.Notify || got.Language != "uz" || got.OnlyDirect || !got.HideText || got.RemindAfter != 5*time.Minute ||
			!slices.Equal(got.ChannelsOff, []string{"telegram", "webhook"}) {
			e.Errorf("stored %+v", got)
		}
		_, err = e.store.ChangeSettings(e.ctx, b, chat.SettingsChange{HideText: ptr(true)})
		e.ok(err, "of another")
		reminders, err := e.store.Reminders(e.ctx)
		e.ok(err, "Reminders")
		if len(reminders) != 1 || reminders[a] != 5*time.Minute {
			e.Errorf("reminders %v", reminders)
		}
		_, err = e.store.ChangeSettings(e.ctx, a, chat.SettingsChange{RemindAfter: ptr(time.Duration(0)), ChannelsOff: ptr([]string{})})
		e.ok(err, "all off")
		if got, err = e.store.Settings(e.ctx, a); err != nil || got.ChannelsOff != nil || got.RemindAfter != 0 {
			e.Errorf("then %+v, %v", got, err)
		}
	},
	"targets/ErasedWithTheirUser": func(e *env) {
		a, b, c := e.pair()
		e.target(a, "web-push", "one")
		e.ok(e.store.AddLinkCode(e.ctx, a, "telegram", "A", e.Clock.Now().Add(time.Minute)), "AddLinkCode")
		e.send(b, c, "1")
		e.scheduled(1, a)
		_, err := e.store.ErasePerson(e.ctx, a)
		e.ok(err, "ErasePerson")
		e.reachedAt(a)
		_, err = e.store.TakeLinkCode(e.ctx, "telegram", "A")
		e.code(chat.CodeNotFound, err, "the code of who was erased")
		e.nothingDue()
	},
}
