package text

import (
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"xabar/chat"
)

func direct(sender, preview string, count int64) chat.NotifiedConversation {
	return chat.NotifiedConversation{Kind: chat.Direct, Title: sender, SenderName: sender, Preview: preview, Count: count}
}

func group(title, sender, preview string, count int64) chat.NotifiedConversation {
	return chat.NotifiedConversation{Kind: chat.Group, Title: title, SenderName: sender, Preview: preview, Count: count}
}

func notification(language string, conversations ...chat.NotifiedConversation) chat.Notification {
	return chat.Notification{Language: language, Conversations: conversations}
}

func TestOneConversation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		language string
		of       chat.NotifiedConversation
		want     Text
	}{
		{"en", direct("Ada", "hi", 1), Text{"Ada", "hi", "Ada: hi"}},
		{"", direct("Ada", "hi", 5), Text{"Ada", "5 new messages", "Ada: 5 new messages"}},
		{"ru", direct("Ада", "привет", 1), Text{"Ада", "привет", "Ада: привет"}},
		{"ru-RU", direct("Ада", "привет", 5), Text{"Ада", "5 новых сообщений", "Ада: 5 новых сообщений"}},
		{"uz", direct("Ada", "salom", 5), Text{"Ada", "5 ta yangi xabar", "Ada: 5 ta yangi xabar"}},
		{"en", group("Team", "Ada", "hi", 1), Text{"Team", "Ada: hi", "Ada in Team: hi"}},
		{"en", group("Team", "Ada", "hi", 2), Text{"Team", "2 new messages", "Team: 2 new messages"}},
		{"ru", group("Отдел", "Ада", "да", 1), Text{"Отдел", "Ада: да", "Ада в «Отдел»: да"}},
		{"uz-Latn-UZ", group("Jamoa", "Ada", "ha", 1), Text{"Jamoa", "Ada: ha", "Ada, Jamoa: ha"}},
		{"en", direct("Ada", "", 1), Text{"Ada", "New message", "Ada: New message"}},
		{"en", direct("", "hi", 1), Text{"Someone", "hi", "Someone: hi"}},
		{"en", direct("Ada", "two\n\n lines\tand\x07 more ", 1), Text{"Ada", "two lines and more", "Ada: two lines and more"}},
		{"not a tag", direct("Ada", "hi", 2), Text{"Ada", "2 new messages", "Ada: 2 new messages"}},
	} {
		if got := Of(notification(c.language, c.of)); got != c.want {
			t.Errorf("%q of %+v:\n got %q\nwant %q", c.language, c.of, got, c.want)
		}
	}
}

func TestNoText(t *testing.T) {
	t.Parallel()
	for language, want := range map[string]string{"en": "New message", "ru": "Новое сообщение", "uz": "Yangi xabar"} {
		for _, c := range []chat.NotifiedConversation{direct("Ada", "secret", 1), group("Team", "Ada", "secret", 1)} {
			n := notification(language, c)
			n.HideText = true
			got := Of(n)
			if strings.Contains(got.Title+got.Body+got.Line, "secret") || !strings.HasSuffix(got.Line, want) {
				t.Errorf("%q: %q", language, got)
			}
		}
	}
}

func TestPlurals(t *testing.T) {
	t.Parallel()
	for language, forms := range map[string]map[int64]string{
		"en": {2: "2 new messages", 21: "21 new messages", 1001: "1,001 new messages"},
		"ru": {
			2: "2 новых сообщения", 4: "4 новых сообщения", 5: "5 новых сообщений", 11: "11 новых сообщений",
			12: "12 новых сообщений", 14: "14 новых сообщений", 21: "21 новое сообщение", 22: "22 новых сообщения",
			25: "25 новых сообщений", 101: "101 новое сообщение", 111: "111 новых сообщений", 112: "112 новых сообщений",
		},
		"uz": {2: "2 ta yangi xabar", 21: "21 ta yangi xabar"},
	} {
		for n, want := range forms {
			if got := Of(notification(language, direct("A", "", n))).Body; got != want {
				t.Errorf("%s %d: %q, want %q", language, n, got, want)
			}
		}
	}
}

func TestSeveralConversations(t *testing.T) {
	t.Parallel()
	three := []chat.NotifiedConversation{direct("Ada", "see you", 1), group("Team", "Bob", "x", 9), group("Club", "Eve", "yes", 1)}
	for language, want := range map[string]Text{
		"en": {Title: "11 new messages in 3 conversations", Body: "Ada: see you\nTeam: 9 new messages\nEve in Club: yes"},
		"ru": {Title: "11 новых сообщений в 3 беседах", Body: "Ada: see you\nTeam: 9 новых сообщений\nEve в «Club»: yes"},
		"uz": {Title: "3 ta suhbatda 11 ta yangi xabar", Body: "Ada: see you\nTeam: 9 ta yangi xabar\nEve, Club: yes"},
	} {
		want.Line = want.Title
		if got := Of(notification(language, three...)); got != want {
			t.Errorf("%s:\n got %q\nwant %q", language, got, want)
		}
	}
	six := append(three, three...)
	if got := Of(notification("ru", six...)).Body; !strings.HasSuffix(got, "\nAda: see you\nи ещё 2") {
		t.Errorf("six conversations: %q", got)
	}
}

