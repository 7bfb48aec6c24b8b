package storetest

import (
	"fmt"
	"slices"
	"time"

	"xabar/chat"
)

var settingCases = map[string]func(*env){
	"settings/DefaultsAndChanges": func(e *env) {
		me := e.user("me")
		got, err := e.store.Settings(e.ctx, me)
		e.ok(err, "Settings")
		if !got.Notify || got.Quiet != nil {
			e.Fatalf("defaults %+v", got)
		}
		night := &chat.QuietHours{From: 22 * 60, Until: 7 * 60, TimeZone: "Asia/Tashkent"}
		_, err = e.store.ChangeSettings(e.ctx, me, chat.SettingsChange{SetQuiet: true, Quiet: night})
		e.ok(err, "quiet hours")
		got, err = e.store.ChangeSettings(e.ctx, me, chat.SettingsChange{Notify: ptr(false)})
		e.ok(err, "notify")
		if got.Notify || got.Quiet == nil || *got.Quiet != *night {
			e.Fatalf("one change took the other back: %+v", got)
		}
		if stored, err := e.store.Settings(e.ctx, me); err != nil || stored.Notify || *stored.Quiet != *night {
			e.Fatalf("stored %+v, %v", stored, err)
		}
		got, err = e.store.ChangeSettings(e.ctx, me, chat.SettingsChange{SetQuiet: true})
		e.ok(err, "no quiet hours")
		if got.Notify || got.Quiet != nil {
			e.Errorf("after the end of quiet hours %+v", got)
		}
		_, err = e.store.Settings(e.ctx, chat.NewID())
		e.code(chat.CodeNotFound, err, "nobody's settings")
		_, err = e.store.ChangeSettings(e.ctx, chat.NewID(), chat.SettingsChange{Notify: ptr(true)})
		e.code(chat.CodeNotFound, err, "nobody's change")
	},
	"settings/Mute": func(e *env) {
		a, b, c := e.pair()
		e.send(a, c, "1")
		until := e.Clock.Now().Add(time.Hour)
		e.ok(e.store.Mute(e.ctx, b, c, &until), "Mute")
		if got := e.view(b, c).MutedUntil; got == nil || !got.Equal(until) {
			e.Errorf("muted until %v, want %v", got, until)
		}
		if e.view(a, c).MutedUntil != nil {
			e.Error("the other side is muted too")
		}
		total := func(want int64, when string) {
			e.Helper()
			got, err := e.store.UnreadTotal(e.ctx, b)
			e.ok(err, "UnreadTotal")
			if got != want {
				e.Errorf("unread %s is %d, want %d", when, got, want)
			}
		}
		total(0, "while muted")
		e.ok(e.store.Mute(e.ctx, b, c, nil), "Mute ended")
		total(1, "after it")
		if e.view(b, c).MutedUntil != nil {
			e.Error("still muted")
		}
		e.code(chat.CodeNotFound, e.store.Mute(e.ctx, e.user("stranger"), c, &until), "a stranger's mute")
	},
}

var blockCases = map[string]func(*env){
	"blocks/BothWays": func(e *env) {
		a, b, c := e.pair()
		e.ok(e.store.Block(e.ctx, a, b), "Block")
		e.ok(e.store.Block(e.ctx, a, b), "Block again")
		for i, sender := range []chat.ID{a, b} {
			_, err := e.trySend(sender, c, fmt.Sprint("blocked-", i), "x")
			e.code(chat.CodeForbidden, err, "a send across a block")
		}
		_, _, err := e.store.OpenDirect(e.ctx, b, a)
		e.code(chat.CodeForbidden, err, "OpenDirect across a block")
		other := e.user("other")
		for _, me := range []chat.ID{a, b} {
			got, err := e.store.BlockedAmong(e.ctx, me, []chat.ID{a, b, other, chat.NewID()})
			e.ok(err, "BlockedAmong")
			if len(got) != 1 || got[0] == me || got[0] == other {
				e.Errorf("blocked among: %v", got)
			}
		}
		e.ok(e.store.Unblock(e.ctx, b, a), "the blocked one's Unblock")
		_, err = e.trySend(a, c, "still", "x")
		e.code(chat.CodeForbidden, err, "after the other's Unblock")
		e.ok(e.store.Unblock(e.ctx, a, b), "Unblock")
		e.send(b, c, "again")
		e.code(chat.CodeNotFound, e.store.Block(e.ctx, a, chat.NewID()), "nobody")
	},
	"blocks/GroupsGoOn": func(e *env) {
		a, b := e.user("a"), e.user("b")
		group := e.group(a, b)
		e.ok(e.store.Block(e.ctx, a, b), "Block")
		e.send(b, group, "1")
	},
	"blocks/List": func(e *env) {
		me := e.user("me")
		want := e.users(5)
		for _, id := range want {
			e.ok(e.store.Block(e.ctx, me, id), "Block")
		}
		e.ok(e.store.Block(e.ctx, want[0], me), "Block back")
		var got []chat.ID
		for page := (chat.PageRequest{Limit: 2}); ; {
			users, err := e.store.Blocks(e.ctx, me, page)
			e.ok(err, "Blocks")
			for _, u := range users.Items {
				got = append(got, u.ID)
			}
			if page.Cursor = users.NextCursor; page.Cursor == "" || len(got) > 100 {
				break
			}
		}
		slices.SortFunc(want, compareIDs)
		if !slices.Equal(got, want) {
			e.Errorf("blocks %v, want %v", got, want)
		}
	},
}

