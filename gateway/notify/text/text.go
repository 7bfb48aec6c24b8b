// Package text writes notifications for people: who wrote, how many messages, and the
// beginning of the last one, in the user's language (languages.go).
//
// What users have typed is data here too. It keeps its characters, markup included,
// but for what would break out of its place: line breaks and control characters
// become spaces or go, and what changes the direction of writing is shut in
// (bidi.go). Escaping for HTML is the channel's business that needs it.
package text

import (
	"strings"

	"xabar/chat"
)

// Bounds of a text, in code points. Whole texts have bounds too, so that they fit into
// what a push service takes.
const (
	MaxPreview = 120 // the ellipsis included
	maxName    = chat.MaxNameLength
	maxInLine  = 40 // of a name or a preview, in the line of one of several conversations
	maxLines   = 4  // conversations that are named, of several
)

// Text is a notification for people.
type Text struct {
	// Title says who wrote, in which group, or how much came in several
	// conversations.
	Title string
	// Body is what came: a line, or one for each of several conversations.
	Body string
	// Line is title and body in one, without line breaks: "Ada: 5 new messages".
	Line string
}

// Of writes the text of a notification.
func Of(n chat.Notification) Text {
	w := writer{language: match(n.Language), hide: n.HideText, maxPreview: MaxPreview, maxName: maxName}
	if len(n.Conversations) == 1 {
		return w.one(n.Conversations[0])
	}
	return w.several(n.Conversations)
}

type writer struct {
	*language
	hide                bool
	maxPreview, maxName int
}

func (w writer) one(c chat.NotifiedConversation) Text {
	sender, what := w.sender(c), w.what(c)
	switch {
	case c.Kind != chat.Group:
		return Text{Title: sender, Body: what, Line: sender + ": " + what}
	case c.Count > 1:
		group := w.group(c)
		return Text{Title: group, Body: what, Line: group + ": " + what}
	default:
		group := w.group(c)
		return Text{Title: group, Body: sender + ": " + what, Line: w.inGroup(sender, group) + ": " + what}
	}
}

func (w writer) several(all []chat.NotifiedConversation) Text {
	w.maxPreview, w.maxName = maxInLine, maxInLine
	var count int64
	var lines []string
	for i, c := range all {
		count += c.Count
		if i < maxLines {
			lines = append(lines, w.one(c).Line)
		}
	}
	if more := len(all) - maxLines; more > 0 {
		lines = append(lines, w.andMore(more))
	}
	title := w.inConversations(count, len(all))
	return Text{Title: title, Body: strings.Join(lines, "\n"), Line: title}
}

// what came: a text, or only how many.
func (w writer) what(c chat.NotifiedConversation) string {
	if c.Count > 1 {
		return w.newMessages(c.Count)
	}
	preview := cut(plain(c.Preview), w.maxPreview)
	if w.hide || preview == "" {
		return w.newMessage
	}
	return Isolate(preview)
}

func (w writer) sender(c chat.NotifiedConversation) string {
	name := c.SenderName
	if name == "" && c.Kind != chat.Group {
		name = c.Title
	}
	return w.name(name)
}

func (w writer) group(c chat.NotifiedConversation) string { return w.name(c.Title) }

// name is a name as it may stand inside other text.
func (w writer) name(s string) string {
	s = cut(plain(s), w.maxName)
	if s == "" {
		return w.someone
	}
	return Isolate(s)
}

// Preview is the beginning of a message's text, as it stands in a notification: on
// one line, at most MaxPreview code points, cut at a whole grapheme.
func Preview(s string) string { return Isolate(cut(plain(s), MaxPreview)) }