func TestPreviewIsCutAtAGrapheme(t *testing.T) {
	t.Parallel()
	family := "👩‍👩‍👧‍👦"   // 7 code points
	accented := "e\u0301" // 2
	for _, c := range []struct{ text, want string }{
		{strings.Repeat("a", 120), strings.Repeat("a", 120)},
		{strings.Repeat("a", 121), strings.Repeat("a", 119) + "…"},
		{strings.Repeat("a", 118) + accented + "bc", strings.Repeat("a", 118) + "…"},
		{strings.Repeat("a", 117) + accented + "bc", strings.Repeat("a", 117) + accented + "…"},
		{strings.Repeat(family, 18), strings.Repeat(family, 17) + "…"},
		{strings.Repeat("🇺🇿", 61), strings.Repeat("🇺🇿", 59) + "…"},
		{strings.Repeat("a", 100) + " " + strings.Repeat(family, 5), strings.Repeat("a", 100) + " " + family + family + "…"},
		{strings.Repeat("a", 115) + " " + family, strings.Repeat("a", 115) + "…"},
		{"e" + strings.Repeat("\u0301", 500), "…"},
	} {
		if got := Preview(c.text); got != c.want {
			t.Errorf("%q:\n got %q\nwant %q", c.text, got, c.want)
		}
	}
}

// shown undoes no more than a reader's eye does: it drops the isolates around a part.
var shown = strings.NewReplacer(fsi, "", pdi, "")

// Names and texts with overrides, and with isolates that they do not close or have
// not opened, keep to their place.
func TestDirectionsKeepToTheirPlace(t *testing.T) {
	t.Parallel()
	for _, hostile := range []string{
		"\u202egpj.exe", "\u202e", "\u2067x", "\u2066\u2067x", "x\u2069\u202ey", "\u2069\u2069\u202ey", "a\u2067b\u2069\u2069c",
		"\u202d\u202bשלום", "مرحبا", "\u202c\u202c", "plain \u202b",
	} {
		for _, n := range []chat.Notification{
			notification("en", direct(hostile, hostile, 1)), notification("ru", group(hostile, hostile, hostile, 1)),
			notification("uz", direct(hostile, "a", 1), group(hostile, hostile, hostile, 1)),
		} {
			text := Of(n)
			for _, part := range []string{text.Title, text.Body, text.Line} {
				for line := range strings.SplitSeq(part, "\n") {
					requireShutIn(t, line)
				}
			}
		}
	}
}

// requireShutIn fails if anything that turns the direction stands outside of an
// isolate, or if an isolate is open at the end.
func requireShutIn(t *testing.T, line string) {
	t.Helper()
	depth := 0
	for _, r := range line {
		switch r {
		case '\u2066', '\u2067', '\u2068':
			depth++
		case '\u2069':
			if depth--; depth < 0 {
				t.Errorf("%+q ends an isolate that it has not begun", line)
				return
			}
		case '\u202a', '\u202b', '\u202c', '\u202d', '\u202e', 'ש', 'م':
			if depth == 0 {
				t.Errorf("%+q turns its surroundings", line)
				return
			}
		}
	}
	if depth != 0 {
		t.Errorf("%+q leaves %d isolates open", line, depth)
	}
}

// What users type is text: the writer neither interprets nor changes it.
func TestMarkupAndFormatsStayText(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"<img src=x onerror=alert(1)>", "100%s %d %[1]s", "&lt;b&gt;", "\u202egpj.exe<b>"} {
		got := Of(notification("ru", group(s, s, s, 1)))
		want := Text{Title: s, Body: s + ": " + s, Line: s + " в «" + s + "»: " + s}
		if got := (Text{shown.Replace(got.Title), shown.Replace(got.Body), shown.Replace(got.Line)}); got != want {
			t.Errorf("%q:\n got %q\nwant %q", s, got, want)
		}
	}
}

func TestOrdinaryTextIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"hi", "привет — 100 €", "Oʻzbekcha", "漢字 👍🏽"} {
		if got := Isolate(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func FuzzPreview(f *testing.F) {
	for _, s := range []string{"", "hi", "\u202e\u2067x", strings.Repeat("👩‍👩‍👧‍👦", 30), "e" + strings.Repeat("\u0301", 200)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "\ufffd") // as stores keep it
		got := cut(plain(s), MaxPreview)
		if n := utf8.RuneCountInString(got); n > MaxPreview {
			t.Errorf("%d code points", n)
		}
		if kept, shortened := strings.CutSuffix(got, ellipsis); shortened && got != plain(s) {
			if !strings.HasPrefix(plain(s), kept) || !atBoundary(plain(s), len(kept)) {
				t.Errorf("%+q is cut inside of a character: %+q", s, got)
			}
		}
		requireShutIn(t, Preview(s))
	})
}

func atBoundary(s string, at int) bool {
	for end, graphemes := 0, uniseg.NewGraphemes(s); ; {
		if end == at {
			return true
		}
		if !graphemes.Next() {
			return false
		}
		_, end = graphemes.Positions()
	}
}

func TestEveryLanguageHasEveryReply(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, l := range languages {
		for _, r := range []Reply{Linked, BadCode, HowToLink} {
			text := r.Of(l.tag.String())
			if text == "" || seen[text] {
				t.Errorf("%s %d: %q", l.tag, r, text)
			}
			seen[text] = true
		}
	}
}

func TestLanguagesServeManyAtOnce(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if got := Of(notification("ru", direct("A", "", 21))).Body; got != "21 новое сообщение" {
					t.Error(got)
				}
			}
		})
	}
	all.Wait()
}
