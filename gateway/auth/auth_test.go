package auth_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"xabar/chat"
	"xabar/gateway/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var secret = []byte("a secret of thirty-two bytes, at least")

// users is a store of users that counts how often it is asked.
type users struct {
	mu    sync.Mutex
	calls int
	err   error
}

func (u *users) EnsureUser(_ context.Context, ref chat.UserRef, name string) (chat.User, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls++
	if u.err != nil {
		return chat.User{}, u.err
	}
	if id, ok := ref.ID(); ok {
		return chat.User{ID: id, Name: name}, nil
	}
	external := string(ref)
	return chat.User{ID: uuid.NewSHA1(uuid.Nil, []byte(ref)), ExternalID: &external, Name: name}, nil
}

// clock is stepped by hand.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func withSecret(t *testing.T, store auth.Users, c chat.Clock) *auth.Authenticator {
	t.Helper()
	keys := auth.NewKeys()
	if err := keys.AddSecret(secret); err != nil {
		t.Fatal(err)
	}
	return auth.New(keys, store, auth.Options{Clock: c})
}

func sign(t *testing.T, method jwt.SigningMethod, key any, body jwt.MapClaims, header ...string) string {
	t.Helper()
	token := jwt.NewWithClaims(method, body)
	for i := 0; i < len(header); i += 2 {
		token.Header[header[i]] = header[i+1]
	}
	signed, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func body(sub any) jwt.MapClaims {
	return jwt.MapClaims{"sub": sub, "exp": time.Now().Add(time.Hour).Unix()}
}

func wantCode(t *testing.T, err error, want chat.Code) {
	t.Helper()
	if got := chat.CodeOf(err); got != want {
		t.Fatalf("code %q (%v), want %q", got, err, want)
	}
}

func TestSubjectNamesTheUser(t *testing.T) {
	id := uuid.New()
	for name, tc := range map[string]struct {
		sub      any
		external string
	}{
		"a UUID is the id":              {id.String(), ""},
		"also in capitals":              {strings.ToUpper(id.String()), ""},
		"another string is external":    {"ada", "ada"},
		"an integer is its text":        {42, "42"},
		"so is a negative one":          {-7, "-7"},
		"a UUID in braces is external":  {"{" + id.String() + "}", "{" + id.String() + "}"},
		"255 characters are the most":   {strings.Repeat("ä", 255), strings.Repeat("ä", 255)},
		"digits in quotes are the same": {"42", "42"},
	} {
		t.Run(name, func(t *testing.T) {
			actor, err := withSecret(t, &users{}, nil).
				Authenticate(t.Context(), sign(t, jwt.SigningMethodHS256, secret, body(tc.sub)))
			if err != nil {
				t.Fatal(err)
			}
			if tc.external == "" && actor.User.ID != id {
				t.Fatalf("user %+v, want id %s", actor.User, id)
			}
			if tc.external != "" && (actor.User.ExternalID == nil || *actor.User.ExternalID != tc.external) {
				t.Fatalf("user %+v, want external id %q", actor.User, tc.external)
			}
		})
	}
}

func TestUnusableSubjects(t *testing.T) {
	for name, sub := range map[string]any{
		"none":      nil,
		"empty":     "",
		"too long":  strings.Repeat("a", 256),
		"fraction":  1.5,
		"boolean":   true,
		"an object": map[string]any{"id": 1},
		"with NUL":  "a\x00b",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := withSecret(t, &users{}, nil).
				Authenticate(t.Context(), sign(t, jwt.SigningMethodHS256, secret, body(sub)))
			wantCode(t, err, chat.CodeUnauthenticated)
		})
	}
	noSubject := sign(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"exp": time.Now().Add(time.Hour).Unix()})
	_, err := withSecret(t, &users{}, nil).Authenticate(t.Context(), noSubject)
	wantCode(t, err, chat.CodeUnauthenticated)
}

