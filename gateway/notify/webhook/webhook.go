// Package webhook is the notification channel that calls a server of the operator's:
// one URL for all users, for everything that Xabar has no channel for (APNs, mail,
// SMS). docs/guides/webhooks.md describes the request for who receives it.
//
// Requests are signed as Standard Webhooks (standardwebhooks.com, 1.0) describes, so
// that receivers can use its libraries: signature.go.
package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"xabar/chat"
	"xabar/gateway/notify/outbound"
	"xabar/gateway/notify/text"
)

// Options of a Notifier.
type Options struct {
	URL    string           // required: http or https; a user and password in it are sent as Basic authentication
	Secret string           // required; see Sign
	Caller *outbound.Caller // required
	Now    func() time.Time // nil: time.Now
}

// Notifier implements chat.Notifier.
type Notifier struct {
	url    string
	secret []byte
	caller *outbound.Caller
	now    func() time.Time
}

var _ chat.Notifier = (*Notifier)(nil)

// New makes a Notifier. Errors: a URL or a secret that can't be used.
func New(o Options) (*Notifier, error) {
	if err := CheckURL(o.URL); err != nil {
		return nil, err
	}
	key, err := Key(o.Secret)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Notifier{url: o.URL, secret: key, caller: o.Caller, now: o.Now}, nil
}

// CheckURL says what is wrong with the URL of a webhook. Private addresses are right:
// the operator names it.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" {
		return errors.New("not a URL like https://example.org/hook") // what stands there may be secret
	}
	return nil
}

// Channel implements chat.Notifier.
func (*Notifier) Channel() string { return chat.ChannelWebhook }

// Notify implements chat.Notifier. The target is not looked at. Any 2xx is success. A
// receiver that asks for a pause (Retry-After with 429 or 503, 429 without) gets it;
// what it can't accept (400, 410, 413, 415, 422) is given up, everything else is tried
// again.
func (n *Notifier) Notify(ctx context.Context, notification chat.Notification, _ json.RawMessage) (chat.Outcome, error) {
	body, err := json.Marshal(newPayload(notification))
	if err != nil {
		return chat.Outcome{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url, bytes.NewReader(body))
	if err != nil {
		return chat.Outcome{}, errors.New("the webhook's URL can't be used")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Xabar")
	Sign(request.Header, n.secret, notification.ID, n.now(), body)
	answer, err := n.caller.Do(ctx, request)
	if err != nil {
		return outbound.Failed(err)
	}
	return outcome(answer)
}

func outcome(answer outbound.Answer) (chat.Outcome, error) {
	failed := fmt.Errorf("the webhook answers %d", answer.Status)
	switch answer.Status {
	case http.StatusBadRequest, http.StatusGone, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return chat.Outcome{}, errors.Join(chat.ErrRefused, failed)
	case http.StatusTooManyRequests:
		if answer.RetryAfter == 0 {
			answer.RetryAfter = outbound.DefaultRetryAfter
		}
		return chat.Outcome{RetryAfter: answer.RetryAfter}, nil
	case http.StatusServiceUnavailable:
		if answer.RetryAfter > 0 {
			return chat.Outcome{RetryAfter: answer.RetryAfter}, nil
		}
	}
	if answer.Status < 200 || answer.Status > 299 {
		return chat.Outcome{}, failed
	}
	return chat.Outcome{Sent: true}, nil
}

// payload is the body, as docs/guides/webhooks.md describes it.
type payload struct {
	ID            string         `json:"id"`
	Type          string         `json:"type"`
	User          payloadUser    `json:"user"`
	Language      string         `json:"language"`
	Title         string         `json:"title"`
	Body          string         `json:"body"`
	Text          string         `json:"text"`
	Tag           string         `json:"tag"`
	Badge         int64          `json:"badge"`
	Conversations []conversation `json:"conversations"`
}

type payloadUser struct {
	ID         chat.ID `json:"id"`
	ExternalID *string `json:"external_id,omitempty"`
	Name       string  `json:"name"`
}

type conversation struct {
	ID         chat.ID   `json:"id"`
	Kind       chat.Kind `json:"kind"`
	Title      string    `json:"title"`
	SenderName string    `json:"sender_name"`
	Count      int64     `json:"count"`
	Preview    *string   `json:"preview"` // null where the user wants none, or it is gone
	LastSeq    int64     `json:"last_seq"`
}

func newPayload(n chat.Notification) payload {
	written := text.Of(n)
	p := payload{
		ID: n.ID, Type: "notification", Language: n.Language,
		User:  payloadUser{n.User.ID, n.User.ExternalID, n.User.Name},
		Title: written.Title, Body: written.Body, Text: written.Line,
		Tag: n.Tag, Badge: n.Badge, Conversations: make([]conversation, len(n.Conversations)),
	}
	for i, c := range n.Conversations {
		p.Conversations[i] = conversation{
			ID: c.ConversationID, Kind: c.Kind, Title: c.Title, SenderName: c.SenderName, Count: c.Count, LastSeq: c.LastSeq,
		}
		if preview := text.Preview(c.Preview); preview != "" && !n.HideText {
			p.Conversations[i].Preview = &preview
		}
	}
	return p
}
