package validate

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"xabar/chat"
	"xabar/gateway/auth"
	"xabar/gateway/httpapi"
	"xabar/gateway/httpapi/api"
	"xabar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const (
	serverKey = "the-server-key-of-this-test"
	jwtSecret = "a secret of at least thirty-two bytes"
)

// driver calls one server.
type driver struct {
	t    *testing.T
	c    *Checker
	base string
}

// call drives an operation and fails unless the answer has the status, and is as
// documented.
func (d driver) call(want int, operation, token string, r Request) Answer {
	d.t.Helper()
	r.Operation = operation
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := d.c.Call(testkit.Context(d.t), d.base, r)
	if err != nil {
		d.t.Errorf("%.600s", err) // what follows is the whole schema
	} else if answer.Status != want {
		d.t.Errorf("%s: %d %.300s, want %d", operation, answer.Status, answer.Body, want)
	}
	return answer
}

func in(path ...string) map[string]string {
	params := map[string]string{}
	for i := 0; i < len(path); i += 2 {
		params[path[i]] = path[i+1]
	}
	return params
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type object = map[string]any

// field reads one of an answer.
func field(t *testing.T, a Answer, name string) string {
	t.Helper()
	var o object
	if err := json.Unmarshal(a.Body, &o); err != nil {
		t.Fatalf("%s: %v", a.Body, err)
	}
	s, _ := o[name].(string)
	return s
}

func TestTheServerDoesWhatItsDescriptionSays(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	c, err := New(httpapi.Description(), client)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("a healthy server", func(t *testing.T) { driveHealthy(t, c) })
	t.Run("a server with tight limits", func(t *testing.T) { driveLimits(t, c) })
	t.Run("a server without its store", func(t *testing.T) { driveFailures(t, c) })
	t.Run("a server with notification channels", func(t *testing.T) { driveChannels(t, c) })

	lines, missing := c.Coverage()
	for _, line := range lines {
		t.Log(line)
	}
	if len(missing) > 0 {
		t.Errorf("documented, and not driven:\n%s", strings.Join(missing, "\n"))
	}
}

// driveHealthy runs the real binary.
func driveHealthy(t *testing.T, c *Checker) {
	g := testkit.StartGateway(t, testkit.GatewayOptions{Args: []string{
		"--server-key", serverKey, "--jwt-secret", jwtSecret,
		"--limit-events", "off", "--limit-handshakes", "off",
	}})
	d := driver{t, c, g.URL}
	ada, bob, cyd := login(d, "ada"), login(d, "bob"), login(d, "cyd")
	d.call(400, "demoLogin", "", Request{Body: []byte(`{"name": " "}`)})
	d.call(200, "getDescription", "", Request{})
	d.call(200, "getReference", "", Request{})

	driveConversations(d, ada, bob, cyd)
	driveMembers(d, ada, bob, cyd)
	drivePeople(d, ada, bob)
	driveAdmin(d, ada)
	driveEverywhere(d, ada)
}

type person struct{ id, token string }

func login(d driver, name string) person {
	d.t.Helper()
	a := d.call(200, "demoLogin", "", Request{Body: encode(d.t, object{"name": name})})
	var session struct {
		Token string
		User  struct{ ID string }
	}
	if err := json.Unmarshal(a.Body, &session); err != nil {
		d.t.Fatal(err)
	}
	return person{session.User.ID, session.Token}
}

// driveConversations drives what is done with conversations and messages.
func driveConversations(d driver, ada, bob, cyd person) {
	t := d.t
	direct := field(t, d.call(201, "openConversation", ada.token, Request{Body: encode(t, object{"user_id": bob.id})}), "id")
	d.call(200, "openConversation", bob.token, Request{Body: encode(t, object{"user_id": ada.id})})
	d.call(400, "openConversation", ada.token, Request{Body: encode(t, object{"user_id": ada.id})})
	d.call(400, "openConversation", ada.token, Request{Body: []byte(`{}`)})
	d.call(400, "openConversation", ada.token, Request{Body: []byte(`{"title": "x"}`)})
	d.call(400, "openConversation", ada.token, Request{Body: encode(t, object{"title": "x", "member_ids": []string{}})})
	d.call(404, "openConversation", ada.token, Request{Body: encode(t, object{"user_id": 4711})})
	d.call(200, "listConversations", ada.token, Request{Query: url.Values{"limit": {"0"}}})
	d.call(200, "getConversation", ada.token, Request{Params: in("id", direct)})
	d.call(404, "getConversation", cyd.token, Request{Params: in("id", direct)})

	message := encode(t, object{"client_msg_id": "m1", "text": "Salam"})
	first := d.call(201, "sendMessage", ada.token, Request{Params: in("id", direct), Body: message})
	repeat := d.call(200, "sendMessage", ada.token, Request{Params: in("id", direct), Body: message})
	if !bytes.Equal(first.Body, repeat.Body) {
		t.Errorf("a repeat has another body:\n%s%s", first.Body, repeat.Body)
	}
	elsewhere := field(t, d.call(201, "openConversation", ada.token, Request{Body: encode(t, object{"user_id": cyd.id})}), "id")
	d.call(409, "sendMessage", ada.token, Request{Params: in("id", elsewhere), Body: message})
	d.call(400, "sendMessage", ada.token, Request{Params: in("id", direct), Body: []byte(`{"text": "no id"}`)})
	d.call(422, "sendMessage", ada.token, Request{Params: in("id", direct), Body: []byte(`{"client_msg_id": "m2", "text": "a\u0000b"}`)})
	d.call(422, "sendMessage", ada.token, Request{Params: in("id", direct), Body: []byte(`{"client_msg_id": "m2", "text": " "}`)})
	d.call(422, "sendMessage", ada.token, Request{Params: in("id", direct),
		Body: encode(t, object{"client_msg_id": "m2", "text": strings.Repeat("\U0001F600", 2001)})})
	d.call(201, "sendMessage", bob.token, Request{Params: in("id", direct),
		Body: encode(t, object{"client_msg_id": "m2", "text": strings.Repeat("\U0001F600", 2000), "reply_to_seq": 1})})
	d.call(200, "listMessages", bob.token, Request{Params: in("id", direct), Query: url.Values{"after_seq": {"0"}, "limit": {"1"}}})
	d.call(200, "listReceipts", ada.token, Request{Params: in("id", direct, "seq", "1")})
	d.call(200, "markDelivered", ada.token, Request{Params: in("id", direct), Body: []byte(`{"seq": 2}`)})
	d.call(200, "markRead", ada.token, Request{Params: in("id", direct), Body: []byte(`{"seq": 999}`)})
	d.call(200, "sync", bob.token, Request{Body: encode(t, object{"positions": object{direct: 0}})})
	d.call(200, "sync", bob.token, Request{Body: encode(t, object{"positions": object{direct: object{"seq": 1, "version": 1}}})})
	d.call(200, "muteConversation", bob.token, Request{Params: in("id", direct), Body: []byte(`{"muted_until": "2099-01-01T00:00:00Z"}`)})
	d.call(200, "listConversations", bob.token, Request{})
	d.call(200, "muteConversation", bob.token, Request{Params: in("id", direct), Body: []byte(`{"muted_until": null}`)})
	d.call(403, "renameConversation", ada.token, Request{Params: in("id", direct), Body: []byte(`{"title": "x"}`)})
}

// driveMembers drives what is done with groups.
func driveMembers(d driver, ada, bob, cyd person) {
	t := d.t
	group := field(t, d.call(201, "openConversation", ada.token,
		Request{Body: encode(t, object{"title": "Family", "member_ids": []string{bob.id}})}), "id")
	d.call(200, "renameConversation", ada.token, Request{Params: in("id", group), Body: []byte(`{"title": "Oila"}`)})
	d.call(403, "renameConversation", bob.token, Request{Params: in("id", group), Body: []byte(`{"title": "x"}`)})
	d.call(403, "addMembers", bob.token, Request{Params: in("id", group), Body: encode(t, object{"user_ids": []string{cyd.id}})})
	d.call(200, "addMembers", ada.token, Request{Params: in("id", group), Body: encode(t, object{"user_ids": []string{cyd.id}})})
	d.call(200, "listMembers", cyd.token, Request{Params: in("id", group), Query: url.Values{"limit": {"1"}}})
	d.call(204, "setRole", ada.token, Request{Params: in("id", group, "userId", bob.id), Body: []byte(`{"role": "admin"}`)})
	d.call(403, "setRole", ada.token, Request{Params: in("id", group, "userId", ada.id), Body: []byte(`{"role": "member"}`)})
	d.call(400, "setRole", ada.token, Request{Params: in("id", group, "userId", bob.id), Body: []byte(`{"role": "king"}`)})
	d.call(403, "removeMember", cyd.token, Request{Params: in("id", group, "userId", bob.id)})
	d.call(204, "removeMember", bob.token, Request{Params: in("id", group, "userId", cyd.id)})
	d.call(204, "removeMember", ada.token, Request{Params: in("id", group, "userId", ada.id)})
	d.call(404, "getConversation", ada.token, Request{Params: in("id", group)})
}

// drivePeople drives contacts, blocks and the caller's own settings.
func drivePeople(d driver, ada, bob person) {
	t := d.t
	d.call(201, "addContact", ada.token, Request{Body: encode(t, object{"user_id": bob.id})})
	d.call(400, "addContact", ada.token, Request{Body: encode(t, object{"user_id": ada.id})})
	d.call(200, "listContacts", ada.token, Request{})
	d.call(204, "removeContact", ada.token, Request{Params: in("userId", bob.id)})
	d.call(204, "removeContact", ada.token, Request{Params: in("userId", "nobody")})
	d.call(204, "blockUser", ada.token, Request{Params: in("userId", bob.id)})
	d.call(403, "openConversation", bob.token, Request{Body: encode(t, object{"user_id": ada.id})})
	d.call(400, "blockUser", ada.token, Request{Params: in("userId", ada.id)})
	d.call(204, "unblockUser", ada.token, Request{Params: in("userId", bob.id)})
	d.call(200, "getMe", ada.token, Request{})
	d.call(200, "updateMe", ada.token, Request{Body: []byte(`{"name": "Ada L.", "notify": false,
		"quiet_hours": {"from": "22:00", "until": "07:00", "time_zone": "Asia/Tashkent"}}`)})
	d.call(200, "updateMe", ada.token, Request{Body: []byte(`{"quiet_hours": null}`)})
	settings := `{"language":"uz","only_direct":true,"hide_text":true,"remind_after_minutes":5,"channels_off":["telegram"]}`
	d.call(200, "updateMe", ada.token, Request{Body: []byte(settings)})
	var me api.Me
	if answer := d.call(200, "getMe", ada.token, Request{}); json.Unmarshal(answer.Body, &me) != nil || me.Language != "uz" ||
		!me.OnlyDirect || !me.HideText || me.RemindAfterMinutes != 5 || !slices.Equal(me.ChannelsOff, []string{"telegram"}) {
		t.Errorf("settings: %s", answer.Body)
	}
	for _, wrong := range []string{`{"language": "not a tag"}`, `{"remind_after_minutes": -1}`, `{"channels_off": ["<b>"]}`} {
		d.call(400, "updateMe", ada.token, Request{Body: []byte(wrong)})
	}
	d.call(400, "updateMe", ada.token, Request{Body: []byte(`{"quiet_hours": {"from": "22:00", "until": "07:00", "time_zone": "Local"}}`)})
	d.call(400, "updateMe", ada.token, Request{Body: []byte(`{"quiet_hours": {"from": "25:00", "until": "07:00", "time_zone": "UTC"}}`)})
}

// driveAdmin drives what the server key is for.
func driveAdmin(d driver, ada person) {
	t := d.t
	user := field(t, d.call(201, "createUser", serverKey, Request{
		Body: []byte(`{"user": 42, "name": "Grace", "avatar_url": "https://example.org/grace.png"}`)}), "id")
	d.call(400, "createUser", serverKey, Request{Body: []byte(`{"user": "43", "avatar_url": "javascript:alert(1)"}`)})
	d.call(400, "createUser", serverKey, Request{Body: encode(t, object{"user": chat.SystemUserID.String()})})
	d.call(401, "createUser", ada.token, Request{Body: []byte(`{"user": "43"}`)})
	d.call(200, "getUser", serverKey, Request{Params: in("userId", "42")})
	d.call(200, "updateUser", serverKey, Request{Params: in("userId", "42"), Body: []byte(`{"name": "Grace H.", "avatar_url": ""}`)})
	welcome := encode(t, object{"user_id": 42, "client_msg_id": "w1", "text": "Welcome"})
	d.call(201, "sendSystemMessage", serverKey, Request{Body: welcome})
	d.call(200, "sendSystemMessage", serverKey, Request{Body: welcome})
	d.call(422, "sendSystemMessage", serverKey, Request{Body: []byte(`{"user_id": 42, "client_msg_id": "w2", "text": ""}`)})
	d.call(400, "sendSystemMessage", serverKey, Request{Body: []byte(`{"client_msg_id": "w2", "text": "to nobody"}`)})
	group := field(t, d.call(201, "openConversation", ada.token,
		Request{Body: encode(t, object{"title": "News", "member_ids": []string{user}})}), "id")
	d.call(201, "sendSystemMessage", serverKey, Request{Body: encode(t, object{"conversation_id": group, "client_msg_id": "w3", "text": "x"})})
	d.call(409, "sendSystemMessage", serverKey, Request{Body: encode(t, object{"conversation_id": group, "client_msg_id": "w1", "text": "x"})})
	d.call(200, "listSessions", serverKey, Request{Params: in("userId", user)})
	d.call(204, "disconnectUser", serverKey, Request{Params: in("userId", user)})
	d.call(204, "revokeUser", serverKey, Request{Params: in("userId", user)})
	export := d.call(200, "exportUser", serverKey, Request{Params: in("userId", user)})
	if !bytes.HasSuffix(export.Body, []byte(`{"type":"end","data":null}`+"\n")) {
		t.Errorf("the export has no end:\n%s", export.Body)
	}
	d.call(204, "eraseUser", serverKey, Request{Params: in("userId", user)})
	d.call(404, "getUser", serverKey, Request{Params: in("userId", "42")})
}

// driveEverywhere drives what can happen to any operation.
func driveEverywhere(d driver, who person) {
	for _, id := range d.c.Operations() {
		op, token := d.c.Operation(id), d.tokenFor(id, who)
		documented := func(status string) bool { return op.Responses.Value(status) != nil }
		if d.c.Security(id) != "" {
			d.call(401, id, "", d.sample(id))
			d.call(401, id, "nonsense", d.sample(id))
		}
		if documented("403") {
			r := d.sample(id)
			r.Header = http.Header{"Origin": {"https://evil.example"}}
			d.call(403, id, token, r)
		}
		if documented("404") && id != "demoLogin" && !slices.Contains(ofChannels, id) {
			d.call(404, id, token, d.sample(id))
		}
		if documented("415") {
			r := d.sample(id)
			r.Header = http.Header{"Content-Type": {"text/plain"}}
			d.call(415, id, token, r)
			r = d.sample(id)
			r.Body = append(bytes.Repeat([]byte(" "), 1<<20), r.Body...)
			d.call(413, id, token, r)
		}
		if documented("400") {
			d.call(400, id, token, d.misshapen(id))
		}
	}
}

func (d driver) tokenFor(id string, who person) string {
	switch d.c.Security(id) {
	case "serverKey":
		return serverKey
	case "token":
		return who.token
	}
	return ""
}

// sample is a request of the right shape about things that do not exist.
func (d driver) sample(id string) Request {
	r := Request{Params: in("id", chat.NewID().String(), "userId", "nobody", "seq", "1")}
	if example := d.c.Example(id); example != nil {
		r.Body = encode(d.t, example)
	}
	return r
}

// misshapen is a request of the wrong shape.
func (d driver) misshapen(id string) Request {
	r := d.sample(id)
	r.Params["id"], r.Params["userId"], r.Params["seq"] = "nonsense", strings.Repeat("x", 256), "0"
	r.Query = url.Values{"cursor": {"nonsense"}}
	if r.Body != nil {
		r.Body = []byte(`[]`)
	}
	return r
}

// driveLimits runs the real binary with buckets of one token.
func driveLimits(t *testing.T, c *Checker) {
	g := testkit.StartGateway(t, testkit.GatewayOptions{NoDemo: true, Args: []string{
		"--server-key", serverKey, "--jwt-secret", jwtSecret,
		"--limit-events", "1/h:1", "--limit-handshakes", "1/h:1",
	}})
	d := driver{t, c, g.URL}
	token, _, err := auth.NewMinter([]byte(jwtSecret), nil).Mint("ada", "", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	d.call(404, "demoLogin", "", d.sample("demoLogin"))
	d.call(200, "getMe", token, Request{})
	for _, id := range c.Operations() {
		switch c.Security(id) {
		case "token":
			d.call(429, id, token, d.sample(id))
		case "serverKey":
			d.call(429, id, "wrong", d.sample(id))
		}
	}
	d.call(429, "demoLogin", "", d.sample("demoLogin"))
}

// channels are notification channels that fail with err, or don't.
type channels struct{ err error }

func (c channels) AddPushSubscription(context.Context, chat.ID, httpapi.PushSubscription) error {
	return c.err
}
func (c channels) RemovePushSubscription(context.Context, chat.ID, string) error { return c.err }
func (c channels) UnlinkTelegram(context.Context, chat.ID) error                 { return c.err }
func (c channels) NewTelegramCode(context.Context, chat.ID) (httpapi.TelegramCode, error) {
	return httpapi.TelegramCode{Code: "123", URL: "https://t.me/xabar?start=123", ExpiresAt: time.Now().Add(time.Hour)}, c.err
}

// driveFailures runs the handlers on a store that is closed.
func driveFailures(t *testing.T, c *Checker) {
	down := channels{chat.Errorf(chat.CodeUnavailable, "")}
	server := startHandlers(t, down)
	server.closeStore()
	d := driver{t, c, server.url}
	for _, id := range c.Operations() {
		if c.Operation(id).Responses.Value("default") != nil {
			d.call(503, id, d.tokenFor(id, person{token: "good"}), d.sample(id))
		}
	}
}

// ofChannels are there where their channel is configured.
var ofChannels = []string{"addPushSubscription", "removePushSubscription", "linkTelegram", "unlinkTelegram"}

// driveChannels drives them with channels that do nothing, and with none.
func driveChannels(t *testing.T, c *Checker) {
	none := testkit.StartGateway(t, testkit.GatewayOptions{NoDemo: true, Args: []string{"--jwt-secret", jwtSecret}})
	token, _, err := auth.NewMinter([]byte(jwtSecret), nil).Mint("ada", "", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ofChannels {
		without := driver{t, c, none.URL}
		without.call(404, id, token, without.sample(id))
	}
	server := startHandlers(t, channels{})
	d := driver{t, c, server.url}
	d.call(201, "addPushSubscription", "good", d.sample("addPushSubscription"))
	d.call(204, "removePushSubscription", "good", d.sample("removePushSubscription"))
	if me := d.call(200, "getMe", "good", Request{}); !strings.Contains(string(me.Body), `"web_push_key":"BKey"`) {
		t.Errorf("no key for pages: %s", me.Body)
	}
	d.call(201, "linkTelegram", "good", Request{})
	d.call(204, "unlinkTelegram", "good", Request{})
}
