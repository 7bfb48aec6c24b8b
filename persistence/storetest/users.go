package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"xabar/chat"
)

var userCases = map[string]func(*env){
	"users/ExternalID": func(e *env) {
		first, err := e.store.EnsureUser(e.ctx, "42", "Ann")
		e.ok(err, "EnsureUser")
		if first.ExternalID == nil || *first.ExternalID != "42" || first.Name != "Ann" || first.ID == (chat.ID{}) {
			e.Fatalf("made %+v", first)
		}
		again, err := e.store.EnsureUser(e.ctx, "42", "")
		e.ok(err, "EnsureUser again")
		if again.ID != first.ID || again.Name != "Ann" {
			e.Errorf("without a name: %+v, want %+v", again, first)
		}
		renamed, err := e.store.EnsureUser(e.ctx, "42", "Anna")
		e.ok(err, "EnsureUser with another name")
		if renamed.ID != first.ID || renamed.Name != "Anna" || *renamed.ExternalID != "42" {
			e.Errorf("renamed: %+v", renamed)
		}
		unnamed, err := e.store.EnsureUser(e.ctx, "joe", "")
		e.ok(err, "EnsureUser without a name")
		if unnamed.Name != "joe" {
			e.Errorf("a new user without a name is called %q", unnamed.Name)
		}
	},
	"users/UUID": func(e *env) {
		id := chat.NewID()
		u, err := e.store.EnsureUser(e.ctx, chat.UserRef(strings.ToUpper(id.String())), "Bob")
		e.ok(err, "EnsureUser")
		if u.ID != id || u.ExternalID != nil || u.Name != "Bob" {
			e.Errorf("made %+v, want the id %s", u, id)
		}
		found, err := e.store.ResolveUsers(e.ctx, []chat.UserRef{chat.UserRef(id.String())})
		e.ok(err, "ResolveUsers")
		if len(found) != 1 || found[0].ID != id {
			e.Errorf("found %+v", found)
		}
	},
	"users/BadReference": func(e *env) {
		for _, ref := range []chat.UserRef{"", "a\x00b", chat.UserRef(strings.Repeat("x", 256))} {
			_, err := e.store.EnsureUser(e.ctx, ref, "x")
			e.code(chat.CodeInvalidArgument, err, "EnsureUser(%.10q)", string(ref))
		}
		_, err := e.store.EnsureUser(e.ctx, chat.UserRef(strings.Repeat("я", 255)), "x")
		e.ok(err, "255 characters")
	},
	"users/RacedIsOne": func(e *env) {
		second := e.open(Tuning{})
		ids := make([]chat.ID, 16)
		var all sync.WaitGroup
		for i := range ids {
			store := e.store
			if i%2 == 1 {
				store = second
			}
			all.Go(func() {
				u, err := store.EnsureUser(e.ctx, "raced", fmt.Sprint("name ", i))
				if err != nil {
					e.Errorf("EnsureUser: %v", err)
				}
				ids[i] = u.ID
			})
		}
		all.Wait()
		if len(slices.Compact(ids)) != 1 {
			e.Errorf("one external id became several users: %v", ids)
		}
	},
	"users/Resolve": func(e *env) {
		a, err := e.store.EnsureUser(e.ctx, "a", "A")
		e.ok(err, "EnsureUser")
		b, err := e.store.EnsureUser(e.ctx, "b", "B")
		e.ok(err, "EnsureUser")
		got, err := e.store.ResolveUsers(e.ctx, []chat.UserRef{"b", chat.UserRef(a.ID.String()), "b"})
		e.ok(err, "ResolveUsers")
		if len(got) != 3 || got[0].ID != b.ID || got[1].ID != a.ID || got[2].ID != b.ID {
			e.Errorf("resolved %+v", got)
		}
		_, err = e.store.ResolveUsers(e.ctx, []chat.UserRef{"a", "nobody"})
		e.code(chat.CodeNotFound, err, "an unknown one among them")
		_, err = e.store.ResolveUsers(e.ctx, []chat.UserRef{chat.UserRef(chat.NewID().String())})
		e.code(chat.CodeNotFound, err, "an unknown id")
		none, err := e.store.ResolveUsers(e.ctx, nil)
		if err != nil || len(none) != 0 {
			e.Errorf("nobody asked: %v, %v", none, err)
		}
	},
	"users/Demo": func(e *env) {
		ann, err := e.store.AddDemoUser(e.ctx, "Ann")
		e.ok(err, "AddDemoUser")
		if ann.Name != "Ann" || ann.ExternalID == nil || *ann.ExternalID != "demo:ann" {
			e.Errorf("made %+v", ann)
		}
		stranger := e.user("stranger")
		bob, err := e.store.AddDemoUser(e.ctx, "bob")
		e.ok(err, "AddDemoUser")
		again, err := e.store.AddDemoUser(e.ctx, "ANN")
		e.ok(err, "AddDemoUser again")
		if again.ID != ann.ID {
			e.Errorf("the same name in capitals is another user")
		}
		for user, want := range map[chat.ID][]chat.ID{ann.ID: {bob.ID}, bob.ID: {ann.ID}, stranger: {}} {
			if got := e.contacts(user); !slices.Equal(got, want) {
				e.Errorf("contacts %v, want %v", got, want)
			}
		}
	},
	"users/LastSeenForwardOnly": func(e *env) {
		a, b, _ := e.pair()
		now := chat.At(e.Clock.Now())
		e.ok(e.store.SetLastSeen(e.ctx, map[chat.ID]time.Time{b: now.Time, chat.NewID(): now.Time}), "SetLastSeen")
		e.ok(e.store.SetLastSeen(e.ctx, map[chat.ID]time.Time{b: now.Add(-time.Hour)}), "SetLastSeen back")
		got, err := e.store.Acquainted(e.ctx, a, []chat.ID{b})
		e.ok(err, "Acquainted")
		if len(got) != 1 || got[0].UserID != b || got[0].LastSeenAt == nil || !got[0].LastSeenAt.Equal(now.Time) {
			e.Errorf("last seen %+v, want %v", got, now)
		}
	},
}

