package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/time/rate"

	"xabar/chat"
)

// provider is an identity provider whose key set can be changed and broken.
type provider struct {
	*httptest.Server
	mu       sync.Mutex
	keys     []jwkset.JWKMarshal
	down     bool
	requests int
}

func newProvider(t *testing.T) *provider {
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.requests++
		if p.down {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		if err := json.NewEncoder(w).Encode(jwkset.JWKSMarshal{Keys: p.keys}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) add(t *testing.T, key any, meta jwkset.JWKMetadataOptions) {
	t.Helper()
	jwk, err := jwkset.NewJWKFromKey(key, jwkset.JWKOptions{Metadata: meta, Marshal: jwkset.JWKMarshalOptions{Private: true}})
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	p.keys = append(p.keys, jwk.Marshal())
	p.mu.Unlock()
}

func (p *provider) set(f func()) { p.mu.Lock(); f(); p.mu.Unlock() }

type anyUser struct{}

func (anyUser) EnsureUser(_ context.Context, ref chat.UserRef, _ string) (chat.User, error) {
	return chat.User{Name: string(ref)}, nil
}

func (p *provider) authenticator(t *testing.T, unknown *rate.Limiter) *Authenticator {
	t.Helper()
	keys := NewKeys()
	if err := keys.addJWKS(t.Context(), p.URL, slog.New(slog.DiscardHandler), unknown); err != nil {
		t.Fatal(err)
	}
	return New(keys, anyUser{}, Options{})
}

func ecKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signed(t *testing.T, method jwt.SigningMethod, key any, kid string) string {
	t.Helper()
	token := jwt.NewWithClaims(method, jwt.MapClaims{"sub": "ada", "exp": time.Now().Add(time.Hour).Unix()})
	if kid != "" {
		token.Header["kid"] = kid
	}
	s, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func codeFor(t *testing.T, a *Authenticator, token string) chat.Code {
	t.Helper()
	_, err := a.Authenticate(t.Context(), token)
	return chat.CodeOf(err)
}

func TestJWKS(t *testing.T) {
	first, other, shared := ecKey(t), ecKey(t), []byte("a symmetric key has no place in a key set")
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := newProvider(t)
	p.add(t, first.Public(), jwkset.JWKMetadataOptions{KID: "ec"})
	p.add(t, rsaKey.Public(), jwkset.JWKMetadataOptions{KID: "rsa", ALG: jwkset.AlgRS256, USE: jwkset.UseSig})
	p.add(t, other.Public(), jwkset.JWKMetadataOptions{KID: "enc", USE: jwkset.UseEnc})
	p.add(t, shared, jwkset.JWKMetadataOptions{KID: "oct"})
	a := p.authenticator(t, rate.NewLimiter(rate.Inf, 1))

	for name, tc := range map[string]struct {
		token string
		want  chat.Code
	}{
		"by its kid":                 {signed(t, jwt.SigningMethodES256, first, "ec"), ""},
		"RSA":                        {signed(t, jwt.SigningMethodRS256, rsaKey, "rsa"), ""},
		"without a kid":              {signed(t, jwt.SigningMethodES256, first, ""), ""},
		"another key's kid":          {signed(t, jwt.SigningMethodES256, first, "rsa"), chat.CodeUnauthenticated},
		"an unknown kid":             {signed(t, jwt.SigningMethodES256, first, "nobody"), chat.CodeUnauthenticated},
		"a key for encryption":       {signed(t, jwt.SigningMethodES256, other, "enc"), chat.CodeUnauthenticated},
		"the same, without a kid":    {signed(t, jwt.SigningMethodES256, other, ""), chat.CodeUnauthenticated},
		"an algorithm not the key's": {signed(t, jwt.SigningMethodPS256, rsaKey, "rsa"), chat.CodeUnauthenticated},
		"a symmetric key":            {signed(t, jwt.SigningMethodHS256, shared, "oct"), chat.CodeUnauthenticated},
	} {
		if got := codeFor(t, a, tc.token); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestARotatedKeyIsFetched(t *testing.T) {
	p := newProvider(t)
	p.add(t, ecKey(t).Public(), jwkset.JWKMetadataOptions{KID: "old"})
	a := p.authenticator(t, rate.NewLimiter(rate.Inf, 1))
	next := ecKey(t)
	token := signed(t, jwt.SigningMethodES256, next, "new")

	p.set(func() { p.down = true })
	if got := codeFor(t, a, token); got != chat.CodeUnavailable {
		t.Errorf("a key that cannot be asked for: %q", got)
	}
	p.set(func() { p.down = false })
	p.add(t, next.Public(), jwkset.JWKMetadataOptions{KID: "new"})
	if got := codeFor(t, a, token); got != "" {
		t.Errorf("the new key is refused: %q", got)
	}
}

func TestInventedKeyIDsDoNotReachTheProvider(t *testing.T) {
	p := newProvider(t)
	p.add(t, ecKey(t).Public(), jwkset.JWKMetadataOptions{KID: "ec"})
	a := p.authenticator(t, rate.NewLimiter(rate.Every(time.Hour), 1))
	token := signed(t, jwt.SigningMethodES256, ecKey(t), "invented")
	if got := codeFor(t, a, token); got != chat.CodeUnauthenticated {
		t.Errorf("the first: %q", got)
	}
	start := time.Now()
	for range 50 {
		if got := codeFor(t, a, token); got != chat.CodeUnavailable { // nobody can know yet
			t.Errorf("a later one: %q", got)
		}
	}
	if took := time.Since(start); took > jwksUnknownWait {
		t.Errorf("50 handshakes waited %v for a turn that is an hour away", took)
	}
	if p.requests != 2 {
		t.Errorf("the provider was asked %d times, want 2", p.requests)
	}
}

func TestUnusableKeySets(t *testing.T) {
	empty := newProvider(t)
	down := newProvider(t)
	down.down = true
	for name, address := range map[string]string{
		"no keys":    empty.URL,
		"an error":   down.URL,
		"a file":     "file:///etc/passwd",
		"no address": "keys",
	} {
		if err := NewKeys().AddJWKS(t.Context(), address, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestTokensOfAKeySetAreNotRemembered(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	p.add(t, ecKey(t), jwkset.JWKMetadataOptions{KID: "a"})
	if a := p.authenticator(t, rate.NewLimiter(rate.Inf, 1)); a.tokens != nil {
		t.Error("a key that the provider withdraws would live on")
	}
}
