package auth

import (
	"crypto/sha256"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"xabar/chat"
)

// verifiedTokens are remembered, some 300 bytes each: when all clients come back at once, their
// tokens have been checked before.
const verifiedTokens = 50_000

// verified is what a good token says. Only its times can make it a bad one later, as long as the
// keys do not change; whether it was revoked is asked each time.
type verified struct {
	subject            chat.UserRef
	name               string
	issued             time.Time // zero: it does not say, also below
	expires, notBefore time.Time
}

// holds says whether a token is still good.
func (v *verified) holds(now time.Time) bool {
	return (v.expires.IsZero() || now.Before(v.expires.Add(Leeway))) &&
		(v.notBefore.IsZero() || !now.Before(v.notBefore.Add(-Leeway)))
}

func verifiedOf(c *claims) verified {
	v := verified{subject: chat.UserRef(c.Subject), name: string(c.Name)}
	if c.IssuedAt != nil {
		v.issued = c.IssuedAt.Time
	}
	if c.ExpiresAt != nil {
		v.expires = c.ExpiresAt.Time
	}
	if c.NotBefore != nil {
		v.notBefore = c.NotBefore.Time
	}
	return v
}

// tokenCache knows tokens that were good by their SHA-256; it keeps none of them. Nil: it knows
// nothing.
type tokenCache struct {
	tokens *lru.Cache[[sha256.Size]byte, verified]
}

// newTokenCache is nil for keys that can change: a token is no better than its key.
func newTokenCache(keys *Keys) *tokenCache {
	if keys.remote != nil {
		return nil
	}
	tokens, err := lru.New[[sha256.Size]byte, verified](verifiedTokens)
	if err != nil {
		panic(err) // only a size below 1 fails
	}
	return &tokenCache{tokens}
}

// find answers for a token that is known and holds.
func (c *tokenCache) find(token string, now time.Time) (verified, bool) {
	if c == nil {
		return verified{}, false
	}
	v, ok := c.tokens.Get(sha256.Sum256([]byte(token)))
	return v, ok && v.holds(now)
}

func (c *tokenCache) add(token string, v verified) {
	if c != nil {
		c.tokens.Add(sha256.Sum256([]byte(token)), v)
	}
}
