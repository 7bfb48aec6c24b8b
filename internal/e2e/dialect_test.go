package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
	"xabar/gateway/auth"
	"xabar/internal/testkit"
)

// uzPage is one connected official client that speaks the dialect uz.
type uzPage struct {
	*testkit.Client
	t    testing.TB
	user int
}

// xabar is a message in the dialect. yetkazildi and oqildi are false or a time.
type xabar struct {
	ID         int64           `json:"id"`
	Kimdan     int             `json:"kimdan"`
	Kimga      int             `json:"kimga"`
	Matn       string          `json:"matn"`
	Vaqt       int64           `json:"vaqt"`
	Yetkazildi json.RawMessage `json:"yetkazildi"`
	Oqildi     json.RawMessage `json:"oqildi"`
}

func tokenOf(t testing.TB, sub string) string {
	t.Helper()
	token, _, err := auth.NewMinter([]byte(secret), nil).Mint(chat.UserRef(sub), "user "+sub, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// uz connects the user with that number: by the dialect's name, or to its namespace.
func (w *world) uz(user int, change ...func(*testkit.ClientOptions)) *uzPage {
	w.t.Helper()
	opts := testkit.ClientOptions{
		URL: w.gateway.URL, Token: tokenOf(w.t, strconv.Itoa(user)), Auth: map[string]any{"dialect": "uz"}, Transports: []string{"websocket"},
	}
	for _, f := range change {
		f(&opts)
	}
	return &uzPage{w.js.Connected(w.t, opts), w.t, user}
}

func byNamespace(o *testkit.ClientOptions) { o.URL, o.Auth = o.URL+"/uz", nil }

func acksXabar(rule testkit.AckRule) func(*testkit.ClientOptions) {
	return func(o *testkit.ClientOptions) { o.Acks = map[string]testkit.AckRule{"xabar": rule} }
}

// numbered connects a user with a number to the standard events.
func (w *world) numbered(user int, change ...func(*testkit.ClientOptions)) *page {
	w.t.Helper()
	opts := testkit.ClientOptions{
		URL: w.gateway.URL, Token: tokenOf(w.t, strconv.Itoa(user)), Auth: map[string]any{"sync": true}, Transports: []string{"websocket"},
	}
	for _, f := range change {
		f(&opts)
	}
	p := &page{Client: w.js.Connected(w.t, opts), t: w.t}
	h, err := p.WaitFor(testkit.Context(w.t), "session", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	session := testkit.Decode[struct{ User chat.User }](h)
	p.user.User.ID, p.user.User.Name = session.User.ID.String(), session.User.Name
	return p
}

// known makes users exist, as their first connection does.
func (w *world) known(users ...int) {
	w.t.Helper()
	for _, user := range users {
		if err := w.uz(user).Close(testkit.Context(w.t)); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (p *uzPage) emit(event string, args ...any) json.RawMessage {
	p.t.Helper()
	answer, err := p.Emit(testkit.Context(p.t), event, args...)
	if err != nil {
		p.t.Fatalf("%s: %v", event, err)
	}
	return answer
}

// yoz sends and wants the answer {id}, and nothing else in it.
func (p *uzPage) yoz(kimga int, matn string, more ...string) int64 {
	p.t.Helper()
	payload := obj{"kimga": kimga, "matn": matn}
	if len(more) > 0 {
		payload["mijoz_id"] = more[0]
	}
	var answer map[string]int64
	raw := p.emit("yoz", payload)
	if err := json.Unmarshal(raw, &answer); err != nil || len(answer) != 1 || answer["id"] < 1 {
		p.t.Fatalf("yoz answered %s", raw)
	}
	return answer["id"]
}

// hears waits for a message, which must look like this one.
func (p *uzPage) hears(id int64, from int, matn string) testkit.Heard {
	p.t.Helper()
	h, err := p.WaitFor(testkit.Context(p.t), "xabar", func(h testkit.Heard) bool { return testkit.Decode[xabar](h).ID == id })
	if err != nil {
		p.t.Fatal(err)
	}
	got := testkit.Decode[xabar](h)
	age := time.Since(time.UnixMilli(got.Vaqt))
	if got.Kimdan != from || got.Kimga != p.user || got.Matn != matn || age < -time.Minute || age > time.Hour ||
		string(got.Yetkazildi) != "false" || string(got.Oqildi) != "false" {
		p.t.Errorf("%d heard %s", p.user, h.Args[0])
	}
	return h
}

// hearsID waits for yetkazildi or oqildi of a message, or yozmoqda of a user.
func (p *uzPage) hearsID(event string, id int64) {
	p.t.Helper()
	if _, err := p.WaitFor(testkit.Context(p.t), event, func(h testkit.Heard) bool { return testkit.Decode[int64](h) == id }); err != nil {
		p.t.Fatal(err)
	}
}

// heardIDs are the ids of all events of this name so far.
func (p *uzPage) heardIDs(event string) []int64 {
	var ids []int64
	for _, h := range p.Events(event) {
		ids = append(ids, testkit.Decode[int64](h))
	}
	return ids
}

func (p *uzPage) tarix(payload obj) []xabar {
	p.t.Helper()
	raw := p.emit("tarix", payload)
	var messages []xabar
	if err := json.Unmarshal(raw, &messages); err != nil {
		p.t.Fatalf("tarix answered %s", raw)
	}
	return messages
}

// settle lets everything that is under way on the socket arrive.
func (p *uzPage) settle() {
	p.t.Helper()
	p.tarix(obj{"bilan": p.user})
}

func (w *world) storedInPostgres(clientMsgID string) bool {
	w.t.Helper()
	ctx := testkit.Context(w.t)
	conn, err := pgx.Connect(ctx, w.database)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close(ctx)
	var n int
	if err := conn.QueryRow(ctx, `SELECT count(*) FROM messages WHERE client_msg_id = $1`, clientMsgID).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n == 1
}

func TestTheWholeLifeOfAMessageInADialect(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	near, far := c.nodes[0], c.nodes[1]
	far.known(2)
	a, b, stranger := near.uz(1), far.uz(2, byNamespace, acksXabar(testkit.AckByHand)), far.uz(3)

	first := a.yoz(2, "salom", "x1")
	if !near.storedInPostgres("x1") {
		t.Error("the answer came before the message was stored")
	}
	if again := a.yoz(2, "salom", "x1"); again != first {
		t.Errorf("the repeat is message %d, the first was %d", again, first)
	}
	heard := b.hears(first, 1, "salom")
	a.settle()
	if got := a.heardIDs("yetkazildi"); len(got) != 0 {
		t.Errorf("delivered before it was acknowledged: %v", got)
	}
	if err := b.Ack(testkit.Context(t), heard); err != nil {
		t.Fatal(err)
	}
	a.hearsID("yetkazildi", first)

	// Not the sender, not a stranger; then the recipient.
	for _, other := range []*uzPage{a, stranger} {
		if err := other.Send(testkit.Context(t), "oqidim", first); err != nil {
			t.Fatal(err)
		}
		other.settle()
	}
	if got := a.tarix(obj{"bilan": 2}); len(got) != 1 || string(got[0].Oqildi) != "false" || string(got[0].Yetkazildi) == "false" {
		t.Errorf("before it is read: %+v", got)
	}
	if err := b.Send(testkit.Context(t), "oqidim", first); err != nil {
		t.Fatal(err)
	}
	a.hearsID("oqildi", first)
	for _, who := range []*uzPage{a, b} {
		got := who.tarix(obj{"bilan": 3 - who.user})
		if len(got) != 1 || got[0].ID != first || got[0].Kimdan != 1 || got[0].Kimga != 2 {
			t.Fatalf("history of %d: %+v", who.user, got)
		}
		at, err := strconv.ParseInt(string(got[0].Oqildi), 10, 64)
		if err != nil || at < got[0].Vaqt {
			t.Errorf("read at %s, sent at %d", got[0].Oqildi, got[0].Vaqt)
		}
	}

	if err := b.SendVolatile(testkit.Context(t), "yozmoqda", 1); err != nil {
		t.Fatal(err)
	}
	a.hearsID("yozmoqda", 2)

	// Offline, back, and caught up.
	if err := b.Close(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	var missed []int64
	for i := range 3 {
		missed = append(missed, a.yoz(2, fmt.Sprint("yo'q edi ", i)))
	}
	b = far.uz(2, byNamespace)
	for i, id := range missed {
		b.hears(id, 1, fmt.Sprint("yo'q edi ", i))
		a.hearsID("yetkazildi", id)
	}
	if err := b.Send(testkit.Context(t), "oqidim", obj{"kimdan": 1, "oxirgi": missed[1]}); err != nil {
		t.Fatal(err)
	}
	a.hearsID("oqildi", missed[1])
	if got := a.heardIDs("oqildi"); !slices.Equal(got, []int64{first, missed[0], missed[1]}) {
		t.Errorf("read are %v", got)
	}
	// And the other way round.
	answer := b.yoz(1, "va alaykum")
	a.hears(answer, 2, "va alaykum")
	b.hearsID("yetkazildi", answer)
	a.hearsID("oqildi", missed[2]) // answering is reading
	stranger.settle()
	for _, event := range []string{"xabar", "yetkazildi", "oqildi", "yozmoqda"} {
		if heard := stranger.Events(event); len(heard) > 0 {
			t.Errorf("a stranger heard %s %s", event, heard[0].Args)
		}
	}
	for _, h := range a.Events("") {
		if !slices.Contains([]string{"connect", "$open", "xabar", "yetkazildi", "oqildi", "yozmoqda"}, h.Event) {
			t.Errorf("the dialect has no %s", h.Event)
		}
	}
}

func TestADialectAndTheStandardEventsInOneConversation(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	c.nodes[0].known(1)
	uz, std := c.nodes[1].uz(1), c.nodes[0].numbered(2, acks(testkit.AckByHand))

	// From the standard events to the dialect.
	sent := std.must("message:send", obj{"toUserId": 1, "clientMsgId": "s1", "text": "salom"}).Message
	h, err := uz.WaitFor(testkit.Context(t), "xabar", nil)
	if err != nil {
		t.Fatal(err)
	}
	in := testkit.Decode[xabar](h)
	if in.Kimdan != 2 || in.Kimga != 1 || in.Matn != "salom" || in.Vaqt != sent.CreatedAt.UnixMilli() {
		t.Errorf("uz heard %s", h.Args[0])
	}
	position := func(event string, seq int64) {
		t.Helper()
		if _, err := std.WaitFor(testkit.Context(t), event, func(h testkit.Heard) bool {
			return testkit.Decode[struct{ Seq int64 }](h).Seq >= seq
		}); err != nil {
			t.Fatal(err)
		}
	}
	position("message:delivered", 1)
	if err := uz.Send(testkit.Context(t), "oqidim", in.ID); err != nil {
		t.Fatal(err)
	}
	position("message:read", 1)

	// And back.
	out := uz.yoz(2, "va alaykum", "u1")
	if !c.nodes[0].storedInPostgres("u1") {
		t.Error("the answer came before the message was stored")
	}
	got := std.hears(sent.ConversationID, 2)
	if got.Text != "va alaykum" || got.ClientMsgID != "u1" {
		t.Errorf("the standard client heard %+v", got)
	}
	uz.settle()
	if ids := uz.heardIDs("yetkazildi"); len(ids) != 0 {
		t.Errorf("delivered before it was acknowledged: %v", ids)
	}
	for _, h := range std.Events("message") {
		if err := std.Ack(testkit.Context(t), h); err != nil {
			t.Fatal(err)
		}
	}
	uz.hearsID("yetkazildi", out)
	std.must("message:read", obj{"conversationId": sent.ConversationID, "seq": 2})
	uz.hearsID("oqildi", out)

	// Typing, both ways.
	if err := std.SendVolatile(testkit.Context(t), "typing", obj{"conversationId": sent.ConversationID}); err != nil {
		t.Fatal(err)
	}
	uz.hearsID("yozmoqda", 2)
	if err := uz.SendVolatile(testkit.Context(t), "yozmoqda", 2); err != nil {
		t.Fatal(err)
	}
	if _, err := std.WaitFor(testkit.Context(t), "typing", nil); err != nil {
		t.Fatal(err)
	}

	// Offline, back and caught up, both ways.
	if err := uz.Close(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	std.send(sent.ConversationID, ids("off", 60)...)
	uz = c.nodes[1].uz(1)
	if _, err := uz.WaitCount(testkit.Context(t), "xabar", 60); err != nil {
		t.Fatal(err)
	}
	position("message:delivered", 62)
	if err := std.Close(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	last := uz.yoz(2, "qaytdingmi")
	back := c.nodes[0].numbered(2, simple)
	if got := back.hears(sent.ConversationID, 63); got.Text != "qaytdingmi" {
		t.Errorf("the standard client is caught up with %+v", got)
	}
	uz.hearsID("yetkazildi", last)
}

// CASES 8: 122 messages in pages of 50, oldest first.
func TestHistoryOfADialect(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--jwt-secret", secret)
	w.known(1, 2)
	a, b, stranger := w.uz(1), w.uz(2), w.uz(3)
	var sent []int64
	for i := range 122 {
		from, to := a, 2
		if i%3 == 2 {
			from, to = b, 1
		}
		sent = append(sent, from.yoz(to, strconv.Itoa(i+1)))
	}
	own := stranger.yoz(1, "faqat meniki")
	page := func(p *uzPage, payload obj) (ids []int64) {
		t.Helper()
		for _, m := range p.tarix(payload) {
			ids = append(ids, m.ID)
		}
		return ids
	}
	for _, p := range []*uzPage{a, b} {
		query := obj{"bilan": 3 - p.user, "limit": 500}
		for _, want := range [][]int64{sent[72:], sent[22:72], sent[:22], nil} {
			if got := page(p, query); !slices.Equal(got, want) {
				t.Errorf("%d: %v is %v, want %v", p.user, query, got, want)
			}
			if len(want) > 0 {
				query["oldin"] = want[0]
			}
		}
	}
	for name, c := range map[string]struct {
		payload obj
		want    []int64
	}{
		"limit 3":              {obj{"bilan": 2, "limit": 3}, sent[119:]},
		"limit 0 is one":       {obj{"bilan": 2, "limit": 0}, sent[121:]},
		"no limit":             {obj{"bilan": 2}, sent[72:]},
		"null":                 {obj{"bilan": 2, "oldin": nil, "limit": nil}, sent[72:]},
		"before one of others": {obj{"bilan": 2, "oldin": own}, nil},
		"nobody":               {obj{"bilan": 999}, nil},
		"oneself":              {obj{"bilan": 1}, nil},
	} {
		if got := page(a, c.payload); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	// A third user gets only its own, whoever it names, and cannot use numbers of others.
	if got := page(stranger, obj{"bilan": 1}); !slices.Equal(got, []int64{own}) {
		t.Errorf("the third user with 1: %v", got)
	}
	for _, payload := range []obj{{"bilan": 2}, {"bilan": 1, "oldin": sent[100]}} {
		if got := page(stranger, payload); len(got) != 0 {
			t.Errorf("the third user with %v: %v", payload, got)
		}
	}
}

// The state of a message only moves forward: whatever the order in which a client hears
// of it, it ends at read.
func TestReceiptsOfADialectEndAtReadInAnyOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--jwt-secret", secret)
	w.known(2)
	a, b := w.uz(1), w.uz(2, acksXabar(testkit.AckNever))
	id := a.yoz(2, "salom")
	b.hears(id, 1, "salom")
	if err := b.Send(testkit.Context(t), "oqidim", id); err != nil { // read before it was delivered
		t.Fatal(err)
	}
	a.hearsID("yetkazildi", id)
	a.hearsID("oqildi", id)
	heard := []string{"yuborildi"} // the answer of yoz
	for _, h := range a.Events("") {
		if h.Event == "yetkazildi" || h.Event == "oqildi" {
			heard = append(heard, h.Event)
		}
	}
	if !slices.Equal(heard, []string{"yuborildi", "yetkazildi", "oqildi"}) {
		t.Errorf("A heard %v", heard)
	}
	rank := map[string]int{"yuborildi": 1, "yetkazildi": 2, "oqildi": 3}
	for _, order := range permutations(heard) {
		state := 0
		for _, event := range order {
			state = max(state, rank[event])
		}
		if state != rank["oqildi"] {
			t.Errorf("%v ends at %d", order, state)
		}
	}
	if got := a.tarix(obj{"bilan": 2}); string(got[0].Yetkazildi) == "false" || string(got[0].Oqildi) == "false" {
		t.Errorf("history says %+v", got[0])
	}
}

func permutations(list []string) [][]string {
	if len(list) < 2 {
		return [][]string{list}
	}
	var all [][]string
	for i := range list {
		rest := slices.Delete(slices.Clone(list), i, i+1)
		for _, p := range permutations(rest) {
			all = append(all, append([]string{list[i]}, p...))
		}
	}
	return all
}

func TestWrongPayloadsInADialect(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--jwt-secret", secret)
	w.known(2)
	a, b := w.uz(1), w.uz(2)
	long := make([]rune, 2001)
	for i := range long {
		long[i] = '🙂'
	}
	id := a.yoz(2, string(long))
	b.hears(id, 1, string(long[:2000])) // cut, in this dialect only
	if first, second := a.yoz(2, "bir"), a.yoz(2, "bir"); first == second {
		t.Error("without mijoz_id two sends are one message")
	}
	if first, second := a.emit("yoz", obj{"kimga": 2, "matn": "x", "mijoz_id": 7}), a.emit("yoz", obj{"kimga": "2", "matn": "y", "mijoz_id": "7"}); string(first) != string(second) {
		t.Errorf("mijoz_id 7: %s, then %s", first, second)
	}

	deep := any("x")
	for range 40 {
		deep = []any{deep}
	}
	for _, c := range []struct {
		event, field string
		code         chat.Code
		args         []any
	}{
		{"yoz", "matn", chat.CodeInvalidArgument, nil},
		{"yoz", "matn", chat.CodeInvalidArgument, []any{nil}},
		{"yoz", "matn", chat.CodeInvalidArgument, []any{"salom"}},
		{"yoz", "matn", chat.CodeInvalidArgument, []any{obj{"kimga": 2, "matn": 5}}},
		{"yoz", "matn", chat.CodeInvalidArgument, []any{obj{"kimga": 2, "matn": deep}}},
		{"yoz", "kimga", chat.CodeInvalidArgument, []any{obj{"kimga": 1.5, "matn": "x"}}},
		{"yoz", "kimga", chat.CodeInvalidArgument, []any{obj{"kimga": obj{}, "matn": "x"}}},
		{"yoz", "kimga", chat.CodeInvalidArgument, []any{obj{"kimga": 1, "matn": "oneself"}}},
		{"yoz", "mijoz_id", chat.CodeInvalidArgument, []any{obj{"kimga": 2, "matn": "x", "mijoz_id": obj{}}}},
		{"yoz", "", chat.CodeNotFound, []any{obj{"kimga": 999, "matn": "x"}}},
		{"yoz", "", chat.CodeTextEmpty, []any{obj{"kimga": 2, "matn": "  "}}},
		{"yoz", "", chat.CodeInvalidText, []any{obj{"kimga": 2, "matn": "a\x00b"}}},
		{"tarix", "bilan", chat.CodeInvalidArgument, nil},
		{"tarix", "bilan", chat.CodeInvalidArgument, []any{obj{"bilan": deep}}},
		{"tarix", "oldin", chat.CodeInvalidArgument, []any{obj{"bilan": 2, "oldin": "x"}}},
		{"tarix", "oldin", chat.CodeInvalidArgument, []any{obj{"bilan": 2, "oldin": -1}}},
		{"tarix", "limit", chat.CodeInvalidArgument, []any{obj{"bilan": 2, "limit": "ko'p"}}},
		{"message:send", "", chat.CodeUnknownEvent, []any{obj{"toUserId": 2, "text": "x", "clientMsgId": "z"}}},
	} {
		r, err := parseReply(a.emit(c.event, c.args...))
		if err != nil || r.OK || r.Error == nil || r.Error.Code != c.code || r.Error.Field != c.field {
			t.Errorf("%s %.80v: %+v, %v; want %s %q", c.event, c.args, r.Error, err, c.code, c.field)
		}
	}
	// What has no answer stays silent, also where an answer is asked for.
	for _, c := range [][]any{
		{"oqidim"}, {"oqidim", nil}, {"oqidim", "x"}, {"oqidim", 1.5}, {"oqidim", -3}, {"oqidim", 1 << 53}, {"oqidim", obj{"kimdan": 2}},
		{"oqidim", obj{"kimdan": 2, "oxirgi": obj{}}}, {"oqidim", []any{}}, {"yozmoqda"}, {"yozmoqda", obj{}}, {"yozmoqda", 999}, {"yozmoqda", 1},
	} {
		if answer, err := a.Emit(short(t, 150*time.Millisecond), c[0].(string), c[1:]...); err == nil {
			t.Errorf("%v answered %s", c, answer)
		}
	}
	a.yoz(2, "hali ham shu yerda")
	if n := len(a.Events("disconnect")) + len(b.Events("disconnect")); n != 0 {
		t.Errorf("%d disconnects", n)
	}
}

func TestUnknownDialectsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--jwt-secret", secret)
	for name, change := range map[string]func(*testkit.ClientOptions){
		"unknown":                  func(o *testkit.ClientOptions) { o.Auth = map[string]any{"dialect": "klingon"} },
		"another in its namespace": func(o *testkit.ClientOptions) { byNamespace(o); o.Auth = map[string]any{"dialect": "standard"} },
	} {
		opts := testkit.ClientOptions{URL: w.gateway.URL, Token: tokenOf(t, "1"), Transports: []string{"websocket"}}
		change(&opts)
		err := w.js.Client(t, opts).Connect(testkit.Context(t))
		var refused *testkit.Refused
		if !errors.As(err, &refused) || testkit.Decode[replyError](testkit.Heard{Args: []json.RawMessage{refused.Data}}).Code != chat.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}
