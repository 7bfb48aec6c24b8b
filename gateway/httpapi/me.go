package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"xabar/chat"
	"xabar/gateway/httpapi/api"
)

// PushSubscription is where and how a browser is notified, as it says itself.
type PushSubscription struct {
	Endpoint, P256dh, Auth string
}

// PushSubscriptions keeps them.
type PushSubscriptions interface {
	// AddPushSubscription keeps one for the user; the same endpoint again replaces
	// what was kept of it. Errors: invalid_argument.
	AddPushSubscription(ctx context.Context, user chat.ID, subscription PushSubscription) error
	// RemovePushSubscription forgets one of the user's; absent is no error.
	RemovePushSubscription(ctx context.Context, user chat.ID, endpoint string) error
}

// TelegramCode is what a user sends to the bot.
type TelegramCode struct {
	Code, URL string
	ExpiresAt time.Time
}

// TelegramLinks ties users to Telegram chats.
type TelegramLinks interface {
	// NewTelegramCode makes a code that links the chat from which it is sent.
	NewTelegramCode(ctx context.Context, user chat.ID) (TelegramCode, error)
	// UnlinkTelegram forgets the user's chat; absent is no error.
	UnlinkTelegram(ctx context.Context, user chat.ID) error
}

// GetMe implements api.ServerInterface.
func (s *server) GetMe(c echo.Context) error {
	profile, err := s.service.Me(c.Request().Context(), actor(c))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, s.me(profile))
}

// UpdateMe implements api.ServerInterface.
func (s *server) UpdateMe(c echo.Context) error {
	req, err := decode[api.UpdateMe](c)
	if err != nil {
		return err
	}
	change := chat.ProfileChange{Name: req.Name, SettingsChange: chat.SettingsChange{
		Notify: req.Notify, Language: req.Language, OnlyDirect: req.OnlyDirect, HideText: req.HideText, ChannelsOff: req.ChannelsOff,
	}}
	if req.RemindAfterMinutes != nil {
		after := time.Duration(*req.RemindAfterMinutes) * time.Minute
		change.RemindAfter = &after
	}
	if change.SetQuiet = len(req.QuietHours) > 0; change.SetQuiet {
		if change.Quiet, err = quietHours(req.QuietHours); err != nil {
			return err
		}
	}
	profile, err := s.service.UpdateMe(c.Request().Context(), actor(c), change)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, s.me(profile))
}

// me is the profile with what this server has for it.
func (s *server) me(profile chat.Profile) api.Me {
	me := wireMe(profile)
	if s.pushKey != "" {
		me.WebPushKey = &s.pushKey
	}
	return me
}

// quietHours reads what has passed validation; null is nil.
func quietHours(raw json.RawMessage) (*chat.QuietHours, error) {
	var hours *api.QuietHours
	if err := json.Unmarshal(raw, &hours); err != nil || hours == nil {
		return nil, err
	}
	from, err := minute(hours.From)
	if err != nil {
		return nil, err
	}
	until, err := minute(hours.Until)
	return &chat.QuietHours{From: from, Until: until, TimeZone: hours.TimeZone}, err
}

func minute(clock string) (int, error) {
	t, err := time.Parse("15:04", clock)
	if err != nil {
		return 0, chat.InvalidArgument("quietHours", "quietHours are from 00:00 to 23:59")
	}
	return t.Hour()*60 + t.Minute(), nil
}

func switchedOff(what string) error {
	return chat.Errorf(chat.CodeNotFound, "%s is not switched on", what)
}

// AddPushSubscription implements api.ServerInterface.
func (s *server) AddPushSubscription(c echo.Context) error {
	req, err := decode[api.PushSubscription](c)
	if err != nil {
		return err
	}
	if s.push == nil {
		return switchedOff("Web Push")
	}
	err = s.push.AddPushSubscription(c.Request().Context(), actor(c).User.ID,
		PushSubscription{Endpoint: req.Endpoint, P256dh: req.Keys.P256Dh, Auth: req.Keys.Auth})
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusCreated)
}

// RemovePushSubscription implements api.ServerInterface.
func (s *server) RemovePushSubscription(c echo.Context) error {
	req, err := decode[api.PushEndpoint](c)
	if err != nil {
		return err
	}
	if s.push == nil {
		return switchedOff("Web Push")
	}
	if err := s.push.RemovePushSubscription(c.Request().Context(), actor(c).User.ID, req.Endpoint); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// LinkTelegram implements api.ServerInterface.
func (s *server) LinkTelegram(c echo.Context) error {
	if s.telegram == nil {
		return switchedOff("Telegram")
	}
	code, err := s.telegram.NewTelegramCode(c.Request().Context(), actor(c).User.ID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, api.TelegramLink{Code: code.Code, URL: code.URL, ExpiresAt: chat.At(code.ExpiresAt)})
}

// UnlinkTelegram implements api.ServerInterface.
func (s *server) UnlinkTelegram(c echo.Context) error {
	if s.telegram == nil {
		return switchedOff("Telegram")
	}
	if err := s.telegram.UnlinkTelegram(c.Request().Context(), actor(c).User.ID); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
