// Package webpush is the notification channel to browsers whose page is closed: Web
// Push (RFC 8030), encrypted for the browser (RFC 8291, encrypt.go), in the name of
// this installation (VAPID, RFC 8292, vapid.go).
//
// Users' browsers name the push service, so everything that is called passes
// outbound's guard: https only, and no private address, unless Options allow it.
package webpush

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"xabar/chat"
	"xabar/gateway/notify/outbound"
	"xabar/gateway/notify/text"
)

const (
	// ttl is how long a push service keeps a notification for a browser that it can't
	// reach: long enough for a night, short enough not to be stale.
	ttl = 24 * time.Hour
	// urgency wakes a phone that sleeps: somebody is waiting for an answer.
	urgency = "high"
)

// Options of a Notifier.
type Options struct {
	Keys *Keys // required
	// Caller calls push services; required. Its PublicOnly should be the opposite of
	// AllowPrivate.
	Caller *outbound.Caller
	// AllowPrivate lets endpoints be http and private: for tests and closed networks.
	AllowPrivate bool
}

// Notifier implements chat.Notifier.
type Notifier struct {
	keys       *Keys
	caller     *outbound.Caller
	publicOnly bool
}

var _ chat.Notifier = (*Notifier)(nil)

// New makes a Notifier.
func New(o Options) *Notifier {
	return &Notifier{keys: o.Keys, caller: o.Caller, publicOnly: !o.AllowPrivate}
}

// Channel implements chat.Notifier.
func (*Notifier) Channel() string { return chat.ChannelWebPush }

// Notify implements chat.Notifier. The target is a Subscription. A push service
// that knows the subscription no more (404, 410) makes it Gone; one that wants a pause
// (429, or 503 with Retry-After) gets it; what it can't accept (400, 403, 413) is given
// up, everything else is tried again.
func (n *Notifier) Notify(ctx context.Context, notification chat.Notification, target json.RawMessage) (chat.Outcome, error) {
	request, err := n.request(ctx, notification, target)
	if err != nil {
		return chat.Outcome{}, errors.Join(chat.ErrRefused, err)
	}
	answer, err := n.caller.Do(ctx, request)
	if err != nil {
		return outbound.Failed(err)
	}
	return outcome(answer)
}

func (n *Notifier) request(ctx context.Context, notification chat.Notification, target json.RawMessage) (*http.Request, error) {
	var s Subscription
	if err := json.Unmarshal(target, &s); err != nil {
		return nil, errors.New("not a subscription")
	}
	if err := s.check(n.publicOnly); err != nil {
		return nil, err
	}
	message, err := newPayload(notification).encode()
	if err != nil {
		return nil, err
	}
	body, err := encrypt(message, s)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the endpoint can't be used")
	}
	authorization, err := n.keys.authorization(request.URL, time.Now())
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"Authorization": authorization, "Content-Encoding": "aes128gcm", "Content-Type": "application/octet-stream",
		"TTL": strconv.Itoa(int(ttl.Seconds())), "Urgency": urgency, "Topic": topic(notification.Tag), "User-Agent": "Xabar",
	} {
		request.Header.Set(name, value)
	}
	return request, nil
}

// topic has one notification replace another that still waits at the push service
// (RFC 8030, 5.4): at most 32 characters of base64url. The service learns no tag.
func topic(tag string) string {
	sum := sha256.Sum256([]byte(tag))
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}

func outcome(answer outbound.Answer) (chat.Outcome, error) {
	failed := fmt.Errorf("the push service answers %d", answer.Status)
	switch answer.Status {
	case http.StatusNotFound, http.StatusGone:
		return chat.Outcome{Gone: true}, nil
	case http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge:
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

// payload is what the service worker (web/public/sw.js) is given.
type payload struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Body  string `json:"body"`
	// Tag is the same for notifications that replace each other.
	Tag string `json:"tag"`
	// ConversationID is what a click opens; absent if there are several.
	ConversationID string `json:"conversation_id,omitempty"`
	LastSeq        int64  `json:"last_seq,omitempty"`
	Badge          int64  `json:"badge"`
	Language       string `json:"language,omitempty"`
}

func newPayload(n chat.Notification) payload {
	written := text.Of(n)
	p := payload{ID: n.ID, Title: written.Title, Body: written.Body, Tag: n.Tag, Badge: n.Badge, Language: n.Language}
	if len(n.Conversations) == 1 {
		p.ConversationID, p.LastSeq = n.Conversations[0].ConversationID.String(), n.Conversations[0].LastSeq
	}
	return p
}

// encode does not escape HTML: that makes six bytes of one, and a push message has few.
func (p payload) encode() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(p); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
