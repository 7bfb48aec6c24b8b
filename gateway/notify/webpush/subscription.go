package webpush

import (
	"context"
	"crypto/ecdh"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"xabar/chat"
	"xabar/gateway/notify/outbound"
)

const authSize = 16 // bytes (RFC 8291, 3.2)

// Subscription is a browser's, as it is kept as a target.
type Subscription struct {
	Endpoint string `json:"endpoint"`
	P256dh   []byte `json:"p256dh"` // an uncompressed point of P-256
	Auth     []byte `json:"auth"`
}

func (s Subscription) check(publicOnly bool) error {
	if err := outbound.CheckEndpoint(s.Endpoint, publicOnly); err != nil {
		return err
	}
	if _, err := ecdh.P256().NewPublicKey(s.P256dh); err != nil {
		return errors.New("p256dh is not a key")
	}
	if len(s.Auth) != authSize {
		return errors.New("auth has not 16 bytes")
	}
	return nil
}

// Subscriptions keeps users' browsers.
type Subscriptions struct {
	store      chat.NotifyTargetStore
	publicOnly bool
}

// NewSubscriptions keeps them in store. allowPrivate as in Options.
func NewSubscriptions(store chat.NotifyTargetStore, allowPrivate bool) *Subscriptions {
	return &Subscriptions{store, !allowPrivate}
}

// Add keeps a browser for the user, and takes it from whoever had it before: it can be
// signed in as one user only. The keys are in base64url, as browsers write them. Errors:
// invalid_argument.
func (s *Subscriptions) Add(ctx context.Context, user chat.ID, endpoint, p256dh, auth string) error {
	subscription := Subscription{Endpoint: endpoint}
	if outbound.CheckEndpoint(endpoint, s.publicOnly) != nil {
		return chat.InvalidArgument("endpoint", "endpoint must be an https URL of a public push service")
	}
	var err error
	if subscription.P256dh, err = decodeKey(p256dh); err == nil {
		_, err = ecdh.P256().NewPublicKey(subscription.P256dh)
	}
	if err != nil {
		return chat.InvalidArgument("keys.p256dh", "keys.p256dh must be a point of P-256, in base64url")
	}
	if subscription.Auth, err = decodeKey(auth); err != nil || len(subscription.Auth) != authSize {
		return chat.InvalidArgument("keys.auth", "keys.auth must be 16 bytes, in base64url")
	}
	target, err := json.Marshal(subscription)
	if err != nil {
		return err
	}
	_, err = s.store.AddNotifyTarget(ctx, user, chat.ChannelWebPush, endpoint, target)
	return err
}

// Remove forgets one of the user's browsers; absent is no error.
func (s *Subscriptions) Remove(ctx context.Context, user chat.ID, endpoint string) error {
	if endpoint == "" { // it would be all of them
		return nil
	}
	return s.store.RemoveNotifyTarget(ctx, user, chat.ChannelWebPush, endpoint)
}

// decodeKey reads base64 in the alphabet of URLs, with or without padding.
func decodeKey(s string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
}
