package engineio

import (
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestPollingEcho(t *testing.T) {
	f := newFixture(t, Options{}, echo)
	p := f.openPolling()
	p.post("4hello\x1ebAQIDBA==\x1e4€").want(t, 200, "ok")
	p.get().want(t, 200, "4hello\x1ebAQIDBA==\x1e4€")
	poll := f.goRequest("GET", p.query, "")
	p.waitPoll()
	a := p.post("4later")
	a.want(t, 200, "ok")
	if a.header.Get("Content-Type") != "text/html" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers: %v", a.header)
	}
	take(t, poll).want(t, 200, "4later")
}

func TestPollingInvalidUTF8BecomesReplacements(t *testing.T) {
	f := newFixture(t, Options{}, nil)
	p := f.openPolling()
	p.post("4a\xffb").want(t, 200, "ok")
	f.session().wantMessage(t, "a\uFFFDb", false)
}

func TestOverlappingGets(t *testing.T) {
	f := newFixture(t, Options{}, nil)
	p := f.openPolling()
	poll := f.goRequest("GET", p.query, "")
	p.waitPoll()
	p.get().want(t, 400, "")
	take(t, poll).want(t, 200, "1")
	if e := f.session().wantEnd(t, ReasonTransportError); e.err != errPollOverlap {
		t.Errorf("error %v", e.err)
	}
	p.get().want(t, 400, `{"code":1,"message":"Session ID unknown"}`)
}

// slowPost starts a POST whose body does not come.
func (p *poller) slowPost(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.f.http.Listener.Addr().String())
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = fmt.Fprintf(conn, "POST /engine.io/?%s HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n4half", p.query)
	must(t, err)
	s := p.f.server.Socket(p.sid)
	eventually(t, "a POST that is read", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.polling.abort != nil
	})
	return conn
}

func readAll(t *testing.T, conn net.Conn) string {
	t.Helper()
	b, err := io.ReadAll(conn)
	must(t, err)
	return string(b)
}

func TestOverlappingPosts(t *testing.T) {
	f := newFixture(t, Options{}, nil)
	p := f.openPolling()
	first := p.slowPost(t)
	p.post("4second").want(t, 400, "")
	s := f.session()
	if e := s.wantEnd(t, ReasonTransportError); e.err != errPostOverlap {
		t.Errorf("error %v", e.err)
	}
	if got := readAll(t, first); !strings.HasPrefix(got, "HTTP/1.1 4") {
		t.Errorf("the first POST got %q", got)
	}
	if len(s.messages) != 0 {
		t.Error("a message of an overlapping POST came through")
	}
}

func TestGetAndPostTogether(t *testing.T) {
	f := newFixture(t, Options{}, nil)
	p := f.openPolling()
	s := f.session()
	for i := range 5 {
		poll := f.goRequest("GET", p.query, "")
		p.waitPoll()
		p.post("4up").want(t, 200, "ok")
		s.wantMessage(t, "up", false)
		s.send(t, fmt.Sprint("down", i))
		take(t, poll).want(t, 200, fmt.Sprint("4down", i))
	}
}

func TestPollingCloses(t *testing.T) {
	for _, c := range []struct {
		name, body string
		header     []string
		status     int
		reason     Reason
		poll       string
	}{
		{"close packet", "4a\x1e1\x1e4b", nil, 200, ReasonTransportClose, "6"},
		{"garbage", "4a\x1eabc\x1e4b", nil, 400, ReasonParseError, "1"},
		{"empty", "", nil, 400, ReasonParseError, "1"},
		{"ping of a client", "4a\x1e2", nil, 400, ReasonTransportError, "1"},
		{"binary body", "4a", []string{"Content-Type", "application/octet-stream"}, 400, ReasonTransportError, "1"},
		{"too many packets", strings.Repeat("6\x1e", 10) + "6", nil, 400, ReasonParseError, "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, Options{MaxPackets: 10}, nil)
			p := f.openPolling()
			poll := f.goRequest("GET", p.query, "")
			p.waitPoll()
			if a := f.request("POST", p.query, c.body, c.header...); a.status != c.status {
				t.Errorf("POST: %d %q", a.status, a.body)
			}
			take(t, poll).want(t, 200, c.poll)
			s := f.session()
			s.wantEnd(t, c.reason)
			for len(s.messages) > 0 {
				if m := <-s.messages; m.data != "a" {
					t.Errorf("message %q after the end", m.data)
				}
			}
		})
	}
}

