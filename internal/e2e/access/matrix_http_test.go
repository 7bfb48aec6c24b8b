package access

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"xabar/chat"
	"xabar/gateway/httpapi"
	"xabar/gateway/httpapi/validate"
)

// The roles, those that can change nothing first.
var roles = []string{"anonymous", "nonsense", "expired", "revoked", "stranger", "former", "blocked", "member", "admin", "owner"}

// cast are the players of a matrix. The owner has blocked `blocked`, with whom it has
// a direct conversation.
type cast struct {
	tokens                                                           map[string]string
	owner, admin, member, former, stranger, blocked, revoked, target person
	direct                                                           string // of owner and blocked
}

func (w *world) cast() *cast {
	w.t.Helper()
	c := &cast{
		owner: w.person("owner"), admin: w.person("admin"), member: w.person("member"), former: w.person("former"),
		stranger: w.person("stranger"), blocked: w.person("blocked"), revoked: w.person("revoked"), target: w.person("target"),
	}
	c.direct = w.open(c.blocked, object{"user_id": c.owner.id})
	w.send(c.blocked, c.direct, "before the block")
	w.want(204, nil, c.owner.token, "POST", "/users/"+c.blocked.id+"/block", nil)
	w.want(204, nil, serverKey, "POST", "/admin/users/revoked/revoke", nil)
	c.tokens = map[string]string{
		"anonymous": "", "nonsense": "a.b.c", "expired": mintExpired(w.t, "owner"), "revoked": c.revoked.token,
		"stranger": c.stranger.token, "former": c.former.token, "blocked": c.blocked.token,
		"member": c.member.token, "admin": c.admin.token, "owner": c.owner.token,
	}
	return c
}

// stage is a group with a message, from which `former` and nobody else was removed.
func (w *world) stage(c *cast) string {
	w.t.Helper()
	group := w.group(c.owner, c.admin, c.member, c.former, c.revoked)
	w.want(204, nil, c.owner.token, "PATCH", "/conversations/"+group+"/members/"+c.admin.id, object{"role": "admin"})
	w.send(c.owner, group, "first")
	w.want(204, nil, c.owner.token, "DELETE", "/conversations/"+group+"/members/"+c.former.id, nil)
	return group
}

// row is an operation and what it answers to whom. blocked is about the direct
// conversation with the owner, everybody else about the group.
type row struct {
	operation, method, path string
	body                    func(w *world, c *cast) any
	blocked                 int
	member, admin, owner    int
	// own operations are about the caller alone: everybody with a good token gets
	// this.
	own int
}

func fixed(body object) func(*world, *cast) any { return func(*world, *cast) any { return body } }

func message(*world, *cast) any {
	return object{"client_msg_id": chat.NewID().String(), "text": "x"}
}

