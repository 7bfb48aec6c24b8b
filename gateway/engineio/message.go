package engineio

import (
	"encoding/base64"
	"sync"
	"sync/atomic"

	"github.com/gobwas/ws"
)

// Message is one outgoing Engine.IO message: encoded once, immutable, shared by any number of
// sockets.
//
// Its plain form is the WebSocket frame of protocol 4, whose payload is also the polling
// form of a text. The other forms are made when the first socket needs them, once.
type Message struct {
	frame  []byte // header and payload
	head   uint8  // length of the header
	binary bool
	plain  bool // never compressed
	other  atomic.Pointer[forms]
}

// forms of a message that not every socket needs, each made at most once.
type forms struct {
	mu       sync.Mutex
	v3       []byte // binary: frame of protocol 3, with a type byte
	base64   []byte // binary: text frame of protocol 4, 'b' and base64
	base64v3 []byte // binary: text frame of protocol 3, 'b4' and base64
	deflated []byte // permessage-deflate frame of the plain form; empty: not worth it
}

// wireForm says how a WebSocket connection wants its messages.
type wireForm uint8

const (
	formV3      wireForm = 1 << iota // protocol 3
	formBase64                       // binary as base64 in text
	formDeflate                      // permessage-deflate was negotiated
)

// NewMessage makes a text message. text must be valid UTF-8; it is copied.
func NewMessage(text []byte) *Message {
	m := &Message{}
	m.frame, m.head = appendFrame(nil, ws.OpText, 0, []byte{packetMessage}, text)
	return m
}

// NewBinaryMessage makes a binary message. data is copied.
func NewBinaryMessage(data []byte) *Message {
	m := &Message{binary: true}
	m.frame, m.head = appendFrame(nil, ws.OpBinary, 0, nil, data)
	return m
}

// packetOf makes a message of a packet without data, such as a ping.
func packetOf(kind byte, data string) *Message {
	m := &Message{plain: true}
	m.frame, m.head = appendFrame(nil, ws.OpText, 0, []byte{kind}, []byte(data))
	return m
}

// controlOf makes a WebSocket control frame, which only a WebSocket queue may hold.
func controlOf(op ws.OpCode, payload []byte) *Message {
	m := &Message{plain: true}
	m.frame, m.head = appendFrame(nil, op, 0, nil, payload)
	return m
}

// NoCompress exempts the message from compression and returns it. To be called before the
// first Send.
func (m *Message) NoCompress() *Message {
	m.plain = true
	return m
}

// messageOverhead is what a queued message costs beside its bytes: its place in the queue.
const messageOverhead = 8

// Size returns the bytes that the message counts against a socket's outbound budget.
func (m *Message) Size() int { return len(m.frame) + messageOverhead }

// Text is the text of a text message, as it was given. It must not be changed.
func (m *Message) Text() []byte { return m.frame[int(m.head)+1:] }

// payload is the plain form without its header: type and text, or the bare binary data.
func (m *Message) payload() []byte { return m.frame[m.head:] }

// wire returns the frame for a connection that wants form.
func (m *Message) wire(form wireForm, threshold int) []byte {
	if form == 0 {
		return m.frame
	}
	if m.binary && form&(formV3|formBase64) != 0 {
		return m.binaryForm(form)
	}
	if form&formDeflate == 0 || m.plain || len(m.frame) < threshold {
		return m.frame
	}
	return m.deflatedForm()
}

// base64Text returns the polling form of a binary message.
func (m *Message) base64Text(v3 bool) []byte {
	form := formBase64
	if v3 {
		form |= formV3
	}
	f := m.binaryForm(form)
	return f[frameHead(f):]
}

func (m *Message) binaryForm(form wireForm) []byte {
	o := m.forms()
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case form&formBase64 == 0:
		if o.v3 == nil {
			o.v3, _ = appendFrame(nil, ws.OpBinary, 0, []byte{packetMessage - '0'}, m.payload())
		}
		return o.v3
	case form&formV3 == 0:
		if o.base64 == nil {
			o.base64, _ = appendFrame(nil, ws.OpText, 0, []byte("b"), encodeBase64(m.payload()))
		}
		return o.base64
	default:
		if o.base64v3 == nil {
			o.base64v3, _ = appendFrame(nil, ws.OpText, 0, []byte("b4"), encodeBase64(m.payload()))
		}
		return o.base64v3
	}
}

func (m *Message) deflatedForm() []byte {
	o := m.forms()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.deflated == nil {
		o.deflated = m.frame
		if body := deflate(m.payload()); len(body) < len(m.payload()) {
			op := ws.OpText
			if m.binary {
				op = ws.OpBinary
			}
			o.deflated, _ = appendFrame(nil, op, rsv1, nil, body)
		}
	}
	return o.deflated
}

func (m *Message) forms() *forms {
	if o := m.other.Load(); o != nil {
		return o
	}
	m.other.CompareAndSwap(nil, &forms{})
	return m.other.Load()
}

func encodeBase64(data []byte) []byte {
	return base64.StdEncoding.AppendEncode(nil, data)
}