// Upgrade, noop and open packets mean nothing here, as in Node.
func TestPollingIgnores(t *testing.T) {
	f := newFixture(t, Options{}, nil)
	p := f.openPolling()
	p.post("5\x1e6\x1e0\x1e4x").want(t, 200, "ok")
	f.session().wantMessage(t, "x", false)
}

// A close packet waits a moment for the GET that was sent with it on another connection.
func TestCloseWithGetBehindIt(t *testing.T) {
	f := newFixture(t, Options{}, nil)
	p := f.openPolling()
	post := f.goRequest("POST", p.query, "1")
	s := f.server.Socket(p.sid)
	eventually(t, "the close packet", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.polling.arrived != nil
	})
	p.get().want(t, 200, "6")
	take(t, post).want(t, 200, "ok")
	f.session().wantEnd(t, ReasonTransportClose)
}

func TestPollingBodyTooLarge(t *testing.T) {
	f := newFixture(t, Options{MaxPayload: 100}, nil)
	p := f.openPolling()
	p.post("4"+strings.Repeat("x", 99)).want(t, 200, "ok")
	if a := p.post("4" + strings.Repeat("x", 100)); a.status != 413 {
		t.Fatalf("%d %q", a.status, a.body)
	}
	p.post("4after").want(t, 200, "ok") // as in Node, the session goes on
	s := f.session()
	take(t, s.messages)
	s.wantMessage(t, "after", false)
}

func TestPollingClientGone(t *testing.T) {
	t.Run("GET", func(t *testing.T) {
		f := newFixture(t, Options{}, nil)
		p := f.openPolling()
		conn, err := net.Dial("tcp", f.http.Listener.Addr().String())
		must(t, err)
		_, err = fmt.Fprintf(conn, "GET /engine.io/?%s HTTP/1.1\r\nHost: x\r\n\r\n", p.query)
		must(t, err)
		p.waitPoll()
		must(t, conn.Close())
		if e := f.session().wantEnd(t, ReasonTransportError); e.err != errPollGone {
			t.Errorf("error %v", e.err)
		}
	})
	t.Run("POST", func(t *testing.T) {
		f := newFixture(t, Options{}, nil)
		p := f.openPolling()
		must(t, p.slowPost(t).Close())
		f.session().wantEnd(t, ReasonTransportError)
	})
	t.Run("slow body", func(t *testing.T) {
		f := newFixture(t, Options{BodyTimeout: 50 * time.Millisecond}, nil)
		p := f.openPolling()
		conn := p.slowPost(t)
		if e := f.session().wantEnd(t, ReasonTransportError); e.err != errBodyTimeout {
			t.Errorf("error %v", e.err)
		}
		if got := readAll(t, conn); !strings.HasPrefix(got, "HTTP/1.1 408 ") {
			t.Errorf("got %q", got)
		}
	})
}

func TestPollingGzip(t *testing.T) {
	f := newFixture(t, Options{}, nil)
	p := f.openPolling()
	s := f.session()
	text := strings.Repeat("compressible ", 200)
	s.send(t, text)
	a := f.request("GET", p.query, "", "Accept-Encoding", "deflate, gzip;q=1")
	if a.header.Get("Content-Encoding") != "gzip" || len(a.body) > 500 {
		t.Fatalf("%d bytes, %v", len(a.body), a.header)
	}
	r, err := gzip.NewReader(strings.NewReader(a.body))
	must(t, err)
	plain, err := io.ReadAll(r)
	must(t, err)
	if string(plain) != "4"+text {
		t.Errorf("got %q", plain)
	}
	for name, accept := range map[string]string{"refused": "gzip;q=0, *", "other": "br"} {
		s.send(t, text)
		if a := f.request("GET", p.query, "", "Accept-Encoding", accept); a.header.Get("Content-Encoding") != "" || a.body != "4"+text {
			t.Errorf("%s: %v", name, a.header)
		}
	}
	if _, err := s.socket.Send(false, NewMessage([]byte(text)).NoCompress()); err != nil {
		t.Fatal(err)
	}
	if a := f.request("GET", p.query, "", "Accept-Encoding", "gzip"); a.header.Get("Content-Encoding") != "" {
		t.Error("NoCompress was compressed")
	}
}