func compareIDs(a, b chat.ID) int { return slices.Compare(a[:], b[:]) }

var groupChangeCases = map[string]func(*env){
	"roles/Rename": func(e *env) {
		owner, admin, member := e.user("owner"), e.user("admin"), e.user("member")
		group := e.group(owner, admin, member)
		e.ok(e.store.SetRole(e.ctx, owner, group, admin, chat.RoleAdmin), "SetRole")
		before := e.view(member, group).Version
		e.ok(e.store.RenameGroup(e.ctx, admin, group, "New"), "RenameGroup")
		if after := e.view(member, group); after.Title != "New" || after.Version <= before {
			e.Errorf("title %q, version %d after %d", after.Title, after.Version, before)
		}
		e.code(chat.CodeForbidden, e.store.RenameGroup(e.ctx, member, group, "x"), "a member's rename")
		e.code(chat.CodeNotFound, e.store.RenameGroup(e.ctx, e.user("stranger"), group, "x"), "a stranger's")
		e.code(chat.CodeForbidden, e.store.RenameGroup(e.ctx, owner, e.direct(owner, admin), "x"), "a direct conversation's")
	},
	"roles/OwnersAlone": func(e *env) {
		owner, admin, member, stranger := e.user("owner"), e.user("admin"), e.user("member"), e.user("stranger")
		group := e.group(owner, admin, member)
		set := func(by, user chat.ID, role chat.Role) error { return e.store.SetRole(e.ctx, by, group, user, role) }
		e.ok(set(owner, admin, chat.RoleAdmin), "SetRole")
		e.code(chat.CodeForbidden, set(admin, member, chat.RoleAdmin), "by an admin")
		e.code(chat.CodeForbidden, set(member, member, chat.RoleOwner), "by a member")
		e.code(chat.CodeNotFound, set(stranger, member, chat.RoleAdmin), "by a stranger")
		e.code(chat.CodeNotFound, set(owner, stranger, chat.RoleAdmin), "of a stranger")
		e.code(chat.CodeForbidden, set(owner, owner, chat.RoleMember), "of the last owner")
		e.ok(set(owner, member, chat.RoleOwner), "a second owner")
		e.ok(set(owner, owner, chat.RoleMember), "the first steps down")
		e.code(chat.CodeForbidden, set(owner, admin, chat.RoleMember), "by one who was owner")
		roles := map[chat.ID]chat.Role{}
		members, err := e.store.Members(e.ctx, owner, group, chat.PageRequest{})
		e.ok(err, "Members")
		for _, m := range members.Items {
			roles[m.User.ID] = m.Role
		}
		if roles[owner] != chat.RoleMember || roles[admin] != chat.RoleAdmin || roles[member] != chat.RoleOwner {
			e.Errorf("roles %v", roles)
		}
		e.code(chat.CodeForbidden, e.store.SetRole(e.ctx, owner, e.direct(owner, admin), admin, chat.RoleOwner), "of a direct conversation")
	},
}

