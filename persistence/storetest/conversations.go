package storetest

import (
	"slices"
	"sync"

	"xabar/chat"
)

var directCases = map[string]func(*env){
	"direct/FromBothSides": func(e *env) {
		a, b := e.user("Ann"), e.user("Bob")
		c, created, err := e.store.OpenDirect(e.ctx, a, b)
		e.ok(err, "OpenDirect")
		if !created || c.Kind != chat.Direct || c.Title != "Bob" || c.Peer == nil || c.Peer.ID != b || c.MemberCount != 2 ||
			c.LastMessage != nil || c.LastSeq != 0 || c.FirstSeq != 1 || c.Unread != 0 || c.MutedUntil != nil ||
			c.OthersReadSeq == nil || *c.OthersReadSeq != 0 || !c.UpdatedAt.Equal(chat.At(e.Clock.Now()).Time) {
			e.Errorf("created %v: %+v", created, c)
		}
		other, created, err := e.store.OpenDirect(e.ctx, b, a)
		e.ok(err, "OpenDirect from the other side")
		if created || other.ID != c.ID || other.Title != "Ann" || other.Peer.ID != a {
			e.Errorf("created %v: %+v", created, other)
		}
		ids, err := e.store.MemberIDs(e.ctx, c.ID)
		if err != nil || len(ids) != 2 || !slices.Contains(ids, a) || !slices.Contains(ids, b) {
			e.Errorf("MemberIDs %v, %v", ids, err)
		}
	},
	"direct/RacedIsOne": func(e *env) {
		second := e.open(Tuning{})
		a, b := e.user("a"), e.user("b")
		ids := make([]chat.ID, 20)
		created := make([]bool, len(ids))
		var all sync.WaitGroup
		for i := range ids {
			store, x, y := e.store, a, b
			if i%2 == 1 {
				store = second
			}
			if i%3 == 0 {
				x, y = b, a
			}
			all.Go(func() {
				c, isNew, err := store.OpenDirect(e.ctx, x, y)
				if err != nil {
					e.Errorf("OpenDirect: %v", err)
				}
				ids[i], created[i] = c.ID, isNew
			})
		}
		all.Wait()
		if len(slices.Compact(ids)) != 1 {
			e.Errorf("several conversations of one pair: %v", ids)
		}
		made := 0
		for _, c := range created {
			if c {
				made++
			}
		}
		if made != 1 {
			e.Errorf("created %d times", made)
		}
	},
	"direct/Refused": func(e *env) {
		a, b := e.user("a"), e.user("b")
		_, _, err := e.store.OpenDirect(e.ctx, a, a)
		e.code(chat.CodeInvalidArgument, err, "with oneself")
		_, _, err = e.store.OpenDirect(e.ctx, a, chat.NewID())
		e.code(chat.CodeNotFound, err, "with nobody")
		e.ok(e.store.Block(e.ctx, b, a), "Block")
		_, _, err = e.store.OpenDirect(e.ctx, a, b)
		e.code(chat.CodeForbidden, err, "blocked")
		_, _, err = e.store.OpenDirect(e.ctx, b, a)
		e.code(chat.CodeForbidden, err, "blocking")
	},
	"direct/MembersDoNotChange": func(e *env) {
		a, b, c := e.pair()
		_, err := e.store.AddMembers(e.ctx, a, c, []chat.ID{e.user("x")})
		e.code(chat.CodeForbidden, err, "AddMembers")
		e.code(chat.CodeForbidden, e.store.RemoveMember(e.ctx, a, c, b), "RemoveMember")
		e.code(chat.CodeForbidden, e.store.RemoveMember(e.ctx, a, c, a), "leaving")
	},
	"direct/Stranger": func(e *env) {
		a, _, c := e.pair()
		e.fill(a, c, 1)
		for who, id := range map[string]chat.ID{"of the pair's": c, "of nobody's": chat.NewID()} {
			s := e.user("stranger")
			_, err := e.store.Conversation(e.ctx, s, id)
			e.code(chat.CodeNotFound, err, "Conversation %s", who)
			_, err = e.store.Members(e.ctx, s, id, chat.PageRequest{})
			e.code(chat.CodeNotFound, err, "Members %s", who)
			_, err = e.store.History(e.ctx, s, chat.HistoryQuery{ConversationID: id})
			e.code(chat.CodeNotFound, err, "History %s", who)
			_, err = e.store.Receipts(e.ctx, s, id, 1, chat.PageRequest{})
			e.code(chat.CodeNotFound, err, "Receipts %s", who)
			_, err = e.store.AddMembers(e.ctx, s, id, []chat.ID{s})
			e.code(chat.CodeNotFound, err, "AddMembers %s", who)
			e.code(chat.CodeNotFound, e.store.RemoveMember(e.ctx, s, id, s), "RemoveMember %s", who)
			_, err = e.trySend(s, id, "x", "text")
			e.code(chat.CodeNotFound, err, "Send %s", who)
			for _, kind := range []chat.PositionKind{chat.Delivered, chat.Read} {
				_, err = e.tryMove(chat.PositionMove{Kind: kind, UserID: s, ConversationID: id, UpTo: 1})
				e.code(chat.CodeNotFound, err, "MovePosition %s", who)
			}
			page, err := e.store.Sync(e.ctx, s, chat.SyncQuery{Positions: map[chat.ID]chat.SyncPosition{id: {}}})
			if err != nil || len(page.Conversations) != 0 {
				e.Errorf("Sync %s: %+v, %v", who, page, err)
			}
		}
		if c := e.view(a, c); c.LastSeq != 1 {
			e.Errorf("a refused send took a number: lastSeq %d", c.LastSeq)
		}
	},
}

