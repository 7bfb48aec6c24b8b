package webpush

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"xabar/chat"
	"xabar/gateway/notify/notifytest"
)

// recorder keeps the last call that reached the store.
type recorder struct {
	chat.NotifyTargetStore
	user             chat.ID
	channel, address string
	target           json.RawMessage
	calls            int
}

func (r *recorder) AddNotifyTarget(_ context.Context, user chat.ID, channel, address string, target json.RawMessage) (chat.NotifyTarget, error) {
	r.user, r.channel, r.address, r.target = user, channel, address, target
	r.calls++
	return chat.NotifyTarget{}, nil
}

func (r *recorder) RemoveNotifyTarget(_ context.Context, user chat.ID, channel, address string) error {
	r.user, r.channel, r.address, r.target = user, channel, address, nil
	r.calls++
	return nil
}

func TestSubscribing(t *testing.T) {
	t.Parallel()
	const endpoint = "https://push.example.org/1"
	store, user, b := &recorder{}, chat.NewID(), notifytest.NewBrowser()
	s := NewSubscriptions(store, false)
	for _, padding := range []string{"", "="} {
		if err := s.Add(t.Context(), user, endpoint, b.P256dh()+padding, b.Auth()+padding+padding); err != nil {
			t.Fatal(err)
		}
	}
	if store.user != user || store.channel != "web-push" || store.address != endpoint || string(store.target) != string(target(t, endpoint, b)) {
		t.Errorf("%+v", store)
	}
	if err := s.Remove(t.Context(), user, endpoint); err != nil || store.address != endpoint || store.target != nil {
		t.Errorf("%+v, %v", store, err)
	}
	before := store.calls
	if err := s.Remove(t.Context(), user, ""); err != nil || store.calls != before {
		t.Errorf("nothing takes all away: %v", err)
	}
}

func TestWhatCannotBeSubscribed(t *testing.T) {
	t.Parallel()
	b := notifytest.NewBrowser()
	const good = "https://push.example.org/1"
	for field, all := range map[string][][3]string{
		"endpoint": {
			{"", b.P256dh(), b.Auth()}, {"http://push.example.org/1", b.P256dh(), b.Auth()}, {"https://127.0.0.1/", b.P256dh(), b.Auth()},
			{"https://[::1]:80/", b.P256dh(), b.Auth()}, {"https://169.254.169.254/", b.P256dh(), b.Auth()},
		},
		"keys.p256dh": {{good, "", b.Auth()}, {good, "BNc", b.Auth()}, {good, b.P256dh()[1:], b.Auth()}, {good, "!", b.Auth()}},
		"keys.auth":   {{good, b.P256dh(), ""}, {good, b.P256dh(), "dGVzdA"}, {good, b.P256dh(), b.P256dh()}},
	} {
		for _, c := range all {
			store := &recorder{}
			err := NewSubscriptions(store, false).Add(t.Context(), chat.NewID(), c[0], c[1], c[2])
			var known *chat.Error
			if !errors.As(err, &known) || known.Code != chat.CodeInvalidArgument || known.Field != field || store.calls != 0 {
				t.Errorf("%q: %v", c, err)
			}
		}
	}
	private := "http://127.0.0.1:8080/1"
	if err := NewSubscriptions(&recorder{}, true).Add(t.Context(), chat.NewID(), private, b.P256dh(), b.Auth()); err != nil {
		t.Errorf("allowed: %v", err)
	}
}