var adminCases = map[string]func(*env){
	"admin/UpdateUser": func(e *env) {
		me := e.user("me")
		got, err := e.store.UpdateUser(e.ctx, me, chat.UserChange{Name: ptr("New"), AvatarURL: ptr("https://example.org/a.png")})
		e.ok(err, "UpdateUser")
		if got.Name != "New" || got.AvatarURL == nil || *got.AvatarURL != "https://example.org/a.png" || got.ExternalID == nil {
			e.Errorf("updated %+v", got)
		}
		got, err = e.store.UpdateUser(e.ctx, me, chat.UserChange{AvatarURL: ptr("")})
		e.ok(err, "UpdateUser")
		if got.Name != "New" || got.AvatarURL != nil {
			e.Errorf("updated %+v", got)
		}
		_, err = e.store.UpdateUser(e.ctx, chat.NewID(), chat.UserChange{Name: ptr("x")})
		e.code(chat.CodeNotFound, err, "nobody")
	},
	"admin/SystemSends": func(e *env) {
		a, b := e.user("a"), e.user("b")
		group := e.group(a, b)
		system := e.user("system")
		cmd := chat.SendMessage{SenderID: system, ConversationID: group, ClientMsgID: "s1", Text: "x", System: true}
		first := wait(e, start(e.ctx, e.store, cmd))
		e.ok(first.err, "the system's send")
		again := wait(e, start(e.ctx, e.store, cmd))
		if again.err != nil || !again.Duplicate || again.Message.ID != first.Message.ID {
			e.Errorf("a repeat: %+v", again)
		}
		if first.Sender.NewRead != 0 || first.Sender.NewDelivered != 0 {
			e.Errorf("the system has positions: %+v", first.Sender)
		}
		if c := e.view(b, group); c.LastSeq != 1 || c.MemberCount != 2 || c.Unread != 1 {
			e.Errorf("the group is %+v", c)
		}
		cmd.System, cmd.ClientMsgID = false, "s2"
		e.code(chat.CodeNotFound, wait(e, start(e.ctx, e.store, cmd)).err, "the same without the flag")
		cmd.System, cmd.ConversationID = true, e.direct(a, b)
		e.code(chat.CodeNotFound, wait(e, start(e.ctx, e.store, cmd)).err, "into others' direct conversation")
		direct := e.direct(system, a)
		e.ok(e.store.Block(e.ctx, a, system), "Block")
		cmd.ConversationID = direct
		e.ok(wait(e, start(e.ctx, e.store, cmd)).err, "past a block")
	},
	"admin/MessagesOf": func(e *env) {
		a, b, c := e.pair()
		group := e.group(a, b)
		want := map[chat.ID]bool{}
		for i := range 7 {
			want[e.send(a, c, fmt.Sprint("a", i)).Message.ID] = true
			want[e.send(a, group, fmt.Sprint("g", i)).Message.ID] = true
			e.send(b, c, fmt.Sprint("b", i))
		}
		// Two of before there were ids of the client's.
		e.ok(e.Statements.InsertText(c, a, "archived"), "InsertText")
		e.ok(e.Statements.Hole(c), "Hole") // takes the number that InsertText used
		e.ok(e.Statements.InsertText(c, a, "archived too"), "InsertText")
		for size := 1; size <= 20; size++ {
			got, archived := map[chat.ID]bool{}, 0
			for page := (chat.PageRequest{Limit: size}); ; {
				messages, err := e.store.MessagesOf(e.ctx, a, page)
				e.ok(err, "MessagesOf")
				if len(messages.Items) > size {
					e.Fatalf("a page of %d", len(messages.Items))
				}
				for _, m := range messages.Items {
					if got[m.ID] || m.SenderID != a {
						e.Fatalf("%+v comes twice, or is not the user's", m)
					}
					if got[m.ID] = true; !want[m.ID] {
						archived++
					}
				}
				if page.Cursor = messages.NextCursor; page.Cursor == "" {
					break
				}
			}
			if len(got) != len(want)+2 || archived != 2 {
				e.Fatalf("pages of %d: %d messages, %d archived", size, len(got), archived)
			}
		}
	},
	"admin/Revoke": func(e *env) {
		a, b := e.user("a"), e.user("b")
		begin := e.Clock.Now()
		closed, err := e.store.Revoke(e.ctx, a, false, []byte("hash of a"))
		e.ok(err, "Revoke")
		if closed.UserID != a || !closed.TokensBefore.IsZero() || closed.At.Before(begin) {
			e.Errorf("closed %+v", closed)
		}
		revoked, err := e.store.Revoke(e.ctx, a, true, nil)
		e.ok(err, "Revoke with tokens")
		if !revoked.At.After(closed.At) || !revoked.TokensBefore.Equal(revoked.At) {
			e.Errorf("revoked %+v after %+v at the same time", revoked, closed)
		}
		e.Clock.Step(-time.Hour)
		later, err := e.store.Revoke(e.ctx, a, false, nil)
		e.ok(err, "Revoke with a clock that was stepped back")
		if !later.At.After(revoked.At) || !later.TokensBefore.Equal(revoked.TokensBefore) || string(later.Subject) != "hash of a" {
			e.Errorf("%+v after %+v", later, revoked)
		}
		e.Clock.Step(2 * time.Hour)
		other, err := e.store.Revoke(e.ctx, b, true, nil)
		e.ok(err, "Revoke")
		find := func(since time.Time) []chat.Revocation {
			e.Helper()
			found, err := e.open(Tuning{}).Revocations(e.ctx, since)
			e.ok(err, "Revocations")
			return found
		}
		all := find(time.Time{})
		if len(all) != 2 {
			e.Errorf("all: %+v", all)
		}
		for _, r := range all {
			if want := map[chat.ID]string{a: "hash of a", b: ""}[r.UserID]; string(r.Subject) != want {
				e.Errorf("the subject is %q, want %q", r.Subject, want)
			}
		}
		if got := find(other.At); len(got) != 1 || got[0].UserID != b || !got[0].At.Equal(other.At) || !got[0].TokensBefore.Equal(other.TokensBefore) {
			e.Errorf("since the last: %+v, want %+v", got, other)
		}
		_, err = e.store.Revoke(e.ctx, chat.NewID(), true, nil)
		e.code(chat.CodeNotFound, err, "nobody")
	},
	"admin/Erase": func(e *env) {
		a, b, c := e.pair()
		heir := e.user("heir")
		group := e.group(a, b, heir)
		for i := range 5 {
			e.send(a, c, fmt.Sprint("a", i))
			e.send(b, c, fmt.Sprint("b", i))
			e.send(a, group, fmt.Sprint("g", i))
		}
		e.ok(e.Statements.InsertText(group, a, "archived"), "InsertText")
		e.ok(e.Statements.Hole(group), "Hole")
		e.ok(e.store.AddContact(e.ctx, b, a), "AddContact")
		e.ok(e.store.Block(e.ctx, heir, a), "Block")
		_, err := e.store.ChangeSettings(e.ctx, a, chat.SettingsChange{Notify: ptr(false)})
		e.ok(err, "ChangeSettings")
		total := 0
		for range 10 {
			n, err := e.store.EraseMessages(e.ctx, a, 4)
			e.ok(err, "EraseMessages")
			if n > 4 {
				e.Fatalf("a batch of %d", n)
			}
			if total += n; n < 4 {
				break
			}
		}
		if total != 11 {
			e.Errorf("%d messages were erased, want 11", total)
		}
		groups, err := e.store.ErasePerson(e.ctx, a)
		e.ok(err, "ErasePerson")
		if !slices.Equal(groups, []chat.ID{group}) {
			e.Errorf("groups %v", groups)
		}
		e.erased(a, b, heir, c, group)
		_, err = e.store.ErasePerson(e.ctx, chat.NewID())
		e.code(chat.CodeNotFound, err, "nobody")
	},
}