var rows = []row{
	{operation: "getConversation", method: "GET", path: "/conversations/{id}", blocked: 200, member: 200, admin: 200, owner: 200},
	{operation: "renameConversation", method: "PATCH", path: "/conversations/{id}", body: fixed(object{"title": "group"}), blocked: 403, member: 403, admin: 200, owner: 200},
	{operation: "sendMessage", method: "POST", path: "/conversations/{id}/messages", body: message, blocked: 403, member: 201, admin: 201, owner: 201},
	{operation: "listMessages", method: "GET", path: "/conversations/{id}/messages", blocked: 200, member: 200, admin: 200, owner: 200},
	{operation: "listReceipts", method: "GET", path: "/conversations/{id}/messages/1/receipts", blocked: 200, member: 200, admin: 200, owner: 200},
	{operation: "markRead", method: "POST", path: "/conversations/{id}/read", body: fixed(object{"seq": 1}), blocked: 200, member: 200, admin: 200, owner: 200},
	{operation: "markDelivered", method: "POST", path: "/conversations/{id}/delivered", body: fixed(object{"seq": 1}), blocked: 200, member: 200, admin: 200, owner: 200},
	{operation: "muteConversation", method: "PUT", path: "/conversations/{id}/mute", body: fixed(object{"muted_until": nil}), blocked: 200, member: 200, admin: 200, owner: 200},
	{operation: "listMembers", method: "GET", path: "/conversations/{id}/members", blocked: 200, member: 200, admin: 200, owner: 200},
	{operation: "addMembers", method: "POST", path: "/conversations/{id}/members",
		body: func(_ *world, c *cast) any { return object{"user_ids": []string{c.target.id}} }, blocked: 403, member: 403, admin: 200, owner: 200},
	{operation: "setRole", method: "PATCH", path: "/conversations/{id}/members/{member}", body: fixed(object{"role": "member"}), blocked: 403, member: 403, admin: 403, owner: 204},
	{operation: "removeMember", method: "DELETE", path: "/conversations/{id}/members/{owner}", blocked: 403, member: 403, admin: 403, owner: 204},

	{operation: "openConversation", method: "POST", path: "/conversations",
		body: func(_ *world, c *cast) any { return object{"user_id": c.target.id} }, own: 200},
	{operation: "listConversations", method: "GET", path: "/conversations", own: 200},
	{operation: "sync", method: "POST", path: "/sync", body: fixed(object{}), own: 200},
	{operation: "listContacts", method: "GET", path: "/contacts", own: 200},
	{operation: "addContact", method: "POST", path: "/contacts",
		body: func(_ *world, c *cast) any { return object{"user_id": c.target.id} }, own: 201},
	{operation: "removeContact", method: "DELETE", path: "/contacts/{target}", own: 204},
	{operation: "blockUser", method: "POST", path: "/users/{target}/block", own: 204},
	{operation: "unblockUser", method: "DELETE", path: "/users/{target}/block", own: 204},
	{operation: "getMe", method: "GET", path: "/me", own: 200},
	{operation: "updateMe", method: "PATCH", path: "/me", body: fixed(object{}), own: 200},
	{operation: "addPushSubscription", method: "POST", path: "/me/push-subscriptions",
		body: fixed(object{"endpoint": "https://push.example.org/1", "keys": object{"p256dh": "x", "auth": "y"}}), own: 404},
	{operation: "removePushSubscription", method: "DELETE", path: "/me/push-subscriptions", body: fixed(object{"endpoint": "https://push.example.org/1"}), own: 404},
	{operation: "linkTelegram", method: "POST", path: "/me/telegram", own: 404},
	{operation: "unlinkTelegram", method: "DELETE", path: "/me/telegram", own: 404},
}

// want is the status and code for a role.
func (r row) want(role string) (status int, code string) {
	switch role {
	case "anonymous", "nonsense", "revoked":
		return 401, "unauthenticated"
	case "expired":
		return 401, "token_expired"
	}
	if r.own != 0 {
		return r.own, codeOf(r.own)
	}
	status = map[string]int{"blocked": r.blocked, "member": r.member, "admin": r.admin, "owner": r.owner}[role]
	if role == "stranger" || role == "former" {
		status = 404
	}
	return status, codeOf(status)
}

func codeOf(status int) string {
	return map[int]string{403: "forbidden", 404: "not_found"}[status]
}

func (c *cast) fill(path, conversation string) string {
	for name, value := range map[string]string{
		"{id}": conversation, "{owner}": c.owner.id, "{member}": c.member.id, "{target}": c.target.id,
	} {
		path = strings.ReplaceAll(path, name, value)
	}
	return path
}

func TestWhoMayDoWhatOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--limit-events", "off", "--limit-handshakes", "off", "--limit-conversations", "off")
	c := w.cast()
	// Everybody has met the target, so that opening is the same for all.
	for _, p := range []person{c.stranger, c.former, c.blocked, c.member, c.admin, c.owner} {
		w.open(p, object{"user_id": c.target.id})
	}
	checkRowsAreComplete(t)
	for _, r := range rows {
		group := ""
		if r.own == 0 {
			group = w.stage(c)
		}
		for _, role := range roles {
			t.Run(r.operation+"/"+role, func(t *testing.T) { w.checkRow(t, c, r, role, group) })
		}
	}
	t.Run("admin", func(t *testing.T) { w.checkAdmin(t, c) })
}

