package dialect

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"xabar/chat"
)

// wrong is a description whose every mistake is announced by a comment on its line.
const wrong = `dialect: Uz! # is no name
namespace: uz # no namespace
users: numbers # "numbers" is none of external-id, external-number, id
messages: id
unknown: 1 # has no "unknown"
client:
  yoz:
    args: [xat, xat] # "xat" twice
    event: message:send
    payload:
      toUserId: xat.kimga
      text: matn | cut:2000 # nothing called "matn" here (there are room, xat)
      klientId: xat.id # has no "klientId"
      clientMsgId: xat.id | or:new-di # "new-di" is neither
    answer: {id: mesage} # nothing called "mesage"
  yoz2:
    args: xat # must be a list
    event: message:sned # no standard event "message:sned"
  oqidim:
    - args: [id]
      when: {ID: number} # "ID" is none of the args
      event: message:read
      payload: {message: id} # say messages: number
    - args: [id]
      when: {id: numeric} # "numeric" is none of
      event: typing
      payload: {peer: [id]} # must be an expression
      answer: message # typing has no answer
  tarix:
    args: [x]
    event: history
    payload: {peer: x, limit: x | cut:-1} # "-1" is no count
    answer: messages | millis # millis is not for what stands before it
    errors: {not_there: []} # no error code "not_there"
  remember: {remember: {room: x}} # nothing called "x"
  lost:
    payload: {text: 1} # of no use without event
    skip-own: true # needs message
  lost2: # the same again
    args: [a]
    event: message:send
    errors: {internal: 1} # of no use without answer
    event: typing # "event" twice
server:
  message:
    event: xabar
    args: [{id: message.nummer, matn: text.x, vaqt: createdAt | milis}] # no conversion "milis"
  message:delivered:
    ack: true # only message asks
    event: yetkazildi
    args: message # must be a list
  typing: # event is missing
    args: [user.nick] # nothing called "nick"
  unread: {event: n, args: ["total | like:message:read"]} # needs server.message:read
  gossip: {event: x} # no standard event "gossip"
error: {xato: codes} # nothing called "codes"
`

// TestMistakesAreNamedByLine wants every announced mistake at its line, and no others.
func TestMistakesAreNamedByLine(t *testing.T) {
	t.Parallel()
	text := strings.Replace(wrong, "lost2: # the same again", "lost2:", 1)
	_, err := Parse("wrong.yaml", []byte(text))
	if err == nil {
		t.Fatal("it was taken")
	}
	found := map[int]string{}
	for _, line := range strings.Split(err.Error(), "\n") {
		m := regexp.MustCompile(`^wrong\.yaml:(\d+): (.+)$`).FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("a mistake without its line: %s", line)
		}
		var n int
		if _, err := fmt.Sscan(m[1], &n); err != nil {
			t.Fatal(err)
		}
		found[n] += m[2] + "\n"
	}
	for i, line := range strings.Split(text, "\n") {
		_, want, announced := strings.Cut(line, " # ")
		got := found[i+1]
		if announced != (got != "") || !strings.Contains(got, want) {
			t.Errorf("line %d: %s\nsays %q", i+1, line, got)
		}
	}
}

func TestWholeFiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                      "empty",
		"dialect: a\nclient: [":                 "f.yaml",
		"- a":                                   "f.yaml:1: a description must be a mapping",
		"dialect: a":                            "f.yaml:1: client is missing",
		"client: {}":                            "f.yaml:1: dialect is missing",
		"dialect: standard\nclient: {}":         "f.yaml:1: dialect: \"standard\" is no name",
		"dialect: a\nclient: &x {}\nserver: *x": "f.yaml:3: server: anchors",
		strings.Repeat("#", maxFile+1):          "at most",
	} {
		if _, err := Parse("f.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

func TestConversions(t *testing.T) {
	t.Parallel()
	at := chat.At(time.UnixMilli(1_796_044_000_123))
	old, recent := &Message{Message: chat.Message{Seq: 1}}, &Message{Message: chat.Message{Seq: 2}}
	d := &Dialect{Messages: BySeq}
	values := Values{
		"long": strings.Repeat("🙂", 4), "short": " x ", "n": json.Number("7"), "digits": "12", "word": "a12", "yes": true,
		"at": at, "list": []any{recent, old}, "object": map[string]any{"a": []any{"b", json.Number("2")}},
	}
	for expression, want := range map[string]string{
		"long | cut:3":             `"🙂🙂🙂"`,
		"long | cut:4":             `"🙂🙂🙂🙂"`,
		"n | cut:3":                `7`,
		"short | trim":             `"x"`,
		"n | text":                 `"7"`,
		"yes | text":               `"true"`,
		"digits | number":          `12`,
		"word | number":            `"a12"`,
		"at":                       `"2026-11-30T13:06:40.123Z"`,
		"at | millis":              `1796044000123`,
		"at | seconds":             `1796044000`,
		"none | millis | or:false": `false`,
		"none | or:'a | b'":        `"a | b"`,
		"none | or:[]":             `[]`,
		"none | or:1.5":            `1.5`,
		"none | or:null":           `null`,
		"yes | or:false":           `true`,
		"none | present":           `false`,
		"n | present":              `true`,
		"list | oldest-first":      `[1,2]`,
		"list | newest-first":      `[2,1]`,
		"list.0":                   `2`,
		"object.a.1":               `2`,
		"object.a.9":               `null`,
		"object.b.c":               `null`,
		"object":                   `{"a":["b",2]}`,
		"'text'":                   `"text"`,
		"'a.b' | cut:1":            `"a"`,
	} {
		e, err := parseExpr(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		v, err := e.eval(values, d)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if got, err := d.appendValue(nil, v); err != nil || string(got) != want {
			t.Errorf("%s is %s, %v; want %s", expression, got, err, want)
		}
	}
	e, err := parseExpr("none | or:new-id")
	if err != nil {
		t.Fatal(err)
	}
	first, _ := e.eval(values, d)
	second, _ := e.eval(values, d)
	if id, ok := chat.UserRef(first.(string)).ID(); !ok || id.Version() != 7 || first == second {
		t.Errorf("new ids are %v and %v", first, second)
	}
}

func TestNaming(t *testing.T) {
	t.Parallel()
	id := chat.NewID()
	for external, want := range map[string][3]string{ // by id, by external id, as a number
		"42":                  {`"` + id.String() + `"`, `"42"`, `42`},
		"-1":                  {`"` + id.String() + `"`, `"-1"`, `-1`},
		"007":                 {`"` + id.String() + `"`, `"007"`, `"007"`},
		"ali":                 {`"` + id.String() + `"`, `"ali"`, `"ali"`},
		"9007199254740993":    {`"` + id.String() + `"`, `"9007199254740993"`, `"9007199254740993"`},
		"9223372036854775808": {`"` + id.String() + `"`, `"9223372036854775808"`, `"9223372036854775808"`},
	} {
		user := &User{chat.User{ID: id, ExternalID: &external}}
		for i, naming := range []UserNaming{ByID, ByExternalID, ByExternalNumber} {
			if got := string(naming.appendName(nil, user)); got != want[i] {
				t.Errorf("%s by way %d is %s, want %s", external, i, got, want[i])
			}
		}
	}
	nobody := &User{chat.User{ID: id}}
	if got := string(ByExternalNumber.appendName(nil, nobody)); got != `"`+id.String()+`"` {
		t.Errorf("without an external id: %s", got)
	}
	m := &Message{Message: chat.Message{ID: id, Seq: 3, Number: 9}}
	for naming, want := range map[MessageNaming]string{ByMessageID: `"` + id.String() + `"`, BySeq: "3", ByNumber: "9"} {
		if got := string(naming.appendName(nil, m)); got != want {
			t.Errorf("a message by way %d is %s, want %s", naming, got, want)
		}
	}
}

func uz(t testing.TB) *Dialect {
	t.Helper()
	set, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	d, known := set.Get("uz")
	if !known {
		t.Fatal("uz is not shipped")
	}
	return d
}

func decoded(t testing.TB, args string) []any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(args))
	decoder.UseNumber()
	var list []any
	if err := decoder.Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestUzRequests(t *testing.T) {
	t.Parallel()
	d := uz(t)
	for _, c := range []struct {
		event, args, standard, payload string
		refs                           map[string]any
	}{
		{"yoz", `[{"kimga":2,"matn":"x","mijoz_id":5}]`, "message:send", `{"clientMsgId":"5","text":"x","toUserId":2}`, nil},
		{"yoz", `[{"kimga":"ali","mijoz_id":"m"}]`, "message:send", `{"clientMsgId":"m","toUserId":"ali"}`, nil},
		{"oqidim", `[7]`, "message:read", `{}`, map[string]any{"message": json.Number("7")}},
		{"oqidim", `[{"kimdan":1,"oxirgi":9}]`, "message:read", `{}`, map[string]any{"peer": json.Number("1"), "message": json.Number("9")}},
		{"oqidim", `["x"]`, "message:read", `{}`, map[string]any{"peer": nil, "message": nil}},
		{"yozmoqda", `[3]`, "typing", `{}`, map[string]any{"peer": json.Number("3")}},
		{"tarix", `[{"bilan":4,"limit":500}]`, "history", `{"limit":500}`, map[string]any{"peer": json.Number("4"), "before": nil}},
	} {
		args := decoded(t, c.args)
		form := d.Form(c.event, args)
		call, err := form.Call(d, args, nil)
		if err != nil || form.Event != c.standard || string(call.Payload) != c.payload || fmt.Sprint(call.Refs) != fmt.Sprint(c.refs) && len(c.refs)+len(call.Refs) > 0 {
			t.Errorf("%s %s: %s %s %v, %v", c.event, c.args, form.Event, call.Payload, call.Refs, err)
		}
	}
	if form := d.Form("yoz", nil); form.FieldName("toUserId") != "kimga" || form.FieldName("text") != "matn" || form.FieldName("seq") != "seq" {
		t.Error("fields are not named as the client knows them")
	}
	if d.Form("oqidim", decoded(t, `[7]`)).FieldName("message") != "id" || d.Form("nothing", nil) != nil {
		t.Error("forms are wrong")
	}
}

func TestUzEvents(t *testing.T) {
	t.Parallel()
	d := uz(t)
	one, two := "1", "ali"
	read := chat.At(time.UnixMilli(5))
	m := &Message{
		Message:   chat.Message{Number: 77, Text: "a\"b", CreatedAt: chat.At(time.UnixMilli(3))},
		Sender:    &User{chat.User{ExternalID: &one}},
		Recipient: &User{chat.User{ExternalID: &two}},
		ReadAt:    &read,
	}
	event := d.Server["message"]
	args, err := event.Args(d, m.Values())
	want := `{"id":77,"kimdan":1,"kimga":"ali","matn":"a\"b","vaqt":3,"yetkazildi":false,"oqildi":5}`
	if err != nil || string(args) != want || !event.Ack || event.Needs() != NeedUsers|NeedReceipts {
		t.Errorf("%s, %v, needs %d\nwant %s", args, err, event.Needs(), want)
	}
	form := d.Form("tarix", nil)
	answer, err := form.Answer(d, Values{"messages": []any{m, m}})
	if err != nil || string(answer) != "["+want+","+want+"]" || form.AnswerNeeds() != NeedUsers|NeedReceipts {
		t.Errorf("history is %s, %v", answer, err)
	}
	if got, ok, err := d.Failure(form, chat.CodeNotFound, Values{}); string(got) != "[]" || !ok || err != nil {
		t.Errorf("not_found is %s, %v, %v", got, ok, err)
	}
	if _, ok, _ := d.Failure(form, chat.CodeInternal, Values{}); ok || !d.Answers("yoz") || d.Answers("oqidim") {
		t.Error("answers are wrong")
	}
	for standard, want := range map[string]string{"message:delivered": "77", "message:read": "77", "typing": "1"} {
		args, err := d.Server[standard].Args(d, Values{"message": m, "user": m.Sender})
		if err != nil || string(args) != want || d.Server[standard].Ack {
			t.Errorf("%s: %s, %v", standard, args, err)
		}
	}
}

func TestRememberedNamesAndConstants(t *testing.T) {
	t.Parallel()
	d, err := Parse("x.yaml", []byte(`
dialect: x
error: {bad: code, ok: false}
client:
  join: {args: [room], remember: {room: room}, answer: {joined: room, n: 3}}
  say: {args: [text], event: message:send, payload: {conversationId: room, text: text, clientMsgId: new-id, replyToSeq: null}}
  stop: {}
`))
	if err != nil {
		t.Fatal(err)
	}
	args := []any{"r1"}
	join, err := d.Form("join", args).Call(d, args, nil)
	if err != nil || join.Remember["room"] != "r1" || join.Payload != nil {
		t.Errorf("join: %+v, %v", join, err)
	}
	if answer, err := d.Form("join", args).Answer(d, join.Values); string(answer) != `{"joined":"r1","n":3}` || err != nil {
		t.Errorf("join answers %s, %v", answer, err)
	}
	say, err := d.Form("say", nil).Call(d, []any{"hi"}, join.Remember)
	if err != nil || !strings.Contains(string(say.Payload), `"conversationId":"r1"`) {
		t.Errorf("say: %s, %v", say.Payload, err)
	}
	if got, _, _ := d.Failure(nil, chat.CodeNotFound, Values{"code": "not_found"}); string(got) != `{"bad":"not_found","ok":false}` {
		t.Errorf("an error is %s", got)
	}
}

func TestSets(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("mine.yaml", "dialect: mine\nnamespace: /mine\nclient: {}\n")
	write("notes.txt", "no description")
	set, err := Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, d := range set.All() {
		names = append(names, d.Name)
	}
	if !slices.Equal(names, []string{"mine", "uz"}) || set.ByNamespace("/mine") == nil || set.ByNamespace("/") != nil {
		t.Errorf("the set has %v", names)
	}
	for asked, want := range map[string]string{"": "", "standard": "", "mine": "mine"} {
		d, known := set.Get(asked)
		if !known || d != nil && d.Name != want || d == nil && want != "" {
			t.Errorf("%q is %v, %v", asked, d, known)
		}
	}
	if _, known := set.Get("other"); known || (*Set)(nil).ByNamespace("/mine") != nil || (*Set)(nil).Names() != "standard" {
		t.Error("there is more than there is")
	}
	write("again.yml", "dialect: uz\nclient: {}\n")
	write("space.yml", "dialect: space\nnamespace: /mine\nclient: {}\n")
	write("bad.yaml", "dialect: bad\n")
	_, err = Load(folder)
	for _, want := range []string{"a dialect uz already", "/mine is another dialect's", "bad.yaml:1: client is missing"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if _, err := Load(filepath.Join(folder, "missing")); err == nil {
		t.Error("a folder that is not there was read")
	}
}

// FuzzRequests translates whatever a client may send: never a panic, and always an
// object for the standard event.
func FuzzRequests(f *testing.F) {
	d := uz(f)
	for _, args := range []string{
		`[]`, `[null]`, `[7]`, `[{"kimga":2,"matn":"x","mijoz_id":5}]`, `[{"kimdan":1,"oxirgi":[9]}]`, `[[[["x"]]],{"a":{"b":1e999}}]`,
	} {
		for event := range d.Client {
			f.Add(event, args)
		}
	}
	f.Fuzz(func(t *testing.T, event, text string) {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		var args []any
		if decoder.Decode(&args) != nil {
			return
		}
		form := d.Form(event, args)
		if form == nil {
			return
		}
		call, err := form.Call(d, args, nil)
		if err != nil {
			t.Fatal(err)
		}
		var payload map[string]any
		if err := json.Unmarshal(call.Payload, &payload); err != nil {
			t.Fatalf("%s %s became %s: %v", event, text, call.Payload, err)
		}
		for name := range payload {
			if !slices.Contains(requests[form.Event].fields, name) {
				t.Errorf("%s %s became %s", event, text, call.Payload)
			}
		}
	})
}

// FuzzParse reads whatever an operator may write: a dialect or mistakes, never both or
// neither. (With -fuzzminimizetime=1x: to make long files shorter takes it all its time.)
func FuzzParse(f *testing.F) {
	shippedText, err := shipped.ReadFile("shipped/uz.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(shippedText))
	f.Add(wrong)
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse("f.yaml", []byte(text))
		if (d == nil) == (err == nil) {
			t.Errorf("%v, %v", d, err)
		}
	})
}
