package socketio_test

import (
	"errors"
	"strings"
	"testing"

	"xabar/gateway/socketio"
)

// Malformed packets end at most the connection that sent them; each outcome is the one of
// Node's server 4.8.
func TestMalformedPackets(t *testing.T) {
	t.Parallel()
	malformed := make(chan error, 100)
	io, url := start(t, socketio.Options{
		MaxDepth: 64,
		Hooks:    socketio.Hooks{Malformed: func(err error) { malformed <- err }},
	})
	bystander, _ := join(t, url, "/")
	deep := `2["a",` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `]`
	closes := map[string][]string{
		"empty":                        {``},
		"unknown type":                 {`abc`},
		"type 7":                       {`7`},
		"event with an object":         {`2{}`},
		"event without name":           {`2[]`},
		"event name null":              {`2[null]`},
		"reserved event":               {`2["disconnect"]`},
		"trailing garbage":             {`2["a"] x`},
		"cut JSON":                     {`2["a",{"b":`},
		"id that is no number":         {`2abc["a"]`},
		"id beyond 2^53":               {`299999999999999999["a"]`},
		"second CONNECT":               {`0`},
		"CONNECT with an array":        {`0[]`},
		"CONNECT_ERROR from a client":  {`4{"message":"m"}`},
		"DISCONNECT with payload":      {`1{}`},
		"event before CONNECT":         {`2/other,["a"]`},
		"ack before CONNECT":           {`3/other,1[]`},
		"disconnect before CONNECT":    {`1/other,`},
		"attachments without dash":     {`51["a"]`},
		"attachments of another kind":  {`5x-["a"]`},
		"negative attachments":         {`5-1-["a"]`},
		"no attachments":               {`50-["a"]`},
		"eleven attachments":           {`511-["a"]`},
		"a million attachments":        {`51000000-["a"]`},
		"placeholder to nowhere":       {`51-["a",{"_placeholder":true,"num":1}]`, "b:x"},
		"placeholder with a text":      {`51-["a",{"_placeholder":true,"num":"0"}]`, "b:x"},
		"text instead of attachment":   {`51-["a",{"_placeholder":true,"num":0}]`, `2["b"]`},
		"binary that nobody announced": {"b:x"},
		"deep JSON":                    {deep},
		"5,000 arguments":              {`2["a"` + strings.Repeat(",1", 5000) + `]`},
		"namespace of 10 kB":           {`2/` + strings.Repeat("n", 10_000) + `,["a"]`},
	}
	for name, messages := range closes {
		c, _ := join(t, url, "/")
		for _, m := range messages {
			if data, binary := strings.CutPrefix(m, "b:"); binary {
				c.SendBinary([]byte(data))
			} else {
				c.Send(m)
			}
		}
		if rest := c.Rest(); len(rest) != 0 {
			t.Errorf("%s: got %q before the end", name, rest)
		}
		if err := recv(t, malformed); !errors.Is(err, socketio.ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", name, err)
		}
	}
	early := dial(t, url)
	early.Send(`2["a"]`)
	early.ExpectClose()
	recv(t, malformed)

	survives := map[string]string{
		"event without payload":           `2`,
		"ack id without an event":         `212`,
		"ack without payload":             `3`,
		"ack of an id nobody asked":       `312[]`,
		"ack without id":                  `3[1]`,
		"unknown event":                   `2["nobody knows it"]`,
		"placeholder in a text event":     `2["a",{"_placeholder":true,"num":9}]`,
		"event name of 900 kB":            `2["` + strings.Repeat("n", 900_000) + `"]`,
		"lone surrogate":                  `2["a","\ud800"]`,
		"an object of the same name 1000": `2["a",{` + strings.Repeat(`"k":1,`, 1000) + `"k":1}]`,
	}
	for name, m := range survives {
		t.Log(name)
		bystander.Send(m)
		bystander.Sync()
	}

	waiting, _ := join(t, url, "/") // an attachment that never comes
	waiting.Send(`52-["a",{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]`)
	waiting.SendBinary([]byte("x"))
	big, _ := join(t, url, "/") // a name of 10 MB is beyond the payload limit
	big.Send(`2["` + strings.Repeat("n", 10<<20) + `"]`)
	big.ExpectClose()
	bystander.Sync()
	waiting.Drop()
	eventually(t, "only the bystander is left", func() bool { return io.Len() == 1 })
	if len(malformed) != 0 {
		t.Errorf("one more: %v", recv(t, malformed))
	}
}

func TestErrorHandlerSeesMalformedPackets(t *testing.T) {
	t.Parallel()
	errs := make(chan error, 1)
	bounds := make(chan string, 1)
	io, url := start(t, socketio.Options{Hooks: socketio.Hooks{Bound: func(b string) { bounds <- b }}})
	io.OnConnection(func(s *socketio.Socket) { s.OnError(func(err error) { errs <- err }) })
	c, _ := join(t, url, "/")
	c.Send(`599-["a"]`)
	if err := recv(t, errs); !errors.Is(err, socketio.ErrTooManyAttachments) {
		t.Errorf("got %v, want ErrTooManyAttachments", err)
	}
	if b := recv(t, bounds); b != "MaxAttachments" {
		t.Errorf("bound %q", b)
	}
	c.ExpectClose()
}

// What a connection can make the server keep while the last attachment is missing is bounded.
func TestAttachmentsOfAPacketAreBoundedTogether(t *testing.T) {
	t.Parallel()
	bounds := make(chan string, 1)
	io, url := start(t, socketio.Options{MaxAttachmentBytes: 1000, Hooks: socketio.Hooks{Bound: func(b string) { bounds <- b }}})
	errs, sizes := make(chan error, 1), make(chan int, 2)
	io.OnConnection(func(s *socketio.Socket) { s.OnError(func(err error) { errs <- err }) })
	io.Handle("x", func(ev *socketio.Event) {
		first, _ := ev.Arg(0).Binary()
		second, _ := ev.Arg(1).Binary()
		sizes <- len(first) + len(second)
	})
	c, _ := join(t, url, "/")
	two := func(size int) {
		c.Send(`52-["x",{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]`)
		c.SendBinary(make([]byte, 500))
		c.SendBinary(make([]byte, size))
	}
	two(500)
	two(500) // each packet counts for itself
	for range 2 {
		if n := recv(t, sizes); n != 1000 {
			t.Errorf("%d bytes came", n)
		}
	}
	two(501)
	if err := recv(t, errs); !errors.Is(err, socketio.ErrAttachmentsTooLarge) {
		t.Errorf("got %v, want ErrAttachmentsTooLarge", err)
	}
	if b := recv(t, bounds); b != "MaxAttachmentBytes" {
		t.Errorf("bound %q", b)
	}
	c.ExpectClose()
}
