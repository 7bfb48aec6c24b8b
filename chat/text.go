package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what users write, in Unicode code points. The database checks the
// text's again.
const (
	MaxTextLength        = 2000
	MaxTitleLength       = 100
	MaxNameLength        = 100
	MaxClientMsgIDLength = 64
	MaxExternalIDLength  = 255
)

// CheckText applies the rules for a message's text: 1 to MaxTextLength code
// points, not of white space (Unicode White_Space) alone, without U+0000.
// Nothing is trimmed. It returns the text to store: invalid UTF-8 (a lone
// surrogate in JSON has become U+FFFD already) is replaced by U+FFFD.
//
// Errors: text_empty, text_too_long, invalid_text.
func CheckText(text string) (string, error) {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if strings.IndexByte(text, 0) >= 0 {
		return "", Errorf(CodeInvalidText, "")
	}
	// A rune is at most four bytes: most texts need no counting.
	if len(text) > MaxTextLength && utf8.RuneCountInString(text) > MaxTextLength {
		return "", Errorf(CodeTextTooLong, "")
	}
	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsSpace(r) }) < 0 {
		return "", Errorf(CodeTextEmpty, "")
	}
	return text, nil
}

// CheckLabel applies the rules for a short visible line (a title, a name): 1 to
// max code points after trimming white space, no control characters.
//
// Errors: invalid_argument with the field.
func CheckLabel(field, value string, max int) (string, error) {
	value = strings.TrimSpace(strings.ToValidUTF8(value, "\uFFFD"))
	if value == "" {
		return "", InvalidArgument(field, "%s must not be empty", field)
	}
	if utf8.RuneCountInString(value) > max {
		return "", InvalidArgument(field, "%s has at most %d characters", field, max)
	}
	if strings.ContainsFunc(value, unicode.IsControl) {
		return "", InvalidArgument(field, "%s must not contain control characters", field)
	}
	return value, nil
}

// CheckClientMsgID applies the rules for the id that a client gives a message: 1
// to MaxClientMsgIDLength characters, valid UTF-8 without U+0000.
//
// Errors: invalid_argument.
func CheckClientMsgID(id string) error {
	switch {
	case id == "":
		return InvalidArgument("clientMsgId", "clientMsgId is required")
	case !utf8.ValidString(id) || strings.IndexByte(id, 0) >= 0:
		return InvalidArgument("clientMsgId", "clientMsgId must be text without U+0000")
	case utf8.RuneCountInString(id) > MaxClientMsgIDLength:
		return InvalidArgument("clientMsgId", "clientMsgId has at most %d characters", MaxClientMsgIDLength)
	}
	return nil
}
