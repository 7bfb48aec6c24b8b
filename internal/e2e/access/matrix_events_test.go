package access

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"xabar/chat"
	"xabar/internal/testkit"
)

// event is what a client may emit and what it answers to whom; "" is ok. blocked is
// about the direct conversation with the owner, everybody else about the group.
type event struct {
	name                   string
	payload                func(c *cast, conversation string) object
	blocked, member, owner string
	own                    bool // about the caller alone: good for everybody
}

var events = []event{
	{name: "message:send", blocked: "forbidden", payload: func(_ *cast, id string) object {
		return object{"conversationId": id, "clientMsgId": chat.NewID().String(), "text": "x"}
	}},
	{name: "message:delivered", payload: func(_ *cast, id string) object { return object{"conversationId": id, "seq": 1} }},
	{name: "message:read", payload: func(_ *cast, id string) object { return object{"conversationId": id, "seq": 1} }},
	{name: "history", payload: func(_ *cast, id string) object { return object{"conversationId": id} }},
	{name: "members", payload: func(_ *cast, id string) object { return object{"conversationId": id} }},
	{name: "receipts", payload: func(_ *cast, id string) object { return object{"conversationId": id, "seq": 1} }},

	{name: "conversations", own: true, payload: func(*cast, string) object { return object{} }},
	{name: "contacts", own: true, payload: func(*cast, string) object { return object{} }},
	{name: "sync", own: true, payload: func(_ *cast, id string) object { return object{"positions": object{id: 0}} }},
	{name: "presence", own: true, payload: func(c *cast, _ string) object { return object{"userIds": []string{c.owner.id}} }},
	{name: "conversation:open", own: true, payload: func(c *cast, _ string) object { return object{"userId": c.target.id} }},
}

func (e event) want(role string) string {
	if e.own {
		return ""
	}
	switch role {
	case "stranger", "former":
		return "not_found"
	case "blocked":
		return e.blocked
	case "member":
		return e.member
	}
	return e.owner
}

func TestWhoMayDoWhatOverSocketIO(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--limit-events", "off", "--limit-conversations", "off")
	c := w.cast()
	group := w.stage(c)
	clients := map[string]*testkit.Client{
		"stranger": w.page(c.stranger), "former": w.page(c.former), "blocked": w.page(c.blocked),
		"member": w.page(c.member), "owner": w.page(c.owner),
	}
	for _, e := range events {
		for role, client := range clients {
			t.Run(e.name+"/"+role, func(t *testing.T) {
				conversation := group
				if role == "blocked" {
					conversation = c.direct
				}
				got := w.ask(client, e.name, e.payload(c, conversation))
				if got.Error.Code != e.want(role) || got.OK != (e.want(role) == "") {
					t.Fatalf("%s, want %q", got.raw, e.want(role))
				}
				nowhere := chat.NewID().String()
				if strings.Contains(string(got.raw), group) && (role == "stranger" || role == "former" || role == "blocked") {
					// Only as sync names whatever is not the caller's, be it there or not.
					absent := w.ask(client, e.name, e.payload(c, nowhere))
					if e.name != "sync" || strings.ReplaceAll(string(absent.raw), nowhere, group) != string(got.raw) {
						t.Errorf("the answer names the group: %s, and %s for what is not there", got.raw, absent.raw)
					}
				}
				if e.own || got.OK {
					return
				}
				if absent := w.ask(client, e.name, e.payload(c, nowhere)); e.want(role) == "not_found" && string(absent.raw) != string(got.raw) {
					t.Errorf("%s for what exists, %s for what does not", got.raw, absent.raw)
				}
			})
		}
	}
	t.Run("what others hear", func(t *testing.T) { w.checkHearing(t, c, group, clients) })
	t.Run("presence", func(t *testing.T) { w.checkPresence(t, c, clients) })
	t.Run("auth:refresh", func(t *testing.T) { w.checkRefresh(t, c, clients["stranger"]) })
}

