package auth_test

import (
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"xabar/chat"
)

// TestATokenThatWasGoodIsCheckedAgain: what is remembered of a token says nothing that time,
// another signature or a revocation can change.
func TestATokenThatWasGoodIsCheckedAgain(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := &clock{start}
	a := withSecret(t, &users{}, now)
	token := sign(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{
		"sub": "ada", "name": "Ada", "iat": start.Unix(), "nbf": start.Unix(), "exp": start.Add(time.Hour).Unix(),
	})
	for name, step := range map[string]struct {
		after time.Duration
		code  chat.Code
		ends  time.Duration
	}{
		"at first":          {0, "", time.Hour},
		"later":             {59 * time.Minute, "", time.Hour},
		"within the leeway": {time.Hour + 29*time.Second, "", time.Hour + 30*time.Second},
		"expired":           {time.Hour + 31*time.Second, chat.CodeTokenExpired, 0},
		"before its time":   {-31 * time.Second, chat.CodeUnauthenticated, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second time it may be remembered
				now.now = start
				if _, err := a.Authenticate(t.Context(), token); err != nil {
					t.Fatal(err)
				}
				now.now = start.Add(step.after)
				actor, err := a.Authenticate(t.Context(), token)
				wantCode(t, err, step.code)
				if err == nil && (!actor.ExpiresAt.Equal(start.Add(step.ends)) || !actor.IssuedAt.Equal(start) ||
					actor.User.Name != "Ada" || *actor.User.ExternalID != "ada") {
					t.Errorf("%+v", actor)
				}
			}
		})
	}

	now.now = start
	parts := strings.Split(token, ".")
	other := strings.Split(sign(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "bob", "exp": start.Add(time.Hour).Unix()}), ".")
	_, err := a.Authenticate(t.Context(), parts[0]+"."+parts[1]+"."+other[2])
	wantCode(t, err, chat.CodeUnauthenticated)
	_, err = a.Authenticate(t.Context(), parts[0]+"."+other[1]+"."+parts[2])
	wantCode(t, err, chat.CodeUnauthenticated)
}
