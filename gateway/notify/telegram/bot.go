// Package telegram is the notification channel of Telegram's Bot API: a Notifier that
// sends to a chat, Links by which users tie a chat to themselves with a one-time code,
// and Updates, which hears the codes that are sent to the bot.
//
// Everything goes out to the Bot API's server (--telegram-api-url); nothing of
// Telegram's reaches the gateway. Updates are fetched by long polling, from one node at
// a time.
package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"xabar/gateway/notify/outbound"
)

// DefaultAPIURL is Telegram's own server of the Bot API.
const DefaultAPIURL = "https://api.telegram.org"

// Bot calls the Bot API with a bot's token.
type Bot struct {
	base   string // the URL of a method without its name; secret, since the token is in it
	caller *outbound.Caller
}

var tokenShape = regexp.MustCompile(`^[0-9]+:[A-Za-z0-9_-]+$`)

// NewBot makes a Bot. An apiURL of "" is DefaultAPIURL. Errors: a token or a URL that
// can't be one; they do not name the token.
func NewBot(token, apiURL string, caller *outbound.Caller) (*Bot, error) {
	if err := CheckToken(token); err != nil {
		return nil, err
	}
	if apiURL == "" {
		apiURL = DefaultAPIURL
	}
	if err := CheckAPIURL(apiURL); err != nil {
		return nil, err
	}
	return &Bot{strings.TrimRight(apiURL, "/") + "/bot" + token + "/", caller}, nil
}

// CheckToken says whether this can be a bot's token.
func CheckToken(token string) error {
	if !tokenShape.MatchString(token) {
		return errors.New("not a token as BotFather gives it, like 123456:ABC-DEF")
	}
	return nil
}

// CheckAPIURL says whether this can be the URL of a Bot API server.
func CheckAPIURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("not a URL like " + DefaultAPIURL)
	}
	return nil
}

// Error is a refusal of the Bot API.
type Error struct {
	Code        int    // an HTTP status
	Description string // Telegram's own words
	RetryAfter  time.Duration
}

// Error names the code and Telegram's description.
func (e *Error) Error() string { return fmt.Sprintf("Telegram answers %d: %s", e.Code, e.Description) }

// answer is the envelope of every result.
type answer struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	ErrorCode   int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter int64 `json:"retry_after"` // seconds
	} `json:"parameters"`
}

// call makes one call and reads its result. Errors: *Error when the API refuses, else
// outbound's.
func (b *Bot) call(ctx context.Context, timeout time.Duration, method string, parameters, result any) error {
	body, err := json.Marshal(parameters)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.base+method, bytes.NewReader(body))
	if err != nil {
		return errors.New("the Bot API's URL can't be used") // err has the token
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := b.caller.DoWithin(ctx, timeout, request)
	if err != nil {
		return err
	}
	var a answer
	if err := json.Unmarshal(response.Body, &a); err != nil {
		// A proxy's page, perhaps: its status is what we know.
		return &Error{Code: response.Status, Description: "not an answer of the Bot API", RetryAfter: response.RetryAfter}
	}
	if !a.OK {
		return refusal(a, response)
	}
	return json.Unmarshal(a.Result, result)
}

func refusal(a answer, response outbound.Answer) *Error {
	e := &Error{Code: a.ErrorCode, Description: a.Description, RetryAfter: response.RetryAfter}
	if e.Code == 0 {
		e.Code = response.Status
	}
	if a.Parameters.RetryAfter > 0 {
		e.RetryAfter = outbound.Pause(a.Parameters.RetryAfter)
	}
	return e
}

// me is the bot itself.
type me struct {
	Username string `json:"username"`
}

func (b *Bot) getMe(ctx context.Context) (me, error) {
	var m me
	err := b.call(ctx, outbound.DefaultTimeout, "getMe", struct{}{}, &m)
	if err == nil && m.Username == "" {
		err = errors.New("the bot has no name")
	}
	return m, err
}

// message is what a bot sends.
type message struct {
	ChatID      int64       `json:"chat_id"`
	Text        string      `json:"text"`
	ParseMode   string      `json:"parse_mode,omitempty"`
	LinkPreview linkPreview `json:"link_preview_options"`
}

// linkPreview is off: Telegram would fetch what users link to.
type linkPreview struct {
	Disabled bool `json:"is_disabled"`
}

func (b *Bot) send(ctx context.Context, timeout time.Duration, m message) error {
	m.LinkPreview.Disabled = true
	return b.call(ctx, timeout, "sendMessage", m, &json.RawMessage{})
}
