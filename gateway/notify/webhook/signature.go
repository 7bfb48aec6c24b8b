package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of Standard Webhooks.
const (
	HeaderID        = "Webhook-Id"        // the notification's id: the same in every attempt
	HeaderTimestamp = "Webhook-Timestamp" // of this attempt, seconds since 1970
	HeaderSignature = "Webhook-Signature" // v1,BASE64 of HMAC-SHA256 over ID.TIMESTAMP.BODY
)

// ReplayWindow is how far from now a request's timestamp may be for a receiver.
const ReplayWindow = 5 * time.Minute

// MinSecret is the shortest secret that is accepted, in bytes.
const MinSecret = 16

const (
	secretPrefix = "whsec_"
	version      = "v1,"
)

// Key is the HMAC key that a secret stands for: after whsec_ it is base64, anything
// else is the key itself.
func Key(secret string) ([]byte, error) {
	key := []byte(secret)
	if encoded, ok := strings.CutPrefix(secret, secretPrefix); ok {
		var err error
		if key, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return nil, errors.New("what follows whsec_ is not base64")
		}
	}
	if len(key) < MinSecret {
		return nil, fmt.Errorf("the secret has %d bytes; it needs %d", len(key), MinSecret)
	}
	return key, nil
}

// Sign sets the three headers.
func Sign(header http.Header, key []byte, id string, at time.Time, body []byte) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	header.Set(HeaderID, id)
	header.Set(HeaderTimestamp, timestamp)
	header.Set(HeaderSignature, version+base64.StdEncoding.EncodeToString(signature(key, id, timestamp, body)))
}

func signature(key []byte, id, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// Verify is for receivers in Go: it says why a request is not to be believed, and nil
// if it is. Whoever must not act twice remembers the ids of the last ReplayWindow.
func Verify(header http.Header, key []byte, now time.Time, body []byte) error {
	id, timestamp := header.Get(HeaderID), header.Get(HeaderTimestamp)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return errors.New("no timestamp")
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > ReplayWindow || age < -ReplayWindow {
		return errors.New("the timestamp is too far from now")
	}
	want := signature(key, id, timestamp, body)
	// Several stand there while a secret is replaced.
	for one := range strings.FieldsSeq(header.Get(HeaderSignature)) {
		encoded, ok := strings.CutPrefix(one, version)
		got, err := base64.StdEncoding.DecodeString(encoded)
		if ok && err == nil && hmac.Equal(got, want) {
			return nil
		}
	}
	return errors.New("the signature is not ours")
}
