package main

import (
	"context"

	"xabar/chat"
	"xabar/gateway/httpapi"
	"xabar/gateway/notify"
	"xabar/gateway/notify/telegram"
	"xabar/gateway/notify/webpush"
)

// offerChannels lets users switch on the channels that there are.
func offerChannels(routes *httpapi.Public, channels *notify.Channels) {
	if channels.Push != nil {
		routes.Push, routes.PushKey = pushRoutes{channels.Push}, channels.PushKey
	}
	if channels.Telegram != nil {
		routes.Telegram = telegramRoutes{channels.Telegram}
	}
}

// pushRoutes are browsers' subscriptions as the HTTP routes want them.
type pushRoutes struct{ *webpush.Subscriptions }

func (p pushRoutes) AddPushSubscription(ctx context.Context, user chat.ID, s httpapi.PushSubscription) error {
	return p.Add(ctx, user, s.Endpoint, s.P256dh, s.Auth)
}

func (p pushRoutes) RemovePushSubscription(ctx context.Context, user chat.ID, endpoint string) error {
	return p.Remove(ctx, user, endpoint)
}

// telegramRoutes are chats' links as the HTTP routes want them.
type telegramRoutes struct{ *telegram.Links }

func (t telegramRoutes) NewTelegramCode(ctx context.Context, user chat.ID) (httpapi.TelegramCode, error) {
	code, err := t.New(ctx, user)
	return httpapi.TelegramCode(code), err
}

func (t telegramRoutes) UnlinkTelegram(ctx context.Context, user chat.ID) error {
	return t.Unlink(ctx, user)
}