func (w *world) checkRow(t *testing.T, c *cast, r row, role, group string) {
	conversation := group
	if role == "blocked" {
		conversation = c.direct
	}
	do := func(conversation string) reply {
		var body any
		if r.body != nil {
			body = r.body(w, c)
		}
		return w.call(c.tokens[role], r.method, c.fill(r.path, conversation), body)
	}
	got := do(conversation)
	status, code := r.want(role)
	if got.status != status || got.code() != code {
		t.Fatalf("%d %s, want %d %s", got.status, got.body, status, code)
	}
	if r.own != 0 || got.status < 400 || (role != "stranger" && role != "former" && status != 401) {
		return
	}
	// What is not theirs looks like what does not exist.
	nowhere := chat.NewID().String()
	if absent := do(nowhere); absent.status != got.status || without(absent.body, nowhere) != without(got.body, conversation) {
		t.Errorf("%d %s for what exists, %d %s for what does not", got.status, got.body, absent.status, absent.body)
	}
}

// checkAdmin: no user's token opens /admin, whoever's it is.
func (w *world) checkAdmin(t *testing.T, c *cast) {
	checker, err := validate.New(httpapi.Description(), w.client)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range checker.Operations() {
		if checker.Security(id) != "serverKey" {
			continue
		}
		for role, token := range c.tokens {
			r := w.callOperation(checker, id, token, c.owner.id)
			if r.status != 401 || r.code() != "unauthenticated" {
				t.Errorf("%s by %s: %d %s", id, role, r.status, r.body)
			}
		}
		if r := w.callOperation(checker, id, serverKey+"x", c.owner.id); r.status != 401 {
			t.Errorf("%s with a longer key: %d", id, r.status)
		}
	}
}

func (w *world) callOperation(checker *validate.Checker, id, token, user string) reply {
	method, path := checker.Route(id)
	return w.call(token, method, strings.ReplaceAll(path, "{userId}", url.PathEscape(user)), checker.Example(id))
}

// checkRowsAreComplete: an operation that is added must say who may do it.
func checkRowsAreComplete(t *testing.T) {
	t.Helper()
	checker, err := validate.New(httpapi.Description(), nil)
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, id := range checker.Operations() {
		missing[id] = checker.Security(id) == "token"
	}
	for _, r := range rows {
		if !missing[r.operation] {
			t.Errorf("%s is no operation with a token, or stands twice", r.operation)
		}
		delete(missing, r.operation)
	}
	maps.DeleteFunc(missing, func(_ string, is bool) bool { return !is })
	if len(missing) > 0 {
		t.Errorf("nobody says who may do %v", slices.Sorted(maps.Keys(missing)))
	}
}

func TestATokenThatIsRevokedIsRefusedAndANewOneIsGood(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("ann")
	w.want(204, nil, serverKey, "POST", "/admin/users/ann/revoke", nil)
	if r := w.call(ann.token, "GET", "/me", nil); r.status != 401 || r.code() != "unauthenticated" {
		t.Fatalf("the revoked token: %d %s", r.status, r.body)
	}
	if again := w.comeBack("ann"); again.id != ann.id {
		t.Error("it is another user")
	}
	if r := w.call(ann.token, "GET", "/me", nil); r.status != 401 {
		t.Errorf("the old token is good again: %d", r.status)
	}
	w.g.Stop()
	w.g.Restart()
	if r := w.call(ann.token, "GET", "/me", nil); r.status != 401 {
		t.Errorf("the old token is good after a restart: %d", r.status)
	}
	if r := w.call(mint(t, chat.SystemUserID.String(), time.Hour), "GET", "/me", nil); r.status != 401 {
		t.Errorf("a token speaks for the system: %d", r.status)
	}
}