func TestNameClaimIsMadeFitToShow(t *testing.T) {
	for name, tc := range map[string]struct {
		claim any
		want  string
	}{
		"plain":          {"Ada", "Ada"},
		"absent":         {nil, ""},
		"not text":       {7, ""},
		"control":        {"Ada\r\nLovelace\x00", "Ada  Lovelace"},
		"too long":       {strings.Repeat("é", 150), strings.Repeat("é", 100)},
		"white space":    {" \t ", ""},
		"markup is text": {"<b>Ada</b>", "<b>Ada</b>"},
	} {
		t.Run(name, func(t *testing.T) {
			claims := body("ada")
			if tc.claim != nil {
				claims["name"] = tc.claim
			}
			actor, err := withSecret(t, &users{}, nil).
				Authenticate(t.Context(), sign(t, jwt.SigningMethodHS256, secret, claims))
			if err != nil {
				t.Fatal(err)
			}
			if actor.User.Name != tc.want {
				t.Fatalf("name %q, want %q", actor.User.Name, tc.want)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	for name, tc := range map[string]struct {
		claims jwt.MapClaims
		code   chat.Code
		ends   time.Duration // from now
	}{
		"good":                      {jwt.MapClaims{"exp": at(time.Minute)}, "", time.Minute},
		"expired within the leeway": {jwt.MapClaims{"exp": at(-29 * time.Second)}, "", time.Second},
		"expired beyond it":         {jwt.MapClaims{"exp": at(-31 * time.Second)}, chat.CodeTokenExpired, 0},
		"without exp":               {jwt.MapClaims{}, chat.CodeUnauthenticated, 0},
		"exp is text":               {jwt.MapClaims{"exp": "tomorrow"}, chat.CodeUnauthenticated, 0},
		"not yet, within leeway":    {jwt.MapClaims{"exp": at(time.Minute), "nbf": at(29 * time.Second)}, "", time.Minute},
		"not yet":                   {jwt.MapClaims{"exp": at(time.Minute), "nbf": at(31 * time.Second)}, chat.CodeUnauthenticated, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tc.claims["sub"] = "ada"
			actor, err := withSecret(t, &users{}, &clock{now}).
				Authenticate(t.Context(), sign(t, jwt.SigningMethodHS256, secret, tc.claims))
			wantCode(t, err, tc.code)
			if err == nil && !actor.ExpiresAt.Equal(now.Add(tc.ends)) {
				t.Fatalf("ends %v after now, want %v", actor.ExpiresAt.Sub(now), tc.ends)
			}
		})
	}
}

func TestAForgedTokenThatIsExpiredIsUnauthenticated(t *testing.T) {
	// token_expired would tell a stranger that everything else was right.
	forged := sign(t, jwt.SigningMethodHS256, []byte("another secret"), jwt.MapClaims{"sub": "ada", "exp": 1})
	_, err := withSecret(t, &users{}, nil).Authenticate(t.Context(), forged)
	wantCode(t, err, chat.CodeUnauthenticated)
}

func TestRefusedTokens(t *testing.T) {
	good := sign(t, jwt.SigningMethodHS256, secret, body("ada"))
	parts := strings.Split(good, ".")
	none := sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, body("ada"))
	for name, token := range map[string]string{
		"nothing":              "",
		"not a token":          "hello",
		"two parts":            parts[0] + "." + parts[1],
		"no signature":         parts[0] + "." + parts[1] + ".",
		"none":                 none,
		"None":                 base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"None","typ":"JWT"}`)) + "." + parts[1] + ".",
		"another hash":         sign(t, jwt.SigningMethodHS512, secret, body("ada")),
		"another secret":       sign(t, jwt.SigningMethodHS256, []byte("x"), body("ada")),
		"another body":         parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"bob","exp":9999999999}`)) + "." + parts[2],
		"longer than is taken": strings.Repeat("a", 17<<10),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := withSecret(t, &users{}, nil).Authenticate(t.Context(), token)
			wantCode(t, err, chat.CodeUnauthenticated)
			if token != "" && strings.Contains(err.Error(), token) {
				t.Fatal("the error quotes the token")
			}
		})
	}
}

