package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// The algorithms that Xabar knows. Every key is good for exactly one of them.
const (
	algHS256 = "HS256"
	algRS256 = "RS256"
	algES256 = "ES256"
	algEdDSA = "EdDSA"
)

// remoteAlgorithms are those that a key set can bring: a secret is never in one.
var remoteAlgorithms = []string{algRS256, algES256, algEdDSA}

// minRSABits is the smallest RSA key that is taken: RFC 7518, section 3.3.
const minRSABits = 2048

// StrongSecretBytes is the length from which a secret is as hard to guess as
// HS256 can be (RFC 7518, section 3.2). Shorter ones work, and deserve a warning:
// whoever holds one token can try secrets at leisure.
const StrongSecretBytes = 32

// errUnknownKey says that no configured key can have signed the token.
var errUnknownKey = errors.New("no configured key fits the token")

// Keys are what tokens may be signed with. The zero value is not ready; see
// NewKeys. Add everything before the first use: Keys are read without a lock.
type Keys struct {
	byAlg  map[string][]jwt.VerificationKey
	remote *remoteKeys
}

// NewKeys makes an empty set, which accepts nothing.
func NewKeys() *Keys { return &Keys{byAlg: make(map[string][]jwt.VerificationKey)} }

// AddSecret accepts HS256 tokens that are signed with the secret. A blank secret
// is an error.
func (k *Keys) AddSecret(secret []byte) error {
	if strings.TrimSpace(string(secret)) == "" {
		return errors.New("the secret is empty")
	}
	k.byAlg[algHS256] = append(k.byAlg[algHS256], slices.Clone(secret))
	return nil
}

// AddPublicKeys accepts tokens that are signed with the private half of any key
// in the PEM text: RSA of 2048 bits or more (RS256), P-256 (ES256) or Ed25519
// (EdDSA), each as PUBLIC KEY, RSA PUBLIC KEY or CERTIFICATE. Several stand one
// after the other while keys are rotated. Text without a usable key is an error,
// and so is a private key, which has no business on a server that only verifies.
func (k *Keys) AddPublicKeys(text []byte) error {
	found := 0
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
		alg, key, err := parsePublicKey(block)
		if err != nil {
			return err
		}
		k.byAlg[alg] = append(k.byAlg[alg], key)
		found++
	}
	if found == 0 {
		return errors.New("there is no PEM block with a public key")
	}
	return nil
}

func parsePublicKey(block *pem.Block) (alg string, key jwt.VerificationKey, err error) {
	var parsed any
	switch block.Type {
	case "PUBLIC KEY":
		parsed, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		parsed, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		var certificate *x509.Certificate
		if certificate, err = x509.ParseCertificate(block.Bytes); err == nil {
			parsed = certificate.PublicKey
		}
	default:
		return "", nil, fmt.Errorf("a PEM block of type %q is no public key", block.Type)
	}
	if err != nil {
		return "", nil, fmt.Errorf("a PEM block of type %q cannot be read: %w", block.Type, err)
	}
	if alg, err = algorithmOf(parsed); err != nil {
		return "", nil, err
	}
	return alg, parsed, nil
}

// algorithmOf is the one algorithm that a public key is good for here.
func algorithmOf(key any) (string, error) {
	switch key := key.(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() < minRSABits {
			return "", fmt.Errorf("an RSA key needs at least %d bits, this one has %d", minRSABits, key.N.BitLen())
		}
		return algRS256, nil
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() {
			return "", fmt.Errorf("an elliptic key must be on P-256, this one is on %s", key.Params().Name)
		}
		return algES256, nil
	case ed25519.PublicKey:
		return algEdDSA, nil
	default:
		return "", fmt.Errorf("a key of type %T is not supported; use RSA, P-256 or Ed25519", key)
	}
}

// Empty says that no key was added.
func (k *Keys) Empty() bool { return len(k.byAlg) == 0 && k.remote == nil }

// algorithms are those that any key is good for. Whatever else a token claims is
// refused before a key is looked at.
func (k *Keys) algorithms() []string {
	var algs []string
	for alg := range k.byAlg {
		algs = append(algs, alg)
	}
	if k.remote != nil {
		for _, alg := range remoteAlgorithms {
			if !slices.Contains(algs, alg) {
				algs = append(algs, alg)
			}
		}
	}
	return algs
}

// keyfunc finds the keys that may have signed the token: the configured ones of
// its algorithm, and what the JWKS has under its `kid`.
func (k *Keys) keyfunc(ctx context.Context) jwt.Keyfunc {
	return func(token *jwt.Token) (any, error) {
		alg := token.Method.Alg()
		set := jwt.VerificationKeySet{Keys: slices.Clone(k.byAlg[alg])}
		if k.remote != nil && alg != algHS256 {
			remote, err := k.remote.find(ctx, token)
			if err != nil && len(set.Keys) == 0 {
				return nil, err
			}
			set.Keys = append(set.Keys, remote...)
		}
		if len(set.Keys) == 0 {
			return nil, errUnknownKey
		}
		return set, nil
	}
}
