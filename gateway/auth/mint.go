package auth

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"xabar/chat"
)

// Minter signs tokens with a secret: for demo logins, `xabar token` and tests.
// In production the tokens come from the application that owns the users.
type Minter struct {
	secret           []byte
	clock            chat.Clock
	issuer, audience string
}

// NewMinter makes a Minter; clock nil is the machine's.
func NewMinter(secret []byte, clock chat.Clock) *Minter {
	if clock == nil {
		clock = chat.SystemClock{}
	}
	return &Minter{secret: secret, clock: clock}
}

// For makes the tokens say who made them, and for whom; "" leaves a claim out.
func (m *Minter) For(issuer, audience string) *Minter {
	other := *m
	other.issuer, other.audience = issuer, audience
	return &other
}

// Mint signs a token (HS256) for sub that is good for ttl. name "" leaves the
// claim out. Errors: a sub that can name no user, a ttl that is not positive.
func (m *Minter) Mint(sub chat.UserRef, name string, ttl time.Duration) (token string, expires time.Time, err error) {
	if err := sub.Check("sub"); err != nil {
		return "", time.Time{}, err
	}
	if ttl <= 0 {
		return "", time.Time{}, errors.New("a token must be good for some time")
	}
	now := m.clock.Now()
	expires = now.Add(ttl).Truncate(time.Second) // what `exp` can say
	body := jwt.MapClaims{"sub": string(sub), "iat": now.Unix(), "exp": expires.Unix()}
	for claim, value := range map[string]string{"name": name, "iss": m.issuer, "aud": m.audience} {
		if value != "" {
			body[claim] = value
		}
	}
	token, err = jwt.NewWithClaims(jwt.SigningMethodHS256, body).SignedString(m.secret)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("sign the token: %w", err)
	}
	return token, expires, nil
}