func publicPEM(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func TestPublicKeys(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	edPublic, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pems := map[string][]byte{
		"RS256": publicPEM(t, &rsaKey.PublicKey),
		"ES256": publicPEM(t, &ecKey.PublicKey),
		"EdDSA": publicPEM(t, edPublic),
	}
	tokens := map[string]string{
		"RS256": sign(t, jwt.SigningMethodRS256, rsaKey, body("ada")),
		"RS384": sign(t, jwt.SigningMethodRS384, rsaKey, body("ada")),
		"PS256": sign(t, jwt.SigningMethodPS256, rsaKey, body("ada")),
		"ES256": sign(t, jwt.SigningMethodES256, ecKey, body("ada")),
		"EdDSA": sign(t, jwt.SigningMethodEdDSA, edKey, body("ada")),
		"HS256": sign(t, jwt.SigningMethodHS256, secret, body("ada")),
		// Algorithm confusion: the public key, which everybody has, as a secret.
		"HS256 with the RSA PEM":   sign(t, jwt.SigningMethodHS256, pems["RS256"], body("ada")),
		"HS256 with the EC PEM":    sign(t, jwt.SigningMethodHS256, pems["ES256"], body("ada")),
		"HS256 with the EdDSA key": sign(t, jwt.SigningMethodHS256, []byte(edPublic), body("ada")),
	}
	for configured, text := range pems {
		keys := auth.NewKeys()
		if err := keys.AddPublicKeys(text); err != nil {
			t.Fatal(err)
		}
		a := auth.New(keys, &users{}, auth.Options{})
		for kind, token := range tokens {
			_, err := a.Authenticate(t.Context(), token)
			if kind == configured && err != nil {
				t.Errorf("key %s refuses its own token: %v", configured, err)
			}
			if kind != configured && chat.CodeOf(err) != chat.CodeUnauthenticated {
				t.Errorf("key %s and token %s: %v", configured, kind, err)
			}
		}
	}

	all := auth.NewKeys()
	if err := errors.Join(
		all.AddSecret(secret),
		all.AddPublicKeys([]byte(strings.Join([]string{
			string(pems["RS256"]), string(pems["ES256"]), string(pems["EdDSA"])}, "\n"))),
	); err != nil {
		t.Fatal(err)
	}
	a := auth.New(all, &users{}, auth.Options{})
	for kind, token := range tokens {
		_, err := a.Authenticate(t.Context(), token)
		switch kind {
		case "RS256", "ES256", "EdDSA", "HS256":
			if err != nil {
				t.Errorf("all keys together refuse %s: %v", kind, err)
			}
		default:
			wantCode(t, err, chat.CodeUnauthenticated)
		}
	}
}

func TestUnusableKeys(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(p384)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"nothing":       nil,
		"no PEM":        []byte("hello"),
		"a small RSA":   publicPEM(t, &small.PublicKey),
		"another curve": publicPEM(t, &p384.PublicKey),
		"a private key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		"broken":        pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")}),
	} {
		if err := auth.NewKeys().AddPublicKeys(text); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if auth.NewKeys().AddSecret([]byte(" ")) == nil {
		t.Error("a blank secret is accepted")
	}
}

func TestStormOfReconnectionsAsksTheStoreOnce(t *testing.T) {
	store, now := &users{}, &clock{time.Now()}
	a := withSecret(t, store, now)
	connect := func(name string, want int) {
		t.Helper()
		claims := jwt.MapClaims{"sub": "ada", "name": name, "exp": now.now.Add(time.Hour).Unix()}
		for range 20 {
			if _, err := a.Authenticate(t.Context(), sign(t, jwt.SigningMethodHS256, secret, claims)); err != nil {
				t.Fatal(err)
			}
		}
		if store.calls != want {
			t.Fatalf("the store was asked %d times, want %d", store.calls, want)
		}
	}
	connect("Ada", 1)
	connect("Ada Lovelace", 2) // a changed name reaches the store at once
	now.now = now.now.Add(11 * time.Minute)
	connect("Ada Lovelace", 3)
}

func TestAFailingStoreIsNotRemembered(t *testing.T) {
	store := &users{err: chat.Errorf(chat.CodeUnavailable, "")}
	a := withSecret(t, store, nil)
	token := sign(t, jwt.SigningMethodHS256, secret, body("ada"))
	_, err := a.Authenticate(t.Context(), token)
	wantCode(t, err, chat.CodeUnavailable)
	store.err = nil
	if _, err := a.Authenticate(t.Context(), token); err != nil {
		t.Fatal(err)
	}
}

