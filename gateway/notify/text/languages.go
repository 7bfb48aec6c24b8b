package text

import (
	"golang.org/x/text/feature/plural"
	lang "golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/message/catalog"
)

// language is everything that a notification says by itself.
type language struct {
	tag        lang.Tag
	newMessage string // one, of which no text is shown
	someone    string // whose name is not known
	in         string // a sender in a group
	more       string // conversations that are not named
	replies    map[Reply]string
	// Forms by CLDR's plural categories, as plural.Selectf takes them.
	messages, conversations []any
	// together has the two numbers' phrases in this language's order.
	together string

	printer *message.Printer
}

// Reply is what a bot says by itself.
type Reply int

// The replies of a bot.
const (
	Linked    Reply = iota + 1 // this chat gets notifications from now on
	BadCode                    // the code is unknown, used or expired
	HowToLink                  // there was no code
)

// Of is the reply in a language (a BCP 47 tag).
func (r Reply) Of(language string) string { return match(language).replies[r] }

// The keys of the two phrases with a number.
const (
	messagesKey      = "messages"
	conversationsKey = "conversations"
)

// languages are those that there is a text for; the first is for everybody else. To
// add one, add it here, with all the plural categories that CLDR gives it.
var languages = prepare([]*language{
	{
		tag: lang.English, newMessage: "New message", someone: "Someone", in: "%s in %s", more: "and %d more",
		messages:      []any{plural.One, "%d new message", plural.Other, "%d new messages"},
		conversations: []any{plural.One, "in %d conversation", plural.Other, "in %d conversations"},
		together:      "%[1]s %[2]s",
		replies: map[Reply]string{
			Linked:    "Done. New messages will be announced here.",
			BadCode:   "This link has been used or is too old. Get a new one in the settings of the chat.",
			HowToLink: "To get notifications here, open the settings of the chat and follow the link to Telegram.",
		},
	},
	{
		tag: lang.Russian, newMessage: "Новое сообщение", someone: "Кто-то", in: "%s в «%s»", more: "и ещё %d",
		messages: []any{
			plural.One, "%d новое сообщение", plural.Few, "%d новых сообщения",
			plural.Many, "%d новых сообщений", plural.Other, "%d нового сообщения",
		},
		conversations: []any{plural.One, "в %d беседе", plural.Few, "в %d беседах", plural.Many, "в %d беседах", plural.Other, "в %d беседы"},
		together:      "%[1]s %[2]s",
		replies: map[Reply]string{
			Linked:    "Готово. О новых сообщениях вы узнаете здесь.",
			BadCode:   "Эта ссылка уже использована или устарела. Получите новую в настройках чата.",
			HowToLink: "Чтобы получать уведомления здесь, откройте настройки чата и перейдите по ссылке в Telegram.",
		},
	},
	{
		tag: lang.Uzbek, newMessage: "Yangi xabar", someone: "Kimdir", in: "%s, %s", more: "va yana %d ta",
		messages:      []any{plural.Other, "%d ta yangi xabar"},
		conversations: []any{plural.Other, "%d ta suhbatda"},
		together:      "%[2]s %[1]s",
		replies: map[Reply]string{
			Linked:    "Tayyor. Yangi xabarlar haqida shu yerda bilib olasiz.",
			BadCode:   "Bu havola ishlatilgan yoki eskirgan. Chat sozlamalaridan yangisini oling.",
			HowToLink: "Bildirishnomalarni shu yerda olish uchun chat sozlamalarini oching va Telegram havolasiga oʻting.",
		},
	},
})

var matcher = func() lang.Matcher {
	var tags []lang.Tag
	for _, l := range languages {
		tags = append(tags, l.tag)
	}
	return lang.NewMatcher(tags)
}()

// prepare gives each language its printer.
func prepare(all []*language) []*language {
	forms := catalog.NewBuilder()
	for _, l := range all {
		for key, cases := range map[string][]any{messagesKey: l.messages, conversationsKey: l.conversations} {
			if err := forms.Set(l.tag, key, plural.Selectf(1, "%d", cases...)); err != nil {
				panic(err) // the table above is wrong, and no test has run
			}
		}
		l.printer = message.NewPrinter(l.tag, message.Catalog(forms))
	}
	return all
}

// match finds the language for a BCP 47 tag: the nearest that there is.
func match(tag string) *language {
	parsed, err := lang.Parse(tag)
	if err != nil {
		return languages[0]
	}
	_, index, _ := matcher.Match(parsed)
	return languages[index]
}

func (l *language) newMessages(n int64) string { return l.printer.Sprintf(messagesKey, n) }

func (l *language) inGroup(sender, group string) string {
	return l.printer.Sprintf(l.in, sender, group)
}

func (l *language) andMore(n int) string { return l.printer.Sprintf(l.more, n) }

func (l *language) inConversations(messages int64, conversations int) string {
	return l.printer.Sprintf(l.together, l.newMessages(messages), l.printer.Sprintf(conversationsKey, conversations))
}
