package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"xabar/chat"
	"xabar/gateway/notify/outbound"
	"xabar/gateway/notify/text"
)

// Target is a linked chat, as it is kept as a target.
type Target struct {
	ChatID int64 `json:"chat_id"`
}

// Notifier implements chat.Notifier.
type Notifier struct {
	bot     *Bot
	timeout time.Duration
}

var _ chat.Notifier = (*Notifier)(nil)

// NewNotifier sends as bot; a timeout of 0 is outbound.DefaultTimeout.
func NewNotifier(bot *Bot, timeout time.Duration) *Notifier {
	if timeout == 0 {
		timeout = outbound.DefaultTimeout
	}
	return &Notifier{bot, timeout}
}

// Channel implements chat.Notifier.
func (*Notifier) Channel() string { return chat.ChannelTelegram }

// Notify implements chat.Notifier. The target is a Target. A chat in which the bot may
// not write (403) is Gone, a flood (429) is waited out for as long as Telegram says, a
// message that can't be accepted (400) is given up, everything else is tried again.
func (n *Notifier) Notify(ctx context.Context, notification chat.Notification, target json.RawMessage) (chat.Outcome, error) {
	var to Target
	if err := json.Unmarshal(target, &to); err != nil || to.ChatID == 0 {
		return chat.Outcome{}, errors.Join(chat.ErrRefused, errors.New("not a Telegram chat"))
	}
	err := n.bot.send(ctx, n.timeout, message{ChatID: to.ChatID, Text: markup(text.Of(notification)), ParseMode: "HTML"})
	if err == nil {
		return chat.Outcome{Sent: true}, nil
	}
	refused, ok := errors.AsType[*Error](err)
	if !ok {
		return outbound.Failed(err)
	}
	return outcome(refused)
}

func outcome(refused *Error) (chat.Outcome, error) {
	switch refused.Code {
	case http.StatusForbidden:
		return chat.Outcome{Gone: true}, nil
	case http.StatusTooManyRequests:
		if refused.RetryAfter == 0 {
			refused.RetryAfter = outbound.DefaultRetryAfter
		}
		return chat.Outcome{RetryAfter: refused.RetryAfter}, nil
	case http.StatusBadRequest:
		return chat.Outcome{}, errors.Join(chat.ErrRefused, refused)
	default:
		return chat.Outcome{}, refused
	}
}

// escape is what the Bot API wants of text within HTML.
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

func markup(t text.Text) string {
	return "<b>" + escape.Replace(t.Title) + "</b>\n" + escape.Replace(t.Body)
}
