package events

import (
	"slices"
	"testing"
	"time"

	"xabar/chat"
	"xabar/gateway/socketio"
	"xabar/gateway/socketio/socketiotest"
)

// A client may leave while its question about presence is being answered. That is no
// failure of the server's, which would be logged and counted as one.
func TestWhoLeavesWhileAskingForPresenceIsNoError(t *testing.T) {
	io := socketio.NewServer(socketio.Options{})
	gone := make(chan *socketio.Socket, 1)
	io.OnConnection(func(s *socketio.Socket) { s.OnDisconnect(func(string) { gone <- s }) })
	page := socketiotest.Dial(t, socketiotest.Start(t, io), socketiotest.Options{})
	page.Connect("/", "")
	page.Close()
	c := &client{socket: <-gone}
	if err := c.watchPresence([]string{presenceRoom(chat.NewID())}); err != nil {
		t.Errorf("watching fails with %v", err)
	}
}

// CASES 34: keys pressed at these moments; typing leaves at 0 and 3400.
func TestTypingIsLetThroughOncePerInterval(t *testing.T) {
	var c client
	conversation, other := chat.NewID(), chat.NewID()
	start := time.Now()
	var let []int
	for _, ms := range []int{0, 120, 250, 900, 1100, 3400, 3500, 3650} {
		if c.mayType(typingKey{conversation: conversation}, start.Add(time.Duration(ms)*time.Millisecond)) {
			let = append(let, ms)
		}
	}
	if !slices.Equal(let, []int{0, 3400}) {
		t.Errorf("typing is let through at %v", let)
	}
	if !c.mayType(typingKey{conversation: other}, start.Add(3700*time.Millisecond)) {
		t.Error("another conversation is held back")
	}
	for range 10 * maxTyped {
		c.mayType(typingKey{peer: chat.NewID().String()}, start)
	}
	if len(c.typed) > maxTyped {
		t.Errorf("%d conversations are remembered", len(c.typed))
	}
}
