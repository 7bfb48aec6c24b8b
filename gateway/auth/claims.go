package auth

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/golang-jwt/jwt/v5"

	"xabar/chat"
)

// claims are those parts of a token that Xabar reads.
type claims struct {
	Subject   subject          `json:"sub"`
	Name      displayName      `json:"name"`
	ExpiresAt *jwt.NumericDate `json:"exp"`
	NotBefore *jwt.NumericDate `json:"nbf"`
	IssuedAt  *jwt.NumericDate `json:"iat"`
	Issuer    string           `json:"iss"`
	Audience  jwt.ClaimStrings `json:"aud"`
}

// Validate is called by the parser beside its own checks. Its error is one of the
// parser's, so that the code for the client is chosen in one place (verify).
func (c claims) Validate() error {
	if chat.UserRef(c.Subject).Check("sub") != nil {
		return jwt.ErrTokenInvalidSubject
	}
	return nil
}

func (c claims) GetExpirationTime() (*jwt.NumericDate, error) { return c.ExpiresAt, nil }
func (c claims) GetNotBefore() (*jwt.NumericDate, error)      { return c.NotBefore, nil }
func (c claims) GetIssuedAt() (*jwt.NumericDate, error)       { return nil, nil }
func (c claims) GetIssuer() (string, error)                   { return c.Issuer, nil }
func (c claims) GetSubject() (string, error)                  { return string(c.Subject), nil }
func (c claims) GetAudience() (jwt.ClaimStrings, error)       { return c.Audience, nil }

// subject is `sub`: a string, or an integer as its decimal text. A UUID is in its
// canonical spelling, so that one user has one entry in the cache.
type subject chat.UserRef

func (s *subject) UnmarshalJSON(b []byte) error {
	var ref chat.UserRef
	if ref.UnmarshalJSON(b) != nil {
		return jwt.ErrTokenInvalidSubject // for the reason see Validate
	}
	if id, ok := ref.ID(); ok {
		ref = chat.UserRef(id.String())
	}
	*s = subject(ref)
	return nil
}

// displayName is the `name` claim, made fit to show: one line of at most
// chat.MaxNameLength code points. Whatever is no text counts as absent: a
// provider's odd name is no reason to lock its user out.
type displayName string

func (n *displayName) UnmarshalJSON(b []byte) error {
	var value any
	if err := json.Unmarshal(b, &value); err != nil {
		return err
	}
	s, _ := value.(string)
	*n = displayName(CleanName(s))
	return nil
}

// CleanName makes a name fit to show: control characters become spaces, white
// space at the ends goes, and what is beyond chat.MaxNameLength code points is
// cut. It may leave nothing.
func CleanName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, name)
	name = strings.TrimSpace(name)
	if runes := []rune(name); len(runes) > chat.MaxNameLength {
		name = strings.TrimSpace(string(runes[:chat.MaxNameLength]))
	}
	return name
}