func TestPollingV3(t *testing.T) {
	f := newFixture(t, Options{AllowEIO3: true}, echo)
	open := func(extra string) string {
		a := f.request("GET", "EIO=3&transport=polling"+extra, "")
		length, packet, ok := strings.Cut(a.body, ":")
		if !ok || length != fmt.Sprint(len(packet)) {
			t.Fatalf("handshake %q", a.body)
		}
		return "EIO=3&transport=polling&sid=" + parseOpen(t, packet).SID
	}
	t.Run("binary", func(t *testing.T) {
		q := open("")
		f.request("POST", q, "6:4hello10:b4AQIDBA==").want(t, 200, "ok")
		a := f.request("GET", q, "")
		a.want(t, 200, "\x00\x06\xff4hello\x01\x05\xff\x04\x01\x02\x03\x04")
		if a.header.Get("Content-Type") != "application/octet-stream" {
			t.Errorf("content type %q", a.header.Get("Content-Type"))
		}
		f.request("POST", q, "\x00\x04\xff4\xe2\x82\xac\x01\x03\xff\x04\x01\x02", "Content-Type", "application/octet-stream").want(t, 200, "ok")
		f.request("GET", q, "").want(t, 200, "\x00\x04\xff4€\x01\x03\xff\x04\x01\x02")
	})
	t.Run("base64", func(t *testing.T) {
		q := open("&b64=1")
		f.request("POST", q, "3:4😀10:b4AQIDBA==").want(t, 200, "ok")
		f.request("GET", q, "").want(t, 200, "3:4😀10:b4AQIDBA==")
	})
	t.Run("jsonp", func(t *testing.T) {
		a := f.request("GET", "EIO=3&transport=polling&j=7", "")
		if !strings.HasPrefix(a.body, `___eio[7]("`) || !strings.HasPrefix(a.header.Get("Content-Type"), "text/javascript") {
			t.Fatalf("%q %v", a.body, a.header)
		}
		_, sid, _ := strings.Cut(a.body, `\"sid\":\"`)
		q := "EIO=3&transport=polling&j=7&sid=" + sid[:20]
		f.request("POST", q, `d=4%3A4a%5Cnb`, "Content-Type", "application/x-www-form-urlencoded").want(t, 200, "ok")
		f.request("GET", q, "").want(t, 200, `___eio[7]("4:4a\nb");`)
	})
	t.Run("heartbeat", func(t *testing.T) {
		q := open("")
		f.request("POST", q, "1:2").want(t, 200, "ok")
		f.request("GET", q, "").want(t, 200, "1:3")
		if a := f.request("POST", q, "1:3"); a.status != 400 { // the client pings, it does not pong
			t.Errorf("pong: %d", a.status)
		}
	})
}

// A slow client of a poll counts against the budget until the answer is written.
func TestPollingBudget(t *testing.T) {
	f := newFixture(t, Options{SendBudget: 1000}, nil)
	p := f.openPolling()
	s := f.session()
	var err error
	for range 20 {
		if _, err = s.socket.Send(false, NewMessage(make([]byte, 100))); err != nil {
			break
		}
	}
	if err != ErrSlowConsumer {
		t.Fatalf("send: %v", err)
	}
	s.wantEnd(t, ReasonSlowConsumer)
	p.get().want(t, 400, `{"code":1,"message":"Session ID unknown"}`)
}

func TestPollingVolatile(t *testing.T) {
	f := newFixture(t, Options{}, nil)
	p := f.openPolling()
	s := f.session()
	if sent, err := s.socket.Send(true, NewMessage([]byte("dropped"))); sent || err != nil {
		t.Fatalf("without a GET: %v, %v", sent, err)
	}
	poll := f.goRequest("GET", p.query, "")
	p.waitPoll()
	if sent, err := s.socket.Send(true, NewMessage([]byte("sent"))); !sent || err != nil {
		t.Fatalf("with a GET: %v, %v", sent, err)
	}
	take(t, poll).want(t, 200, "4sent")
}
