package webpush

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// Sizes of a message (RFC 8188, 2; RFC 8291, 4): one record, in a body that every push
// service takes.
const (
	maxBody    = 4096
	recordSize = 4096
	saltSize   = 16
	keySize    = 65 // of an uncompressed point of P-256
	headerSize = saltSize + 4 + 1 + keySize
	tagSize    = 16
	maxMessage = maxBody - headerSize - tagSize - 1
	// padStep hides how long a message is: lengths are filled up to a multiple of it.
	padStep = 256
)

// encrypt makes the body for a browser, with a key pair and a salt of its own.
func encrypt(message []byte, s Subscription) ([]byte, error) {
	if len(message) > maxMessage {
		return nil, errors.New("the message is longer than a push service takes")
	}
	ephemeral, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	salt := make([]byte, saltSize)
	if _, err := rand.Read(salt); err != nil {
		return nil, err
	}
	padded := min((len(message)/padStep+1)*padStep, maxMessage)
	return seal(message, padded-len(message), s, ephemeral, salt)
}

// seal is RFC 8291, 3.4, with the names of that section.
func seal(message []byte, padding int, s Subscription, as *ecdh.PrivateKey, salt []byte) ([]byte, error) {
	ua, err := ecdh.P256().NewPublicKey(s.P256dh)
	if err != nil {
		return nil, errors.New("p256dh is not a key")
	}
	secret, err := as.ECDH(ua)
	if err != nil {
		return nil, err
	}
	info := "WebPush: info\x00" + string(ua.Bytes()) + string(as.PublicKey().Bytes())
	ikm, err := hkdf.Key(sha256.New, secret, s.Auth, info, 32)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	body := make([]byte, 0, headerSize+len(message)+1+padding+tagSize)
	body = append(body, salt...)
	body = binary.BigEndian.AppendUint32(body, recordSize)
	body = append(body, keySize)
	body = append(body, as.PublicKey().Bytes()...)
	record := make([]byte, len(message)+1+padding)
	copy(record, message)
	record[len(message)] = 2 // the last record's delimiter
	return gcm.Seal(body, nonce, record, nil), nil
}
