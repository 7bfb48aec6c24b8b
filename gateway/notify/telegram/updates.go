package telegram

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"xabar/chat"
	"xabar/gateway/notify/outbound"
	"xabar/gateway/notify/text"
)

const (
	leaseName = "telegram-updates"
	// pollTime is how long Telegram holds a request without news.
	pollTime = 25 * time.Second
	// leaseTime is for a poll, its answer and what follows from it; a node that dies
	// leaves codes unheard for as long.
	leaseTime = 75 * time.Second
	// leaseFresh is the age at which the lease is renewed between two updates.
	leaseFresh = 15 * time.Second
	// waitTime is between looks of those who don't have the lease.
	waitTime = 20 * time.Second
	// Pauses after failures.
	minPause, maxPause = time.Second, time.Minute
)

// Updates hears what is sent to the bot.
type Updates struct {
	bot    *Bot
	links  *Links
	store  chat.NotifyTargetStore
	log    *slog.Logger
	holder chat.ID

	offset    int64     // the first update that is not done with
	confirmed int64     // the offset that Telegram has heard of
	renewed   time.Time // when the lease was taken
	pause     time.Duration

	pollTime, waitTime time.Duration // shorter in tests
}

// NewUpdates hears for links. bot calls through an outbound.Caller of its own with
// UpdatesAnswer, so that linking does not wait behind a flood of notifications.
func NewUpdates(bot *Bot, links *Links, store chat.NotifyTargetStore, log *slog.Logger) *Updates {
	return &Updates{
		bot: bot, links: links, store: store, log: log, holder: chat.NewID(), pollTime: pollTime, waitTime: waitTime,
	}
}

// Run polls while this node has the lease, until ctx ends; it returns nil then. Each
// node runs one.
func (u *Updates) Run(ctx context.Context) error {
	defer u.release(context.WithoutCancel(ctx))
	for ctx.Err() == nil {
		mine, err := u.lease(ctx)
		if err == nil && mine {
			err = u.poll(ctx)
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			u.failed(ctx, err)
		case !mine:
			sleep(ctx, u.waitTime)
		default:
			u.pause = 0
		}
	}
	return nil
}

func (u *Updates) lease(ctx context.Context) (bool, error) {
	mine, err := u.store.TakeLease(ctx, leaseName, u.holder, leaseTime)
	if err == nil && mine {
		u.renewed = time.Now()
	}
	return mine, err
}

// release lets another node begin at once.
func (u *Updates) release(ctx context.Context) {
	if u.renewed.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := u.confirm(ctx); err != nil {
		u.log.Debug("Telegram was not told what is done with; the next node gets it again", "error", err)
	}
	if _, err := u.store.TakeLease(ctx, leaseName, u.holder, 0); err != nil {
		u.log.Debug("the lease of Telegram's updates was not given back", "error", err)
	}
}

// confirm tells Telegram which updates are done with. Else only the next poll does, and that may be another
// node's, which would answer them a second time.
func (u *Updates) confirm(ctx context.Context) error {
	if u.confirmed == u.offset {
		return nil
	}
	var unread []update
	return u.bot.call(ctx, outbound.DefaultTimeout, "getUpdates", getUpdates{Offset: u.offset, Limit: 1, Allowed: []string{"message"}}, &unread)
}

// failed says what is wrong and waits, longer each time.
func (u *Updates) failed(ctx context.Context, err error) {
	u.pause = min(max(2*u.pause, minPause), maxPause)
	pause := u.pause
	if refused, ok := errors.AsType[*Error](err); ok {
		pause = max(pause, refused.RetryAfter)
		if refused.Code == http.StatusConflict {
			u.log.Warn("somebody else fetches this bot's updates, or it has a webhook; users can't link chats", "error", err)
		}
	}
	u.log.Warn("Telegram's updates were not fetched", "error", err, "pause", pause.String())
	sleep(ctx, pause)
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// update is what we look at of one.
type update struct {
	ID      int64 `json:"update_id"`
	Message *struct {
		Text string `json:"text"`
		From struct {
			Language string `json:"language_code"`
		} `json:"from"`
		Chat struct {
			ID   int64  `json:"id"`
			Type string `json:"type"`
		} `json:"chat"`
	} `json:"message"`
}

type getUpdates struct {
	Offset  int64    `json:"offset"`
	Limit   int      `json:"limit"`
	Timeout int      `json:"timeout"` // seconds
	Allowed []string `json:"allowed_updates"`
}

// What is read of an answer must hold as many updates as are asked for, or one that is
// too long would come again for good. A message has 4,096 characters, up to 6 bytes each,
// the one that it answers as many, and both have up to 100 entities.
const (
	maxUpdates = 20
	// UpdatesAnswer is the MaxAnswer of the Caller that Updates need, in bytes.
	UpdatesAnswer = 8 << 20
)

// poll waits for updates and handles them. What the store could not take is fetched
// again.
func (u *Updates) poll(ctx context.Context) error {
	var updates []update
	request := getUpdates{Offset: u.offset, Limit: maxUpdates, Timeout: int(u.pollTime.Seconds()), Allowed: []string{"message"}}
	if err := u.bot.call(ctx, u.pollTime+outbound.DefaultTimeout, "getUpdates", request, &updates); err != nil {
		return err
	}
	u.confirmed = request.Offset
	for _, one := range updates {
		if time.Since(u.renewed) > leaseFresh {
			if mine, err := u.lease(ctx); err != nil || !mine {
				return err // whoever has it now gets the rest
			}
		}
		if err := u.handle(ctx, one); err != nil {
			return err
		}
		u.offset = one.ID + 1
	}
	return nil
}

// handle answers /start, with a code or without. Groups are not for notifications of
// one person's messages: codes count in private chats only.
func (u *Updates) handle(ctx context.Context, one update) error {
	m := one.Message
	if m == nil || m.Chat.Type != "private" {
		return nil
	}
	words := strings.Fields(m.Text)
	if len(words) == 0 || words[0] != "/start" {
		return nil
	}
	reply := text.HowToLink
	if len(words) > 1 {
		switch err := u.links.take(ctx, words[1], Target{m.Chat.ID}); {
		case err == nil:
			reply = text.Linked
		case chat.CodeOf(err) == chat.CodeNotFound:
			reply = text.BadCode
		default:
			return err
		}
	}
	// Whoever can't be answered sees in the settings what became of it.
	if err := u.bot.send(ctx, outbound.DefaultTimeout, message{ChatID: m.Chat.ID, Text: reply.Of(m.From.Language)}); err != nil {
		u.log.Debug("a Telegram user was not answered", "error", err)
	}
	return nil
}
