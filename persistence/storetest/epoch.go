package storetest

import (
	"slices"

	"xabar/chat"
)

func (e *env) checkPositions(user chat.ID, positions map[chat.ID]chat.SyncPosition) chat.PositionCheck {
	e.Helper()
	check, err := e.store.CheckPositions(e.ctx, user, positions)
	e.ok(err, "CheckPositions")
	return check
}

func (e *env) epochOf(store chat.Store, user chat.ID) chat.ID {
	e.Helper()
	session, err := store.Session(e.ctx, user)
	e.ok(err, "Session")
	check, err := store.CheckPositions(e.ctx, user, nil)
	e.ok(err, "CheckPositions")
	if session.Epoch != check.Epoch || session.Epoch == (chat.ID{}) {
		e.Errorf("epoch %v in the session, %v in the check", session.Epoch, check.Epoch)
	}
	return session.Epoch
}

var epochCases = map[string]func(*env){
	"epoch/OneForAllUntilRenewed": func(e *env) {
		user := e.user("u")
		second := e.open(Tuning{})
		first := e.epochOf(e.store, user)
		if got := e.epochOf(second, user); got != first {
			e.Errorf("another node has the epoch %v, the first one %v", got, first)
		}
		renewed, err := second.RenewEpoch(e.ctx)
		e.ok(err, "RenewEpoch")
		if got := e.epochOf(e.store, user); got != renewed || got == first {
			e.Errorf("epoch %v after the renewal to %v from %v", got, renewed, first)
		}
		if got := e.epochOf(e.open(Tuning{}), user); got != renewed {
			e.Errorf("a store opened later has %v, want %v", got, renewed)
		}
	},
	"epoch/CheckPositions": func(e *env) {
		a, b, c := e.pair()
		e.fill(a, c, 5)
		e.deliver(b, c, 0, 2)
		version := e.view(b, c).Version
		all, err := e.store.MessagesBetween(e.ctx, c, 1, 5)
		e.ok(err, "MessagesBetween")
		third, fifth := all[2].ID, all[4].ID
		const kept, reset, news, gone = "kept", "reset", "news", "gone"
		for name, at := range map[string]struct {
			held chat.SyncPosition
			want string
		}{
			"nothing":                 {chat.SyncPosition{}, kept},
			"what is known":           {chat.SyncPosition{Seq: 2}, kept},
			"more":                    {chat.SyncPosition{Seq: 4}, news},
			"all":                     {chat.SyncPosition{Seq: 5, Version: version, ID: fifth}, news},
			"the message":             {chat.SyncPosition{Seq: 3, ID: third}, news},
			"another message":         {chat.SyncPosition{Seq: 3, ID: fifth}, reset},
			"another, delivered":      {chat.SyncPosition{Seq: 1, ID: fifth}, reset},
			"beyond the end":          {chat.SyncPosition{Seq: 6}, reset},
			"beyond the last version": {chat.SyncPosition{Seq: 5, Version: version + 1, ID: fifth}, reset},
		} {
			check := e.checkPositions(b, map[chat.ID]chat.SyncPosition{c: at.held})
			got := kept
			for verdict, list := range map[string][]chat.ID{reset: check.Reset, news: check.News, gone: check.Gone} {
				if slices.Contains(list, c) {
					got = verdict
				}
			}
			if got != at.want || len(check.Reset)+len(check.News)+len(check.Gone) > 1 {
				e.Errorf("%s: %s, want %s: %+v", name, got, at.want, check)
			}
		}
		e.positions(b, c, 2, 0) // it looks and moves nothing
	},
	"epoch/GoneIsWhatIsNotOnesOwn": func(e *env) {
		u := e.users(3)
		left, kept := e.group(u[0], u[1], u[2]), e.group(u[0], u[1])
		foreign, none := e.direct(u[0], u[2]), chat.NewID()
		e.fill(u[0], left, 1)
		e.ok(e.store.RemoveMember(e.ctx, u[1], left, u[1]), "leaving")
		at := chat.SyncPosition{Seq: 7}
		check := e.checkPositions(u[1], map[chat.ID]chat.SyncPosition{left: at, kept: {}, foreign: at, none: at})
		want := []chat.ID{left, foreign, none}
		if len(check.Gone) != 3 || len(check.Reset)+len(check.News) != 0 || !slices.ContainsFunc(check.Gone, func(id chat.ID) bool { return slices.Contains(want, id) }) {
			e.Errorf("%+v, want %v gone", check, want)
		}
	},
	"epoch/AHoleTellsNothing": func(e *env) {
		a, b, c := e.pair()
		e.fill(a, c, 1)
		e.ok(e.Statements.Hole(c), "Hole")
		e.fill(a, c, 1)
		// Its message may have been pruned since the client got it.
		check := e.checkPositions(b, map[chat.ID]chat.SyncPosition{c: {Seq: 2, ID: chat.NewID()}})
		if len(check.Reset) != 0 || !slices.Equal(check.News, []chat.ID{c}) {
			e.Errorf("a position at a hole: %+v", check)
		}
	},
	"epoch/CurrentIsWhenSyncBringsNothing": func(e *env) {
		u := e.users(4)
		a, b := u[0], u[1]
		first, second := e.direct(a, b), e.group(b, a, u[2])
		e.fill(a, first, 3)
		version := e.view(b, first).Version
		left := e.group(a, b, u[2])
		e.ok(e.store.RemoveMember(e.ctx, b, left, b), "leaving")
		sees := func(name string, user chat.ID, positions map[chat.ID]chat.SyncPosition, current bool) {
			e.Helper()
			page, err := e.store.Sync(e.ctx, user, chat.SyncQuery{Positions: positions})
			e.ok(err, "Sync")
			if nothing := len(page.Conversations) == 0 && page.NextCursor == ""; nothing != current {
				e.Errorf("%s: a sync brings %+v", name, page)
			}
			if check := e.checkPositions(user, positions); check.Current != current {
				e.Errorf("%s: current %v, want %v", name, check.Current, current)
			}
		}
		at := func(seq, version int64) chat.SyncPosition { return chat.SyncPosition{Seq: seq, Version: version} }
		sees("all", b, map[chat.ID]chat.SyncPosition{first: at(3, 0), second: at(0, 0)}, true)
		sees("all, by version", b, map[chat.ID]chat.SyncPosition{first: at(3, version), second: at(0, 0)}, true)
		sees("all, and what is gone", b, map[chat.ID]chat.SyncPosition{first: at(3, 0), second: at(0, 0), left: at(0, 0)}, true)
		sees("all but a message", b, map[chat.ID]chat.SyncPosition{first: at(2, 0), second: at(0, 0)}, false)
		sees("all but a version", b, map[chat.ID]chat.SyncPosition{first: at(3, version-1), second: at(0, 0)}, false)
		sees("all but a conversation", b, map[chat.ID]chat.SyncPosition{first: at(3, 0)}, false)
		sees("one that is gone instead", b, map[chat.ID]chat.SyncPosition{first: at(3, 0), left: at(0, 0)}, false)
		sees("another's instead", u[3], map[chat.ID]chat.SyncPosition{first: at(3, 0)}, true)
		sees("nothing of nothing", u[3], nil, true)
		sees("nothing", b, nil, false)
	},
}
