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

// Reachable connects to a server that a setting names by a URL, and sends it nothing.
func Reachable(ctx context.Context, s Section, name, setting, address string) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		s.Problem(name, "give "+setting+" as https://…", "the address cannot be read")
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
		s.Problem(name, "look at "+setting+", at that server and at firewalls", "%s: %s", where, short(err))
		return
	}
	conn.Close()
	s.OK(name, "%s is reachable; nothing was sent", where)
}

// Telegram asks the Bot API who the bot is.
func Telegram(ctx context.Context, s Section, token, apiURL string) {
	s.report.Hide(token)
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
