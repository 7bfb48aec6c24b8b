package engineio

// Message is one outgoing Engine.IO message: encoded once, immutable, shared by any number of
// sockets.
type Message struct{ frame []byte }

// NewMessage makes a text message. text must be valid UTF-8; it belongs to the message now.
func NewMessage(text []byte) *Message { return &Message{frame: text} }

// NewBinaryMessage makes a binary message. data belongs to the message now.
func NewBinaryMessage(data []byte) *Message { return &Message{frame: data} }

// NoCompress exempts the message from compression and returns it. To be called before the
// first Send.
func (m *Message) NoCompress() *Message { return m }

// Size returns the bytes that the message counts against a socket's outbound budget.
func (m *Message) Size() int { return len(m.frame) }
