package auth

import (
	"context"
	"errors"
	"time"

	"github.com/golang-jwt/jwt/v5"
	lru "github.com/hashicorp/golang-lru/v2"

	"xabar/chat"
)

// Leeway is how far the clocks of the issuer and of this node may be apart.
const Leeway = 30 * time.Second

// maxTokenLength bounds the work that a stranger can cause with one handshake.
const maxTokenLength = 16 << 10

// A user that was looked up is remembered, so that a storm of reconnections does
// not become a storm of queries.
const (
	userCacheSize = 50_000 // users, some 200 bytes each
	userCacheTTL  = 10 * time.Minute
)

// Users makes and finds users; chat.Store is one.
type Users interface {
	EnsureUser(ctx context.Context, ref chat.UserRef, name string) (chat.User, error)
}

// Options of an Authenticator. The zero value is ready.
type Options struct {
	Clock chat.Clock // nil: the machine's
	// Revocations says whose tokens are refused; nil: nobody's.
	Revocations *chat.Revocations
	// Issuer and Audience are what `iss` must be and `aud` must hold; "": anything.
	Issuer, Audience string
	// AllowNoExpiry takes tokens without `exp`; they are good until they are revoked.
	AllowNoExpiry bool
}

// Authenticator decides who a token speaks for. It is safe for concurrent use.
type Authenticator struct {
	keys   *Keys
	users  Users
	clock  chat.Clock
	parser *jwt.Parser
	cache  *lru.Cache[userKey, cachedUser]
	tokens *tokenCache

	revocations *chat.Revocations
}

// userKey is what a token says of its user: another name is another entry, so
// that a changed claim reaches the store at once.
type userKey struct {
	ref  chat.UserRef
	name string
}

type cachedUser struct {
	user chat.User
	at   time.Time // when it was looked up
}

// New makes an Authenticator. The keys must not change any more.
func New(keys *Keys, users Users, opts Options) *Authenticator {
	if opts.Clock == nil {
		opts.Clock = chat.SystemClock{}
	}
	cache, err := lru.New[userKey, cachedUser](userCacheSize)
	if err != nil {
		panic(err) // only a size below 1 fails
	}
	return &Authenticator{
		keys:        keys,
		users:       users,
		clock:       opts.Clock,
		revocations: opts.Revocations,
		cache:       cache,
		tokens:      newTokenCache(keys),
		parser:      jwt.NewParser(opts.parserOptions(keys)...),
	}
}

func (o *Options) parserOptions(keys *Keys) []jwt.ParserOption {
	options := []jwt.ParserOption{
		jwt.WithValidMethods(keys.algorithms()), jwt.WithLeeway(Leeway), jwt.WithTimeFunc(o.Clock.Now),
	}
	if !o.AllowNoExpiry {
		options = append(options, jwt.WithExpirationRequired())
	}
	if o.Issuer != "" {
		options = append(options, jwt.WithIssuer(o.Issuer))
	}
	if o.Audience != "" {
		options = append(options, jwt.WithAudience(o.Audience))
	}
	return options
}

// Authenticate checks the token and returns its user, made if this is the first
// token that names it. The Actor's ExpiresAt is the token's `exp`; for a token that is
// only accepted by Leeway any more, the moment when that ends.
//
// Errors: unauthenticated, token_expired; unavailable when a key set cannot be
// asked; what the store's EnsureUser fails with.
func (a *Authenticator) Authenticate(ctx context.Context, token string) (chat.Actor, error) {
	said, err := a.verify(ctx, token)
	if err != nil {
		return chat.Actor{}, err
	}
	if id, ok := said.subject.ID(); ok && id == chat.SystemUserID {
		return chat.Actor{}, chat.Errorf(chat.CodeUnauthenticated, "")
	}
	if a.revocations != nil {
		// Before the user is made: who was erased does not come back by an old token.
		if err := a.revocations.CheckSubject(said.subject, said.issued); err != nil {
			return chat.Actor{}, err
		}
	}
	user, err := a.user(ctx, userKey{ref: said.subject, name: said.name})
	if err != nil {
		return chat.Actor{}, err
	}
	who := chat.Actor{User: user, IssuedAt: said.issued, ExpiresAt: said.expires}
	if !who.ExpiresAt.IsZero() && a.clock.Now().After(who.ExpiresAt) {
		who.ExpiresAt = who.ExpiresAt.Add(Leeway)
	}
	if a.revocations != nil {
		if err := a.revocations.Check(who); err != nil {
			return chat.Actor{}, err
		}
	}
	return who, nil
}

func (a *Authenticator) verify(ctx context.Context, token string) (verified, error) {
	if token == "" {
		return verified{}, chat.Errorf(chat.CodeUnauthenticated, "")
	}
	if len(token) > maxTokenLength {
		return verified{}, chat.Errorf(chat.CodeUnauthenticated, "the token is longer than %d bytes", maxTokenLength)
	}
	if known, ok := a.tokens.find(token, a.clock.Now()); ok {
		return known, nil
	}
	c := new(claims)
	_, err := a.parser.ParseWithClaims(token, c, a.keys.keyfunc(ctx))
	switch {
	case errors.Is(err, errKeysUnreachable):
		return verified{}, chat.Wrap(chat.CodeUnavailable, err)
	case errors.Is(err, jwt.ErrTokenExpired):
		return verified{}, chat.Wrap(chat.CodeTokenExpired, err)
	case err != nil:
		return verified{}, chat.Wrap(chat.CodeUnauthenticated, err)
	}
	good := verifiedOf(c)
	a.tokens.add(token, good)
	return good, nil
}

// staleSince says whether the user was revoked, and maybe erased, after it was
// looked up.
func (a *Authenticator) staleSince(hit cachedUser) bool {
	return a.revocations != nil && !a.revocations.Of(hit.user.ID).At.Before(hit.at)
}

// user is the store's user of the key, from the cache while that is fresh.
func (a *Authenticator) user(ctx context.Context, key userKey) (chat.User, error) {
	now := a.clock.Now()
	if hit, ok := a.cache.Get(key); ok && now.Before(hit.at.Add(userCacheTTL)) && !a.staleSince(hit) {
		return hit.user, nil
	}
	user, err := a.users.EnsureUser(ctx, key.ref, key.name)
	if err != nil {
		return chat.User{}, err
	}
	a.cache.Add(key, cachedUser{user: user, at: now})
	return user, nil
}
