package chat

import (
	"strconv"
	"unicode/utf8"
)

// A message is encoded once and then written to every socket, so its encoder is
// by hand: no reflection, one growing buffer.

// AppendJSON appends the message's wire form, the same bytes that the struct's
// tags describe.
func (m *Message) AppendJSON(b []byte) []byte {
	b = append(b, `{"id":"`...)
	b = appendID(b, m.ID)
	b = append(b, `","conversationId":"`...)
	b = appendID(b, m.ConversationID)
	b = append(b, `","seq":`...)
	b = strconv.AppendInt(b, m.Seq, 10)
	b = append(b, `,"version":`...)
	b = strconv.AppendInt(b, m.Version, 10)
	b = append(b, `,"senderId":"`...)
	b = appendID(b, m.SenderID)
	b = append(b, `","clientMsgId":`...)
	b = AppendJSONString(b, m.ClientMsgID)
	b = append(b, `,"text":`...)
	b = AppendJSONString(b, m.Text)
	if m.ReplyToSeq != nil {
		b = append(b, `,"replyToSeq":`...)
		b = strconv.AppendInt(b, *m.ReplyToSeq, 10)
	}
	b = append(b, `,"createdAt":`...)
	b = m.CreatedAt.AppendJSON(b)
	if m.EditedAt != nil {
		b = append(b, `,"editedAt":`...)
		b = m.EditedAt.AppendJSON(b)
	}
	if m.DeletedAt != nil {
		b = append(b, `,"deletedAt":`...)
		b = m.DeletedAt.AppendJSON(b)
	}
	return append(b, '}')
}

// MarshalJSON is AppendJSON for encoding/json.
func (m *Message) MarshalJSON() ([]byte, error) {
	return m.AppendJSON(make([]byte, 0, 320+len(m.Text))), nil
}

// AppendJSON appends what clients are told of it.
func (e *PositionMoved) AppendJSON(b []byte) []byte {
	b = append(b, `{"conversationId":"`...)
	b = appendID(b, e.ConversationID)
	b = append(b, `","userId":"`...)
	b = appendID(b, e.UserID)
	b = append(b, `","seq":`...)
	b = strconv.AppendInt(b, e.Seq, 10)
	b = append(b, `,"at":`...)
	b = e.At.AppendJSON(b)
	return append(b, '}')
}

func appendID(b []byte, id ID) []byte {
	const digits = "0123456789abcdef"
	for i, x := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			b = append(b, '-')
		}
		b = append(b, digits[x>>4], digits[x&15])
	}
	return b
}

// AppendJSONString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD. U+2028 and U+2029 are escaped, so that the result is also a JavaScript
// literal of any age.
func AppendJSONString(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != '\u2028' && r != '\u2029' && (r != utf8.RuneError || size > 1) {
				i += size
				continue
			}
			b = append(b, s[start:i]...)
			if r == utf8.RuneError {
				b = append(b, "\uFFFD"...)
			} else {
				b = append(b, `\u202`...)
				b = append(b, digits[r&15])
			}
			i += size
			start = i
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			b = append(b, `\u00`...)
			b = append(b, digits[c>>4], digits[c&15])
		}
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}
