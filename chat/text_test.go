package chat_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"xabar/chat"
)

func TestCheckText(t *testing.T) {
	emoji := "\U0001F600"
	for _, test := range []struct {
		name, text, want string
		code             chat.Code
	}{
		{"plain", "salom", "salom", ""},
		{"nothing is trimmed", "  a\n", "  a\n", ""},
		{"2000 letters", strings.Repeat("a", 2000), strings.Repeat("a", 2000), ""},
		{"2000 emoji beyond the BMP", strings.Repeat(emoji, 2000), strings.Repeat(emoji, 2000), ""},
		{"2001 emoji", strings.Repeat(emoji, 2001), "", chat.CodeTextTooLong},
		{"2001 letters", strings.Repeat("a", 2001), "", chat.CodeTextTooLong},
		{"a megabyte", strings.Repeat("a", 1<<20), "", chat.CodeTextTooLong},
		{"empty", "", "", chat.CodeTextEmpty},
		{"spaces", " \t\r\n", "", chat.CodeTextEmpty},
		{"every White_Space", "\u0085\u00a0\u1680\u2000\u2028\u2029\u202f\u205f\u3000", "", chat.CodeTextEmpty},
		{"zero width space is no White_Space", "\u200b", "\u200b", ""},
		{"NUL", "a\x00b", "", chat.CodeInvalidText},
		{"NUL alone", "\x00", "", chat.CodeInvalidText},
		{"not UTF-8", "a\xffb", "a\uFFFDb", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := chat.CheckText(test.text)
			if got != test.want || chat.CodeOf(err) != test.code {
				t.Errorf("CheckText = %.20q, %v; want %.20q, %q", got, err, test.want, test.code)
			}
		})
	}
}

func TestCheckTextKeepsWhatItAccepts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		got, err := chat.CheckText(text)
		if err != nil {
			return
		}
		if utf8.RuneCountInString(got) > chat.MaxTextLength || got != text {
			t.Fatalf("CheckText(%q) = %q", text, got)
		}
	})
}

func TestALoneSurrogateBecomesTheReplacementCharacter(t *testing.T) {
	var text string
	if err := json.Unmarshal([]byte(`"a\ud800b"`), &text); err != nil {
		t.Fatal(err)
	}
	if got, err := chat.CheckText(text); err != nil || got != "a\uFFFDb" {
		t.Errorf("CheckText = %q, %v", got, err)
	}
}

func TestCheckClientMsgID(t *testing.T) {
	for id, ok := range map[string]bool{
		"x": true, strings.Repeat("é", 64): true,
		"": false, strings.Repeat("é", 65): false, "a\x00": false, "\xff": false,
	} {
		err := chat.CheckClientMsgID(id)
		if (err == nil) != ok {
			t.Errorf("CheckClientMsgID(%q) = %v", id, err)
		}
		if err != nil && chat.AsError(err).Field != "clientMsgId" {
			t.Errorf("the error of %q names the field %q", id, chat.AsError(err).Field)
		}
	}
}

func TestCheckLabel(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{" Oila ", "Oila"}, {"", ""}, {" \n", ""}, {"a\x07b", ""},
		{strings.Repeat("ў", 100), strings.Repeat("ў", 100)}, {strings.Repeat("ў", 101), ""},
	} {
		got, err := chat.CheckLabel("title", test.in, chat.MaxTitleLength)
		if got != test.want || (err != nil) != (test.want == "") {
			t.Errorf("CheckLabel(%q) = %q, %v", test.in, got, err)
		}
	}
}

func TestUserRef(t *testing.T) {
	for in, want := range map[string]string{
		`"ali"`: "ali", `17`: "17", `-3`: "-3", `"17"`: "17",
		`"0190c2a0-0000-7000-8000-000000000001"`: "0190c2a0-0000-7000-8000-000000000001",
	} {
		var ref chat.UserRef
		if err := json.Unmarshal([]byte(in), &ref); err != nil || string(ref) != want {
			t.Errorf("%s is %q, %v", in, ref, err)
		}
	}
	for _, in := range []string{`1.5`, `true`, `{}`, `[1]`, `1e3`, `99999999999999999999`} {
		var ref chat.UserRef
		if err := json.Unmarshal([]byte(in), &ref); err == nil {
			t.Errorf("%s is %q", in, ref)
		}
	}
	if _, ok := chat.UserRef("urn:uuid:0190c2a0-0000-7000-8000-000000000001").ID(); ok {
		t.Error("a URN is taken for an id")
	}
	if id, ok := chat.UserRef("0190C2A0-0000-7000-8000-000000000001").ID(); !ok || id.String() != "0190c2a0-0000-7000-8000-000000000001" {
		t.Error("an id in capitals is not taken")
	}
	for ref, ok := range map[chat.UserRef]bool{
		"a": true, chat.UserRef(strings.Repeat("b", 255)): true,
		"": false, chat.UserRef(strings.Repeat("b", 256)): false, "a\x00": false,
	} {
		if err := ref.Check("userId"); (err == nil) != ok {
			t.Errorf("Check(%.10q) = %v", ref, err)
		}
	}
}

func TestErrorTable(t *testing.T) {
	for _, code := range chat.Codes() {
		if code.Message() == "" || http.StatusText(code.HTTPStatus()) == "" {
			t.Errorf("%s has no message or an unknown status", code)
		}
	}
	if chat.Code("nonsense").HTTPStatus() != http.StatusInternalServerError {
		t.Error("an unknown code is not an internal error")
	}
	cause := errors.New("duplicate key value violates unique constraint")
	wrapped := chat.Wrap(chat.CodeUnavailable, cause)
	if got := chat.AsError(wrapped); got.Message != chat.CodeUnavailable.Message() || !errors.Is(wrapped, cause) {
		t.Errorf("Wrap = %+v", got)
	}
	if strings.Contains(chat.AsError(cause).Message, "constraint") || chat.CodeOf(cause) != chat.CodeInternal {
		t.Error("what the database said is shown")
	}
	if chat.Wrap(chat.CodeInternal, wrapped) != wrapped || chat.Wrap(chat.CodeInternal, nil) != nil {
		t.Error("Wrap hides a code, or makes an error of nothing")
	}
	if chat.AsError(nil) != nil || chat.CodeOf(nil) != "" {
		t.Error("nil has a code")
	}
}
