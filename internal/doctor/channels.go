package doctor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const sectionNotifications = "notifications"

// Webhook connects to the server of --webhook-url, and sends it nothing.
func Webhook(ctx context.Context, r *Report, address string) {
	s := r.Section(sectionNotifications)
	u, err := url.Parse(address)
	if err != nil {
		s.Problem("webhook", "give --webhook-url as https://…", "the address cannot be read")
		return
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	where := net.JoinHostPort(u.Hostname(), port)
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	dial := (&net.Dialer{}).DialContext
	if u.Scheme == "https" {
		dial = (&tls.Dialer{}).DialContext
	}
	conn, err := dial(ctx, "tcp", where)
	if err != nil {
		s.Problem("webhook", "look at --webhook-url, at that server and at firewalls", "%s: %s", where, short(err))
		return
	}
	conn.Close()
	s.OK("webhook", "%s is reachable; nothing was sent", where)
}

// Telegram asks the Bot API who the bot is.
func Telegram(ctx context.Context, r *Report, token, apiURL string) {
	s := r.Section(sectionNotifications)
	r.Hide(token)
	ctx, cancel := context.WithTimeout(ctx, 2*connectTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(apiURL, "/")+"/bot"+token+"/getMe", nil)
	if err != nil {
		s.Problem("telegram", "look at --telegram-token and --telegram-api-url", "they make no address")
		return
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Problem("telegram", "look at --telegram-api-url and at firewalls", "%s", short(err))
		return
	}
	defer response.Body.Close()
	var answer struct {
		OK          bool   `json:"ok"`
		Description string `json:"description"`
		Result      struct {
			Username string `json:"username"`
		} `json:"result"`
	}
	err = json.NewDecoder(http.MaxBytesReader(nil, response.Body, 1<<16)).Decode(&answer)
	switch {
	case err != nil:
		s.Problem("telegram", "look at --telegram-api-url", "what answers there is no Bot API: %s", response.Status)
	case !answer.OK:
		s.Problem("telegram", "look at --telegram-token; @BotFather has it", "the token is refused: %s", answer.Description)
	default:
		s.OK("telegram", "the bot is @%s", answer.Result.Username)
	}
}

// KeySet is where keys are fetched from, and how long that took.
func KeySet(s Section, address string, took time.Duration, err error) {
	where := address
	if u, e := url.Parse(address); e == nil {
		where = fmt.Sprintf("%s://%s%s", u.Scheme, u.Host, u.Path)
	}
	if err != nil {
		s.Problem("key set", "serve does not start without it: look at --jwks-url, and that this machine may reach it", "%s: %s", where, short(err))
		return
	}
	s.OK("key set", "%s, in %s", where, rounded(took))
}