func TestMint(t *testing.T) {
	token, expires, err := auth.NewMinter(secret, nil).Mint("ada", "Ada", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	actor, err := withSecret(t, &users{}, nil).Authenticate(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	if *actor.User.ExternalID != "ada" || actor.User.Name != "Ada" || !actor.ExpiresAt.Equal(expires) {
		t.Fatalf("actor %+v", actor)
	}
	if _, _, err := auth.NewMinter(secret, nil).Mint("", "", time.Hour); err == nil {
		t.Error("a token for nobody")
	}
	if _, _, err := auth.NewMinter(secret, nil).Mint("ada", "", 0); err == nil {
		t.Error("a token that is over when it is made")
	}
}

func TestIssuerAudienceAndExpiry(t *testing.T) {
	t.Parallel()
	keys := auth.NewKeys()
	if err := keys.AddSecret(secret); err != nil {
		t.Fatal(err)
	}
	strict := auth.New(keys, &users{}, auth.Options{Issuer: "https://id.example.org", Audience: "chat"})
	lax := auth.New(keys, &users{}, auth.Options{AllowNoExpiry: true})
	soon := time.Now().Add(time.Hour).Unix()
	for name, test := range map[string]struct {
		claims      jwt.MapClaims
		strict, lax bool
	}{
		"right":             {jwt.MapClaims{"exp": soon, "iss": "https://id.example.org", "aud": "chat"}, true, true},
		"one of audiences":  {jwt.MapClaims{"exp": soon, "iss": "https://id.example.org", "aud": []string{"shop", "chat"}}, true, true},
		"another audience":  {jwt.MapClaims{"exp": soon, "iss": "https://id.example.org", "aud": "shop"}, false, true},
		"no audience":       {jwt.MapClaims{"exp": soon, "iss": "https://id.example.org"}, false, true},
		"another issuer":    {jwt.MapClaims{"exp": soon, "iss": "https://evil.example", "aud": "chat"}, false, true},
		"no issuer":         {jwt.MapClaims{"exp": soon, "aud": "chat"}, false, true},
		"no expiry":         {jwt.MapClaims{"iss": "https://id.example.org", "aud": "chat"}, false, true},
		"an expiry of text": {jwt.MapClaims{"exp": "never", "iss": "https://id.example.org", "aud": "chat"}, false, false},
	} {
		test.claims["sub"] = "ann"
		token := sign(t, jwt.SigningMethodHS256, secret, test.claims)
		for a, want := range map[*auth.Authenticator]bool{strict: test.strict, lax: test.lax} {
			who, err := a.Authenticate(t.Context(), token)
			if (err == nil) != want || err != nil && chat.CodeOf(err) != chat.CodeUnauthenticated {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
			if _, expires := test.claims["exp"]; err == nil && who.ExpiresAt.IsZero() == expires {
				t.Errorf("%s: expires %v", name, who.ExpiresAt)
			}
		}
	}
	token, _, err := auth.NewMinter(secret, nil).For("https://id.example.org", "chat").Mint("ann", "Ann", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	who, err := strict.Authenticate(t.Context(), token)
	if err != nil || time.Since(who.IssuedAt) > time.Minute {
		t.Errorf("%+v, %v", who, err)
	}
}

// revocations is the part of a store that says who was revoked.
type revocations struct {
	chat.AdminStore
	all []chat.Revocation
}

func (r *revocations) Revocations(context.Context, time.Time) ([]chat.Revocation, error) {
	return r.all, nil
}

func TestRevokedTokens(t *testing.T) {
	t.Parallel()
	keys := auth.NewKeys()
	if err := keys.AddSecret(secret); err != nil {
		t.Fatal(err)
	}
	store, store2 := &users{}, &revocations{}
	revoked := chat.NewRevocations(store2, nil, nil)
	a := auth.New(keys, store, auth.Options{Revocations: revoked, AllowNoExpiry: true})
	at := time.Now().Truncate(time.Second)
	issued := func(when any) string {
		claims := jwt.MapClaims{"sub": "ann"}
		if when != nil {
			claims["iat"] = when.(time.Time).Unix()
		}
		return sign(t, jwt.SigningMethodHS256, secret, claims)
	}
	old, newer, unknown := issued(at.Add(-time.Minute)), issued(at.Add(time.Second)), issued(nil)
	who, err := a.Authenticate(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	store2.all = []chat.Revocation{{UserID: who.User.ID, At: at.Add(time.Hour), TokensBefore: at}}
	if err := revoked.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for token, good := range map[string]bool{old: false, issued(at): false, unknown: false, newer: true} {
		if _, err := a.Authenticate(t.Context(), token); (err == nil) != good || err != nil && chat.CodeOf(err) != chat.CodeUnauthenticated {
			t.Errorf("%v, want %v", err, good)
		}
	}
	if before := store.calls; before < 2 {
		t.Error("a user who may have been erased comes from memory")
	}
	if _, err := a.Authenticate(t.Context(), sign(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": chat.SystemUserID.String()})); err == nil {
		t.Error("a token speaks for the system")
	}
}
