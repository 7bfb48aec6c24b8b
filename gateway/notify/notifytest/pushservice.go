package notifytest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// PushMessage is a push message as the browser gets it, and what the push service was
// told beside.
type PushMessage struct {
	Payload              []byte
	TTL, Urgency, Topic  string
	Subject, PublicKey   string // of the sender (VAPID)
	PaddedTo, BodyLength int
}

// Browser holds the private half of a subscription. It reads messages as RFC 8291
// tells receivers to, from the sections of that RFC and of RFC 8188 alone.
type Browser struct {
	key  *ecdh.PrivateKey
	auth []byte
}

// NewBrowser makes one with keys of its own.
func NewBrowser() *Browser {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // there are no random numbers
	}
	auth := make([]byte, 16)
	_, _ = rand.Read(auth) // never fails
	return &Browser{key, auth}
}

// NewBrowserOf makes one with these keys, in base64url.
func NewBrowserOf(private, auth string) (*Browser, error) {
	raw, err := base64.RawURLEncoding.DecodeString(private)
	if err != nil {
		return nil, err
	}
	key, err := ecdh.P256().NewPrivateKey(raw)
	if err != nil {
		return nil, err
	}
	secret, err := base64.RawURLEncoding.DecodeString(auth)
	return &Browser{key, secret}, err
}

// P256dh is its public key, as PushSubscription writes it.
func (b *Browser) P256dh() string {
	return base64.RawURLEncoding.EncodeToString(b.key.PublicKey().Bytes())
}

// Auth is its authentication secret, as PushSubscription writes it.
func (b *Browser) Auth() string { return base64.RawURLEncoding.EncodeToString(b.auth) }

// Decrypt reads a body in the coding aes128gcm.
func (b *Browser) Decrypt(body []byte) (message []byte, padded int, err error) {
	if len(body) < 21 || len(body) < 21+int(body[20]) {
		return nil, 0, errors.New("no header")
	}
	salt, size, id := body[:16], binary.BigEndian.Uint32(body[16:20]), body[21:21+int(body[20])]
	record := body[21+len(id):]
	if len(record) > int(size) {
		return nil, 0, errors.New("more than one record")
	}
	sender, err := ecdh.P256().NewPublicKey(id)
	if err != nil {
		return nil, 0, err
	}
	shared, err := b.key.ECDH(sender)
	if err != nil {
		return nil, 0, err
	}
	// RFC 8291, 3.4, written with HMAC as there.
	prkKey := mac(b.auth, shared)
	ikm := mac(prkKey, []byte("WebPush: info\x00"), b.key.PublicKey().Bytes(), id, []byte{1})
	prk := mac(salt, ikm)
	cek := mac(prk, []byte("Content-Encoding: aes128gcm\x00"), []byte{1})[:16]
	nonce := mac(prk, []byte("Content-Encoding: nonce\x00"), []byte{1})[:12]
	block, err := aes.NewCipher(cek)
	if err != nil {
		return nil, 0, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, 0, err
	}
	plain, err := gcm.Open(nil, nonce, record, nil)
	if err != nil {
		return nil, 0, err
	}
	end := len(plain) - 1
	for end >= 0 && plain[end] == 0 {
		end--
	}
	if end < 0 || plain[end] != 2 {
		return nil, 0, errors.New("the last record has another delimiter")
	}
	return plain[:end], len(plain) - 1, nil
}

func mac(key []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range parts {
		h.Write(part)
	}
	return h.Sum(nil)
}

// PushService is a local push service for one browser: an http.Handler. A request that
// is not right is answered with 400 and kept in Errors.
type PushService struct {
	Far
	Browser *Browser

	mu       sync.Mutex // guards what follows
	messages []PushMessage
	errs     []error
}

// NewPushService makes a service with a browser.
func NewPushService() *PushService {
	return &PushService{Browser: NewBrowser(), Far: Far{Status: map[Behaviour]int{
		RefuseGone: 410, RefuseFlood: 429, RefuseThis: 400, Fail: 500,
	}}}
}

// Messages are those that the browser got.
func (p *PushService) Messages() []PushMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.messages)
}

// Errors says what was wrong with requests.
func (p *PushService) Errors() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.errs...)
}

// ServeHTTP implements http.Handler.
func (p *PushService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.Attempt(w, r) {
		return
	}
	message, err := p.read(r)
	p.mu.Lock()
	if err != nil {
		p.errs = append(p.errs, err)
	} else {
		p.messages = append(p.messages, message)
	}
	p.mu.Unlock()
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var shown struct{ Title, Body string }
	if err := json.Unmarshal(message.Payload, &shown); err == nil {
		p.Arrived(shown.Title + "\n" + shown.Body)
	}
	w.Header().Set("Location", "https://push.example/m/1")
	w.WriteHeader(http.StatusCreated)
}

func (p *PushService) read(r *http.Request) (m PushMessage, err error) {
	if r.Method != http.MethodPost || r.Header.Get("Content-Encoding") != "aes128gcm" {
		return m, fmt.Errorf("%s with %q", r.Method, r.Header.Get("Content-Encoding"))
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return m, err
	}
	if m.BodyLength = len(body); m.BodyLength > 4096 {
		return m, fmt.Errorf("%d bytes", m.BodyLength)
	}
	m.TTL, m.Urgency, m.Topic = r.Header.Get("TTL"), r.Header.Get("Urgency"), r.Header.Get("Topic")
	if m.Subject, m.PublicKey, err = checkVAPID(r); err != nil {
		return m, err
	}
	m.Payload, m.PaddedTo, err = p.Browser.Decrypt(body)
	return m, err
}

// checkVAPID is what RFC 8292 tells push services to look at.
func checkVAPID(r *http.Request) (subject, key string, err error) {
	parameters, ok := strings.CutPrefix(r.Header.Get("Authorization"), "vapid t=")
	text, key, found := strings.Cut(parameters, ", k=")
	raw, err := base64.RawURLEncoding.DecodeString(key)
	if !ok || !found || err != nil {
		return "", "", errors.New("no VAPID")
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), raw)
	if err != nil {
		return "", "", err
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	claims := jwt.MapClaims{}
	_, err = jwt.ParseWithClaims(text, claims, func(*jwt.Token) (any, error) { return public, nil },
		jwt.WithValidMethods([]string{"ES256"}), jwt.WithAudience(scheme+r.Host), jwt.WithExpirationRequired())
	if err != nil {
		return "", "", err
	}
	if expires, err := claims.GetExpirationTime(); err != nil || time.Until(expires.Time) > 24*time.Hour {
		return "", "", errors.New("the token lives longer than a day")
	}
	subject, err = claims.GetSubject()
	return subject, key, err
}
