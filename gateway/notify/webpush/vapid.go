package webpush

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	secretName = "vapid" // of the private key in the store
	// Tokens are valid for tokenLife (at most a day, RFC 8292, 2) and used for half of
	// it: push services ask not to make one for each message.
	tokenLife = 12 * time.Hour
	tokenUse  = tokenLife / 2
	// origins is how many push services' tokens are kept.
	origins = 1024
)

// Secrets keeps what all nodes share. chat.NotifyTargetStore is one.
type Secrets interface {
	// Secret is the secret of that name; fresh, if there was none.
	Secret(ctx context.Context, name string, fresh []byte) ([]byte, error)
}

// Keys sign for this installation (VAPID). Browsers subscribe with the public one:
// subscriptions die with a change of keys, so they are made once and kept.
type Keys struct {
	private *ecdsa.PrivateKey
	public  string
	subject string
	tokens  *lru.Cache[string, token]
}

type token struct {
	text string
	made time.Time
}

// LoadKeys takes the keys from the store, where it puts new ones the first time.
// subject is how a push service reaches the operator. Errors: the subject is not one
// (CheckSubject), or the store's.
func LoadKeys(ctx context.Context, store Secrets, subject string) (*Keys, error) {
	if err := CheckSubject(subject); err != nil {
		return nil, err
	}
	fresh, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	raw, err := fresh.Bytes()
	if err != nil {
		return nil, err
	}
	if raw, err = store.Secret(ctx, secretName, raw); err != nil {
		return nil, fmt.Errorf("the VAPID key: %w", err)
	}
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
	if err != nil {
		return nil, errors.New("the VAPID key in the database is not one")
	}
	public, err := private.PublicKey.Bytes()
	if err != nil {
		return nil, err
	}
	tokens, err := lru.New[string, token](origins)
	if err != nil {
		return nil, err
	}
	return &Keys{private: private, public: base64.RawURLEncoding.EncodeToString(public), subject: subject, tokens: tokens}, nil
}

// CheckSubject says what is wrong with a subject: RFC 8292 (2.1) wants a mailto: or
// https: URL.
func CheckSubject(subject string) error {
	u, err := url.Parse(subject)
	if err == nil && (u.Scheme == "https" && u.Hostname() != "" || u.Scheme == "mailto" && strings.Contains(u.Opaque, "@")) {
		return nil
	}
	return errors.New("not like mailto:admin@example.org or https://example.org/contact")
}

// Public is the key that a page subscribes with (applicationServerKey), in base64url.
func (k *Keys) Public() string { return k.public }

// authorization is the header for a push service (RFC 8292, 3).
func (k *Keys) authorization(endpoint *url.URL, now time.Time) (string, error) {
	audience := endpoint.Scheme + "://" + endpoint.Host
	kept, ok := k.tokens.Get(audience)
	if age := now.Sub(kept.made); !ok || age > tokenUse || age < -time.Minute {
		text, err := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
			"aud": audience, "exp": now.Add(tokenLife).Unix(), "sub": k.subject,
		}).SignedString(k.private)
		if err != nil {
			return "", err
		}
		kept = token{text, now}
		k.tokens.Add(audience, kept)
	}
	return "vapid t=" + kept.text + ", k=" + k.public, nil
}
