package notify

import (
	"context"
	"fmt"
	"log/slog"

	"xabar/chat"
	"xabar/gateway/notify/outbound"
	"xabar/gateway/notify/telegram"
	"xabar/gateway/notify/webhook"
	"xabar/gateway/notify/webpush"
)

// pushInFlight is for one push service: one of them serves most browsers.
const pushInFlight = 32

// ChannelConfig says which channels there are: those whose first field is set.
type ChannelConfig struct {
	Store  chat.NotifyTargetStore // required
	Logger *slog.Logger           // required

	// VAPIDSubject is how push services reach the operator: a mailto: or https: URL.
	VAPIDSubject string
	// AllowPrivatePush lets browsers name push services on private addresses and
	// without TLS.
	AllowPrivatePush bool

	TelegramToken  string
	TelegramAPIURL string // "" is Telegram's own

	WebhookURL    string
	WebhookSecret string
}

// Channels are the ways to reach users, and what else they have.
type Channels struct {
	Notifiers []chat.Notifier
	// Everybody has the names of those that need no target of the user's.
	Everybody []string
	// Push keeps users' browsers, which subscribe with PushKey; nil without Web Push.
	Push    *webpush.Subscriptions
	PushKey string
	// Telegram links chats; nil without Telegram.
	Telegram *telegram.Links

	updates *telegram.Updates // nil without Telegram
	callers []*outbound.Caller
}

// OpenChannels makes the channels that are configured. To add one, add it here
// (docs/guides/notification-channel.md). Web Push takes its keys from the store; nothing
// else is asked for. Errors: what is configured can't be used, or the store's.
func OpenChannels(ctx context.Context, c ChannelConfig) (*Channels, error) {
	channels := &Channels{}
	for _, open := range []func(context.Context, ChannelConfig) error{
		channels.openWebPush, channels.openTelegram, channels.openWebhook,
	} {
		if err := open(ctx, c); err != nil {
			channels.Close()
			return nil, err
		}
	}
	return channels, nil
}

func (c *Channels) openWebPush(ctx context.Context, config ChannelConfig) error {
	if config.VAPIDSubject == "" {
		return nil
	}
	keys, err := webpush.LoadKeys(ctx, config.Store, config.VAPIDSubject)
	if err != nil {
		return fmt.Errorf("web push: %w", err)
	}
	c.Push, c.PushKey = webpush.NewSubscriptions(config.Store, config.AllowPrivatePush), keys.Public()
	c.Notifiers = append(c.Notifiers, webpush.New(webpush.Options{
		Keys: keys, AllowPrivate: config.AllowPrivatePush,
		Caller: c.caller(outbound.Options{PublicOnly: !config.AllowPrivatePush, InFlight: pushInFlight}),
	}))
	return nil
}

func (c *Channels) openTelegram(_ context.Context, config ChannelConfig) error {
	if config.TelegramToken == "" {
		return nil
	}
	sending, err := telegram.NewBot(config.TelegramToken, config.TelegramAPIURL, c.caller(outbound.Options{}))
	if err != nil {
		return fmt.Errorf("telegram: %w", err)
	}
	linking, err := telegram.NewBot(config.TelegramToken, config.TelegramAPIURL,
		c.caller(outbound.Options{MaxAnswer: telegram.UpdatesAnswer}))
	if err != nil {
		return fmt.Errorf("telegram: %w", err)
	}
	c.Telegram = telegram.NewLinks(linking, config.Store)
	c.updates = telegram.NewUpdates(linking, c.Telegram, config.Store, config.Logger)
	c.Notifiers = append(c.Notifiers, telegram.NewNotifier(sending, 0))
	return nil
}

func (c *Channels) openWebhook(_ context.Context, config ChannelConfig) error {
	if config.WebhookURL == "" {
		return nil
	}
	notifier, err := webhook.New(webhook.Options{
		URL: config.WebhookURL, Secret: config.WebhookSecret, Caller: c.caller(outbound.Options{}),
	})
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	c.Notifiers = append(c.Notifiers, notifier)
	c.Everybody = append(c.Everybody, notifier.Channel())
	return nil
}

func (c *Channels) caller(o outbound.Options) *outbound.Caller {
	caller := outbound.New(o)
	c.callers = append(c.callers, caller)
	return caller
}

// Features are the channels' names, for clients.
func (c *Channels) Features() []string {
	names := []string{}
	for _, n := range c.Notifiers {
		names = append(names, n.Channel())
	}
	return names
}

// Run hears what users send to the bot, until ctx ends; it returns nil then. The store
// must be open until it has returned.
func (c *Channels) Run(ctx context.Context) error {
	if c.updates == nil {
		return nil
	}
	return c.updates.Run(ctx)
}

// Close ends idle connections, when nobody notifies any more.
func (c *Channels) Close() {
	for _, caller := range c.callers {
		caller.Close()
	}
}
