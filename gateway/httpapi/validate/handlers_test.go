package validate

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"xabar/chat"
	"xabar/gateway/engineio"
	"xabar/gateway/httpapi"
	"xabar/persistence"
)

// handlers are the public routes by themselves, on an embedded store.
type handlers struct {
	url        string
	closeStore func()
}

// nobodyHears is the other side of a service that nobody is connected to.
type nobodyHears struct{}

func (nobodyHears) Publish(context.Context, chat.Event) error         { return nil }
func (nobodyHears) Connect(context.Context, chat.ID, string) error    { return nil }
func (nobodyHears) Disconnect(context.Context, chat.ID, string) error { return nil }
func (nobodyHears) Watch(func(chat.PresenceState))                    {}
func (nobodyHears) Online(_ context.Context, users []chat.ID) ([]bool, error) {
	return make([]bool, len(users)), nil
}
func (nobodyHears) Sessions(context.Context, chat.ID) ([]chat.SocketSession, error) { return nil, nil }

// noTokens mints nothing: the store fails before.
type noTokens struct{}

func (noTokens) Mint(chat.UserRef, string, time.Duration) (string, time.Time, error) {
	return "", time.Time{}, nil
}

// startHandlers serves them until the test ends. The token "good" is one user's.
func startHandlers(t *testing.T, channels channels) handlers {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	store, err := persistence.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "xabar.db"),
		persistence.Options{Logger: quiet, Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	closeStore := sync.OnceFunc(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	door := engineio.NewServer(engineio.Options{Logger: quiet}, nil)
	user, err := store.EnsureUser(t.Context(), "ada", "Ada")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(httpapi.NewPublic(httpapi.Public{
		Service: chat.NewService(chat.ServiceConfig{Store: store, Broadcaster: nobodyHears{}, Presence: nobodyHears{}, Logger: quiet}),
		Authenticate: func(_ context.Context, token string) (chat.Actor, error) {
			if token != "good" {
				return chat.Actor{}, chat.Errorf(chat.CodeUnauthenticated, "")
			}
			return chat.Actor{User: user}, nil
		},
		Door: door, Sessions: nobodyHears{}, Logger: quiet, ServerKey: serverKey,
		Demo: &httpapi.Demo{Users: store, Minter: noTokens{}}, Push: channels, PushKey: "BKey", Telegram: channels,
	}))
	t.Cleanup(func() {
		server.Close()
		if err := door.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		closeStore()
	})
	return handlers{server.URL, closeStore}
}