// contacts walks all pages.
func (e *env) contacts(user chat.ID) []chat.ID {
	e.Helper()
	ids := []chat.ID{}
	page := chat.PageRequest{Limit: 2}
	for range 1000 {
		got, err := e.store.Contacts(e.ctx, user, page)
		e.ok(err, "Contacts")
		if len(got.Items) > 2 {
			e.Fatalf("a page of %d", len(got.Items))
		}
		for _, c := range got.Items {
			ids = append(ids, c.User.ID)
		}
		if page.Cursor = got.NextCursor; page.Cursor == "" {
			return ids
		}
	}
	e.Fatal("the pages of contacts have no end")
	return nil
}

var contactCases = map[string]func(*env){
	"contacts/ByNameThenID": func(e *env) {
		me := e.user("me")
		names := []string{"b", "a", "Z", "é", "a", "zz", "a"}
		ids := map[chat.ID]string{}
		for _, name := range names {
			id := e.user(name)
			ids[id] = name
			e.ok(e.store.AddContact(e.ctx, me, id), "AddContact")
			e.ok(e.store.AddContact(e.ctx, me, id), "AddContact again")
		}
		got := e.contacts(me)
		want := slices.SortedFunc(func(yield func(chat.ID) bool) {
			for id := range ids {
				if !yield(id) {
					return
				}
			}
		}, func(x, y chat.ID) int {
			if c := strings.Compare(ids[x], ids[y]); c != 0 {
				return c
			}
			return strings.Compare(x.String(), y.String())
		})
		if !slices.Equal(got, want) {
			e.Errorf("contacts in another order than by name (bytes), then id: %v, want %v", got, want)
		}
	},
	"contacts/OneWay": func(e *env) {
		a, b := e.user("a"), e.user("b")
		e.ok(e.store.AddContact(e.ctx, a, b), "AddContact")
		if got := e.contacts(b); len(got) != 0 {
			e.Errorf("the other one has %v", got)
		}
		e.code(chat.CodeNotFound, e.store.AddContact(e.ctx, a, chat.NewID()), "a contact that does not exist")
		e.ok(e.store.RemoveContact(e.ctx, a, b), "RemoveContact")
		e.ok(e.store.RemoveContact(e.ctx, a, b), "RemoveContact again")
		if got := e.contacts(a); len(got) != 0 {
			e.Errorf("after RemoveContact: %v", got)
		}
	},
	"contacts/BadCursor": func(e *env) {
		a := e.user("a")
		_, err := e.store.Contacts(e.ctx, a, chat.PageRequest{Cursor: "nonsense"})
		e.code(chat.CodeInvalidArgument, err, "a cursor of somebody else's")
		if got := chat.AsError(err).Field; got != "cursor" {
			e.Errorf("field %q, want cursor", got)
		}
	},
	"contacts/Acquainted": func(e *env) {
		me, listed, member, stranger, fan := e.user("me"), e.user("listed"), e.user("member"), e.user("stranger"), e.user("fan")
		e.ok(e.store.AddContact(e.ctx, me, listed), "AddContact")
		e.ok(e.store.AddContact(e.ctx, fan, me), "AddContact")
		e.group(member, me)
		ask := func() []chat.ID {
			states, err := e.store.Acquainted(e.ctx, me, []chat.ID{listed, member, stranger, fan, chat.NewID()})
			e.ok(err, "Acquainted")
			var ids []chat.ID
			for _, s := range states {
				if s.LastSeenAt != nil {
					e.Errorf("never seen, and last seen at %v", s.LastSeenAt)
				}
				ids = append(ids, s.UserID)
			}
			slices.SortFunc(ids, func(x, y chat.ID) int { return strings.Compare(x.String(), y.String()) })
			return ids
		}
		want := []chat.ID{listed, member}
		slices.SortFunc(want, func(x, y chat.ID) int { return strings.Compare(x.String(), y.String()) })
		if got := ask(); !slices.Equal(got, want) {
			e.Errorf("acquainted with %v, want the contact and the fellow member %v", got, want)
		}
		e.ok(e.store.Block(e.ctx, me, listed), "Block")
		e.ok(e.store.Block(e.ctx, member, me), "Block")
		if got := ask(); len(got) != 0 {
			e.Errorf("a block hides presence both ways; got %v", got)
		}
	},
}