// checkHearing: what happens in a group reaches its members alone, and what a
// stranger emits reaches nobody.
func (w *world) checkHearing(t *testing.T, c *cast, group string, clients map[string]*testkit.Client) {
	ctx := testkit.Context(t)
	marks := map[string]int{}
	for role, client := range clients {
		marks[role] = client.Mark()
	}
	for _, role := range []string{"stranger", "former", "blocked"} {
		if err := clients[role].Send(ctx, "typing", object{"conversationId": group}); err != nil {
			t.Fatal(err)
		}
		w.ask(clients[role], "conversations", object{}) // behind the typing
	}
	if err := clients["owner"].Send(ctx, "typing", object{"conversationId": group}); err != nil {
		t.Fatal(err)
	}
	w.send(c.owner, group, "the last one")
	of := func(h testkit.Heard) bool { return strings.Contains(string(h.Args[0]), "the last one") }
	if _, err := clients["member"].WaitAfter(ctx, marks["member"], "message", of); err != nil {
		t.Fatal(err)
	}
	for role, client := range clients {
		w.ask(client, "conversations", object{}) // whatever was on its way is here
		for _, h := range client.Events("")[marks[role]:] {
			if len(h.Args) == 0 || !strings.Contains(string(h.Args[0]), group) {
				continue
			}
			switch {
			case role != "member" && role != "owner":
				t.Errorf("%s hears of the group: %s %s", role, h.Event, h.Args[0])
			case h.Event == "typing" && testkit.Decode[struct{ UserID string }](h).UserID != c.owner.id:
				t.Errorf("%s hears a stranger's typing: %s", role, h.Args[0])
			}
		}
	}
}

// checkPresence: who is blocked, or unknown, sees nobody, in the shape of one who
// is offline.
func (w *world) checkPresence(t *testing.T, c *cast, clients map[string]*testkit.Client) {
	for role, visible := range map[string]bool{"member": true, "stranger": false, "blocked": false} {
		got := w.ask(clients[role], "presence", object{"userIds": []string{c.owner.id}})
		var a struct {
			Presence []struct {
				Online     bool
				LastSeenAt *string
			}
		}
		if err := json.Unmarshal(got.raw, &a); err != nil || len(a.Presence) != 1 {
			t.Fatalf("%s: %v", got.raw, err)
		}
		if a.Presence[0].Online != visible || (!visible && a.Presence[0].LastSeenAt != nil) {
			t.Errorf("the owner's presence for the %s: %s", role, got.raw)
		}
	}
	nobody := w.ask(clients["stranger"], "presence", object{"userIds": []string{chat.NewID().String()}})
	owner := w.ask(clients["stranger"], "presence", object{"userIds": []string{c.owner.id}})
	if without(owner.raw, c.owner.id) != without(nobody.raw, strings.Trim(idOf(t, nobody.raw), `"`)) {
		t.Errorf("%s of a user, %s of nobody", owner.raw, nobody.raw)
	}
}

func idOf(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var a struct{ Presence []struct{ UserID string } }
	if err := json.Unmarshal(raw, &a); err != nil || len(a.Presence) != 1 {
		t.Fatalf("%s: %v", raw, err)
	}
	return a.Presence[0].UserID
}

func (w *world) checkRefresh(t *testing.T, c *cast, client *testkit.Client) {
	for token, code := range map[string]string{
		c.owner.token: "forbidden", "": "unauthenticated", "a.b.c": "unauthenticated",
		mintExpired(t, "stranger"): "token_expired", mint(t, "stranger", 2*3600e9): "",
	} {
		if got := w.ask(client, "auth:refresh", object{"token": token}); got.Error.Code != code {
			t.Errorf("%s, want %q", got.raw, code)
		}
	}
}

// Who can't connect is told why, in data; nothing of it says whether there is
// such a user.
func TestWhoMayConnect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.person("ann")
	revoked := w.person("revoked")
	w.want(204, nil, serverKey, "POST", "/admin/users/revoked/revoke", nil)
	for name, test := range map[string]struct{ token, code string }{
		"anonymous": {"", "unauthenticated"}, "nonsense": {"a.b.c", "unauthenticated"},
		"expired": {mintExpired(t, "ann"), "token_expired"}, "revoked": {revoked.token, "unauthenticated"},
		"the system": {mint(t, chat.SystemUserID.String(), 3600e9), "unauthenticated"},
	} {
		for _, transport := range []string{"websocket", "polling"} {
			t.Run(name+"/"+transport, func(t *testing.T) {
				client := w.pages().Client(t, testkit.ClientOptions{URL: w.g.URL, Token: test.token, Transports: []string{transport}})
				err := client.Connect(testkit.Context(t))
				var refused *testkit.Refused
				if !errors.As(err, &refused) || !strings.Contains(string(refused.Data), `"code":"`+test.code+`"`) {
					t.Errorf("%v, want %s", err, test.code)
				}
			})
		}
	}
}
