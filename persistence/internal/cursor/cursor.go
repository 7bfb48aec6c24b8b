// Package cursor writes and reads the opaque cursors of keyset pages: where the
// last page ended, in a form that clients can't be tempted to build themselves.
// They don't expire.
package cursor

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"

	"xabar/chat"
)

// Kind says which list a cursor belongs to; one of another list is refused.
type Kind byte

// The lists.
const (
	Conversations Kind = iota + 1 // At: activity in ms
	Members                       // At: joined in ms
	Contacts                      // Name: the contact's name
	Receipts                      // ID alone
	Sync                          // ID alone
	Blocks                        // ID alone
	Sent                          // Name: the clientMsgId, or At: seq and ID: conversation
	Left                          // ID: conversation, Name: the user's 16 bytes; or ID: user alone
)

// Cursor is the last row's key.
type Cursor struct {
	At   int64
	ID   chat.ID
	Name string
}

// Encode makes the opaque form.
func Encode(kind Kind, c Cursor) string {
	b := make([]byte, 0, 64)
	b = append(b, byte(kind))
	b = binary.BigEndian.AppendUint64(b, uint64(c.At))
	b = append(b, c.ID[:]...)
	b = append(b, c.Name...)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

// Decode reads it. ok is false for "", the first page.
//
// Errors: invalid_argument with the field "cursor".
func Decode(kind Kind, s string) (c Cursor, ok bool, err error) {
	if s == "" {
		return c, false, nil
	}
	const fixed = 1 + 8 + 16
	b, decodeErr := base64.RawURLEncoding.DecodeString(s)
	if decodeErr != nil || len(b) < fixed+4 || Kind(b[0]) != kind {
		return c, false, refused()
	}
	body, sum := b[:len(b)-4], b[len(b)-4:]
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(sum) {
		return c, false, refused()
	}
	c.At = int64(binary.BigEndian.Uint64(body[1:9]))
	c.ID = chat.ID(body[9:fixed])
	c.Name = string(body[fixed:])
	return c, true, nil
}

func refused() error {
	return chat.InvalidArgument("cursor", "cursor is not one of this list's")
}