// erased looks at what is left of a.
func (e *env) erased(a, b, heir, direct, group chat.ID) {
	e.Helper()
	users, err := e.store.ResolveUsers(e.ctx, []chat.UserRef{chat.UserRef(a.String())})
	e.ok(err, "ResolveUsers")
	if users[0].Name != chat.ErasedName || users[0].ExternalID != nil || users[0].AvatarURL != nil {
		e.Errorf("the person is still %+v", users[0])
	}
	page, err := e.store.History(e.ctx, b, chat.HistoryQuery{ConversationID: direct, Limit: 50})
	e.ok(err, "History")
	if len(page.Messages) != 5 || page.LastSeq != 10 {
		e.Errorf("the other side has %d messages of %d", len(page.Messages), page.LastSeq)
	}
	if seq := e.send(b, direct, "goes on").Message.Seq; seq != 11 {
		e.Errorf("the next message is number %d, want 11", seq)
	}
	if got := e.contacts(b); len(got) != 0 {
		e.Errorf("contacts %v", got)
	}
	if got, err := e.store.BlockedAmong(e.ctx, heir, []chat.ID{a}); err != nil || len(got) != 0 {
		e.Errorf("blocks %v, %v", got, err)
	}
	if s, err := e.store.Settings(e.ctx, a); err != nil || !s.Notify {
		e.Errorf("settings %+v, %v", s, err)
	}
	_, err = e.store.Conversation(e.ctx, a, group)
	e.code(chat.CodeNotFound, err, "the group of the erased")
	members, err := e.store.Members(e.ctx, b, group, chat.PageRequest{})
	e.ok(err, "Members")
	owners := 0
	for _, m := range members.Items {
		if m.Role == chat.RoleOwner {
			owners++
		}
	}
	if len(members.Items) != 2 || owners != 1 {
		e.Errorf("%d members, %d owners", len(members.Items), owners)
	}
}