var groupCases = map[string]func(*env){
	"group/Create": func(e *env) {
		u := e.users(3)
		c, err := e.store.CreateGroup(e.ctx, u[0], "Tea", []chat.ID{u[1], u[0], u[2], u[1]})
		e.ok(err, "CreateGroup")
		if c.Kind != chat.Group || c.Title != "Tea" || c.Peer != nil || c.MemberCount != 3 || c.LastSeq != 0 {
			e.Errorf("created %+v", c)
		}
		if got := e.roles(u[0], c.ID); got[u[0]] != chat.RoleOwner || got[u[1]] != chat.RoleMember || len(got) != 3 {
			e.Errorf("roles %v", got)
		}
	},
	"group/CreateRefused": func(e *env) {
		u := e.users(2)
		_, err := e.store.CreateGroup(e.ctx, u[0], "t", []chat.ID{u[1], chat.NewID()})
		e.code(chat.CodeNotFound, err, "a member that does not exist")
		_, err = e.store.CreateGroup(e.ctx, u[0], "t", []chat.ID{u[0]})
		e.code(chat.CodeInvalidArgument, err, "alone")
		many := make([]chat.ID, chat.MaxGroupMembers)
		for i := range many {
			many[i] = chat.NewID()
		}
		_, err = e.store.CreateGroup(e.ctx, u[0], "t", many)
		e.code(chat.CodeInvalidArgument, err, "more than the most")
		page, err := e.store.Conversations(e.ctx, u[0], chat.PageRequest{})
		if err != nil || len(page.Conversations) != 0 {
			e.Errorf("something of the refused stayed: %+v, %v", page, err)
		}
	},
	"group/AddMembers": func(e *env) {
		u := e.users(6)
		owner, admin, member, late := u[0], u[1], u[2], u[3]
		c := e.group(owner, admin, member)
		e.ok(e.store.SetRole(e.ctx, owner, c, admin, chat.RoleAdmin), "SetRole")
		last := e.fill(owner, c, 3)
		version := e.view(owner, c).Version
		_, err := e.store.AddMembers(e.ctx, member, c, []chat.ID{late})
		e.code(chat.CodeForbidden, err, "by a member")
		_, err = e.store.AddMembers(e.ctx, owner, c, []chat.ID{late, chat.NewID()})
		e.code(chat.CodeNotFound, err, "somebody who does not exist")
		added, err := e.store.AddMembers(e.ctx, admin, c, []chat.ID{late, member, late, u[4]})
		e.ok(err, "AddMembers")
		if !slices.Equal(added, []chat.ID{late, u[4]}) {
			e.Errorf("added %v, want the two new ones", added)
		}
		view := e.view(late, c)
		if view.MemberCount != 5 || view.LastSeq != last || view.Unread != 0 || view.LastMessage != nil || view.FirstSeq != 1 ||
			view.LastDeliveredSeq != last || view.LastReadSeq != last {
			e.Errorf("the new member sees %+v", view)
		}
		if view.Version <= version {
			e.Errorf("version %d after a change of members, was %d", view.Version, version)
		}
		e.send(owner, c, "after")
		if view = e.view(late, c); view.Unread != 1 || view.FirstSeq != last+1 || view.LastMessage == nil || view.LastMessage.Seq != last+1 {
			e.Errorf("after a message: %+v", view)
		}
		if view = e.view(member, c); view.LastSeq != last+1 || view.FirstSeq != 1 {
			e.Errorf("an old member sees %+v", view)
		}
	},
	"group/Full": func(e *env) {
		u := e.users(3)
		// Users come cheaper than a thousand calls: the limit counts ids, then people.
		c := e.group(u[0], u[1])
		many := make([]chat.ID, 0, chat.MaxGroupMembers)
		for range chat.MaxGroupMembers - 1 {
			many = append(many, e.user("m"))
		}
		_, err := e.store.AddMembers(e.ctx, u[0], c, many)
		e.code(chat.CodeInvalidArgument, err, "one more than the most")
		if got := e.view(u[0], c).MemberCount; got != 2 {
			e.Fatalf("a refused addition left %d members", got)
		}
		added, err := e.store.AddMembers(e.ctx, u[0], c, many[1:])
		e.ok(err, "AddMembers up to the most")
		if len(added) != chat.MaxGroupMembers-2 {
			e.Errorf("added %d", len(added))
		}
		ids, err := e.store.MemberIDs(e.ctx, c)
		if err != nil || len(ids) != chat.MaxGroupMembers {
			e.Errorf("%d members, %v", len(ids), err)
		}
		view := e.view(u[0], c)
		if view.MemberCount != chat.MaxGroupMembers || view.OthersReadSeq != nil || view.OthersDeliveredSeq != nil {
			e.Errorf("a large group: %+v", view)
		}
		if got := e.roles(u[0], c); len(got) != chat.MaxGroupMembers {
			e.Errorf("the pages list %d members", len(got))
		}
	},
	"group/RemoveMember": func(e *env) {
		u := e.users(5)
		owner, admin, other, member, gone := u[0], u[1], u[2], u[3], u[4]
		c := e.group(owner, admin, other, member, gone)
		e.ok(e.store.SetRole(e.ctx, owner, c, admin, chat.RoleAdmin), "SetRole")
		e.ok(e.store.SetRole(e.ctx, owner, c, other, chat.RoleAdmin), "SetRole")
		e.code(chat.CodeForbidden, e.store.RemoveMember(e.ctx, member, c, gone), "a member by a member")
		e.code(chat.CodeForbidden, e.store.RemoveMember(e.ctx, admin, c, owner), "the owner by an admin")
		e.code(chat.CodeForbidden, e.store.RemoveMember(e.ctx, admin, c, other), "an admin by an admin")
		e.code(chat.CodeNotFound, e.store.RemoveMember(e.ctx, owner, c, e.user("x")), "somebody who is no member")
		e.ok(e.store.RemoveMember(e.ctx, admin, c, gone), "a member by an admin")
		e.ok(e.store.RemoveMember(e.ctx, owner, c, other), "an admin by the owner")
		e.ok(e.store.RemoveMember(e.ctx, member, c, member), "leaving")
		if got := e.view(owner, c).MemberCount; got != 2 {
			e.Errorf("%d members left, want 2", got)
		}
		_, err := e.store.Conversation(e.ctx, gone, c)
		e.code(chat.CodeNotFound, err, "for who was removed")
		_, err = e.trySend(gone, c, "x", "text")
		e.code(chat.CodeNotFound, err, "Send of who was removed")
	},
	"group/RejoinSeesFromThen": func(e *env) {
		u := e.users(3)
		c := e.group(u[0], u[1], u[2])
		e.fill(u[0], c, 2)
		e.read(u[1], c, 1)
		e.ok(e.store.RemoveMember(e.ctx, u[0], c, u[1]), "RemoveMember")
		e.fill(u[0], c, 2)
		_, err := e.store.AddMembers(e.ctx, u[0], c, []chat.ID{u[1]})
		e.ok(err, "AddMembers")
		e.positions(u[1], c, 4, 4)
		page, err := e.store.History(e.ctx, u[1], chat.HistoryQuery{ConversationID: c})
		if err != nil || len(page.Messages) != 0 || page.LastSeq != 4 {
			e.Errorf("history after coming back: %+v, %v", page, err)
		}
	},
	"group/OwnerSucceeds": func(e *env) {
		u := e.users(4)
		c := e.group(u[0], u[1])
		e.Clock.Step(1e9)
		_, err := e.store.AddMembers(e.ctx, u[0], c, []chat.ID{u[2]})
		e.ok(err, "AddMembers")
		e.Clock.Step(1e9)
		_, err = e.store.AddMembers(e.ctx, u[0], c, []chat.ID{u[3]})
		e.ok(err, "AddMembers")
		e.ok(e.store.SetRole(e.ctx, u[0], c, u[3], chat.RoleAdmin), "SetRole")
		for _, step := range []struct{ leaves, owner chat.ID }{
			{u[0], u[3]}, // the only admin, though the youngest
			{u[3], u[1]}, // then the longest member
			{u[1], u[2]},
		} {
			e.ok(e.store.RemoveMember(e.ctx, step.leaves, c, step.leaves), "leaving")
			if got := e.roles(step.owner, c)[step.owner]; got != chat.RoleOwner {
				e.Fatalf("the next in line is %q, want owner", got)
			}
		}
		if v := e.view(u[2], c); v.MemberCount != 1 || v.OthersReadSeq != nil {
			e.Errorf("the last one sees %+v", v)
		}
		e.ok(e.store.RemoveMember(e.ctx, u[2], c, u[2]), "the last one leaves")
	},
	"group/SecondOwnerStays": func(e *env) {
		u := e.users(3)
		c := e.group(u[0], u[1], u[2])
		e.ok(e.store.SetRole(e.ctx, u[0], c, u[2], chat.RoleOwner), "SetRole")
		e.ok(e.store.RemoveMember(e.ctx, u[0], c, u[0]), "leaving")
		if got := e.roles(u[1], c); got[u[2]] != chat.RoleOwner || got[u[1]] != chat.RoleMember {
			e.Errorf("roles %v", got)
		}
	},
	"group/MembersByJoining": func(e *env) {
		u := e.users(8)
		c := e.group(u[0], u[7])
		var want []chat.ID
		for _, i := range []int{3, 1, 2} {
			e.Clock.Step(1e9)
			_, err := e.store.AddMembers(e.ctx, u[0], c, []chat.ID{u[i]})
			e.ok(err, "AddMembers")
			want = append(want, u[i])
		}
		e.fill(u[0], c, 4)
		e.read(u[1], c, 3)
		var got []chat.ID
		page := chat.PageRequest{Limit: 2}
		for range 10 {
			p, err := e.store.Members(e.ctx, u[0], c, page)
			e.ok(err, "Members")
			for _, m := range p.Items {
				got = append(got, m.User.ID)
				if m.User.ID == u[1] && (m.LastReadSeq != 3 || m.LastDeliveredSeq != 3 || m.User.Name == "") {
					e.Errorf("member %+v", m)
				}
			}
			if page.Cursor = p.NextCursor; page.Cursor == "" {
				break
			}
		}
		if len(got) != 5 || !slices.Equal(got[2:], want) {
			e.Errorf("members %v, want the first two, then %v", got, want)
		}
		_, err := e.store.Members(e.ctx, u[0], c, chat.PageRequest{Cursor: "x"})
		e.code(chat.CodeInvalidArgument, err, "a bad cursor")
	},
}

// roles walks all pages of members.
func (e *env) roles(user, conversation chat.ID) map[chat.ID]chat.Role {
	e.Helper()
	roles := map[chat.ID]chat.Role{}
	var page chat.PageRequest
	for range chat.MaxGroupMembers {
		p, err := e.store.Members(e.ctx, user, conversation, page)
		e.ok(err, "Members")
		for _, m := range p.Items {
			if _, twice := roles[m.User.ID]; twice {
				e.Fatalf("%v is listed twice", m.User.ID)
			}
			roles[m.User.ID] = m.Role
		}
		if page.Cursor = p.NextCursor; page.Cursor == "" {
			return roles
		}
	}
	e.Fatal("the pages of members have no end")
	return nil
}
