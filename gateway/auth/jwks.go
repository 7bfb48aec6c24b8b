package auth

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/time/rate"
)

// How the key set of an identity provider is kept fresh.
const (
	jwksRefresh = time.Hour        // in the background
	jwksTimeout = 10 * time.Second // of one request
	// An unknown `kid` asks the provider again, at most once in jwksUnknownEvery
	// for the whole node, so that invented ids cost the provider nothing; a
	// handshake waits at most jwksUnknownWait for its turn and the answer.
	jwksUnknownEvery = 10 * time.Second
	jwksUnknownWait  = 3 * time.Second
)

// errKeysUnreachable says that the provider could not be asked about a key: the
// token may be good, a later try finds out.
var errKeysUnreachable = errors.New("the key set cannot be refreshed")

// remoteKeys are the keys behind a JWKS URL.
type remoteKeys struct{ storage jwkset.Storage }

// AddJWKS accepts tokens that are signed with a key of the JSON Web Key Set
// (RFC 7517) at the http or https address: RS256, ES256 and EdDSA; symmetric keys in
// it are not used. It is fetched now, again every hour and when a token names a
// key that is not in it, until ctx ends. An address that gives no usable key now is
// an error: a server that can let nobody in should not start.
func (k *Keys) AddJWKS(ctx context.Context, address string, log *slog.Logger) error {
	return k.addJWKS(ctx, address, log, rate.NewLimiter(rate.Every(jwksUnknownEvery), 1))
}

func (k *Keys) addJWKS(ctx context.Context, address string, log *slog.Logger, unknown *rate.Limiter) error {
	if k.remote != nil {
		return errors.New("there is a key set already")
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return errors.New("the key set needs an http or https address")
	}
	fetched, err := jwkset.NewStorageFromHTTP(address, jwkset.HTTPClientStorageOptions{
		Client:          &http.Client{Timeout: jwksTimeout},
		Ctx:             ctx,
		HTTPTimeout:     jwksTimeout,
		RefreshInterval: jwksRefresh,
		RefreshErrorHandler: func(ctx context.Context, err error) {
			if failed, ok := ctx.Value(refreshFailed{}).(*bool); ok {
				*failed = true
			}
			log.Error("refresh the key set", "url", u.Redacted(), "error", err)
		},
	})
	if err != nil {
		return fmt.Errorf("fetch the key set: %w", err)
	}
	keys, err := fetched.KeyReadAll(ctx)
	if err != nil {
		return fmt.Errorf("read the key set: %w", err)
	}
	if !anyUsable(keys) {
		return errors.New("the key set holds no RSA, P-256 or Ed25519 key for signatures")
	}
	storage, err := jwkset.NewHTTPClient(jwkset.HTTPClientOptions{
		HTTPURLs:          map[string]jwkset.Storage{address: fetched},
		RateLimitWaitMax:  jwksUnknownWait,
		RefreshUnknownKID: unknown,
	})
	if err != nil {
		return fmt.Errorf("read the key set: %w", err)
	}
	k.remote = &remoteKeys{storage: storage}
	return nil
}

// refreshFailed is the context key under which a lookup hears (*bool) that the
// refresh it caused has failed.
type refreshFailed struct{}

func anyUsable(keys []jwkset.JWK) bool {
	for _, alg := range remoteAlgorithms {
		for _, key := range keys {
			if _, ok := verifies(key, alg); ok {
				return true
			}
		}
	}
	return false
}

// find is what the set has for the token: the key under its `kid`, or every
// fitting key where it names none. Errors: errKeysUnreachable, errUnknownKey.
func (r *remoteKeys) find(ctx context.Context, token *jwt.Token) ([]jwt.VerificationKey, error) {
	candidates, err := r.candidates(ctx, token.Header["kid"])
	if err != nil {
		return nil, err
	}
	var fitting []jwt.VerificationKey
	for _, candidate := range candidates {
		if key, ok := verifies(candidate, token.Method.Alg()); ok {
			fitting = append(fitting, key)
		}
	}
	if len(fitting) == 0 {
		return nil, errUnknownKey
	}
	return fitting, nil
}

func (r *remoteKeys) candidates(ctx context.Context, kid any) ([]jwkset.JWK, error) {
	id, named := kid.(string)
	if !named {
		all, err := r.storage.KeyReadAll(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errKeysUnreachable, err)
		}
		return all, nil
	}
	var failed bool
	key, err := r.storage.KeyRead(context.WithValue(ctx, refreshFailed{}, &failed), id)
	switch {
	case err == nil:
		return []jwkset.JWK{key}, nil
	case failed || !errors.Is(err, jwkset.ErrKeyNotFound): // the latter: not its turn to ask
		return nil, fmt.Errorf("%w: %w", errKeysUnreachable, err)
	default:
		return nil, fmt.Errorf("%w: %w", errUnknownKey, err)
	}
}

// verifies gives the public key if the JWK is meant for signatures of exactly
// this algorithm: what the set says of a key binds, and so does the key's type.
func verifies(jwk jwkset.JWK, alg string) (jwt.VerificationKey, bool) {
	said := jwk.Marshal()
	if said.USE != "" && said.USE != jwkset.UseSig {
		return nil, false
	}
	if said.ALG != "" && said.ALG.String() != alg {
		return nil, false
	}
	key := jwk.Key()
	if private, ok := key.(interface{ Public() crypto.PublicKey }); ok {
		key = private.Public()
	}
	fits, err := algorithmOf(key)
	return key, err == nil && fits == alg
}
