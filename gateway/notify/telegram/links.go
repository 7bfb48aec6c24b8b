package telegram

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"sync/atomic"
	"time"

	"xabar/chat"
)

const (
	// CodeLife is how long a code can be used.
	CodeLife = 15 * time.Minute
	codeSize = 16 // bytes, from which a code is made: nobody guesses it in that time
)

// Links ties users to chats.
type Links struct {
	bot   *Bot
	store chat.NotifyTargetStore
	name  atomic.Pointer[string] // the bot's, once it is known
}

// NewLinks makes Links.
func NewLinks(bot *Bot, store chat.NotifyTargetStore) *Links { return &Links{bot: bot, store: store} }

// Code is what a user sends to the bot.
type Code struct {
	Code      string
	URL       string // opens the bot, and sends the code with one press
	ExpiresAt time.Time
}

// New makes a code for the user; the one before ends. Errors: unavailable (Telegram
// does not answer), and the store's.
func (l *Links) New(ctx context.Context, user chat.ID) (Code, error) {
	name, err := l.username(ctx)
	if err != nil {
		return Code{}, chat.Wrap(chat.CodeUnavailable, err)
	}
	random := make([]byte, codeSize)
	if _, err := rand.Read(random); err != nil {
		return Code{}, err
	}
	code := Code{Code: base64.RawURLEncoding.EncodeToString(random), ExpiresAt: time.Now().Add(CodeLife)}
	code.URL = "https://t.me/" + name + "?start=" + code.Code
	return code, l.store.AddLinkCode(ctx, user, chat.ChannelTelegram, hash(code.Code), code.ExpiresAt)
}

// Unlink forgets the user's chat; absent is no error.
func (l *Links) Unlink(ctx context.Context, user chat.ID) error {
	return l.store.RemoveNotifyTarget(ctx, user, chat.ChannelTelegram, "")
}

// take links the chat to whom the code was given, instead of the chat before. Errors:
// not_found (unknown, used or expired), and the store's.
func (l *Links) take(ctx context.Context, code string, to Target) error {
	user, err := l.store.TakeLinkCode(ctx, chat.ChannelTelegram, hash(code))
	if err != nil {
		return err
	}
	if err := l.Unlink(ctx, user); err != nil {
		return err
	}
	target := fmt.Appendf(nil, `{"chat_id":%d}`, to.ChatID)
	_, err = l.store.AddNotifyTarget(ctx, user, chat.ChannelTelegram, fmt.Sprint(to.ChatID), target)
	return err
}

// hash is what is stored of a code: whoever reads the database can't use it.
func hash(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}

func (l *Links) username(ctx context.Context) (string, error) {
	if name := l.name.Load(); name != nil {
		return *name, nil
	}
	bot, err := l.bot.getMe(ctx)
	if err != nil {
		return "", err
	}
	l.name.Store(&bot.Username)
	return bot.Username, nil
}
