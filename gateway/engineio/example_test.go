package engineio_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"xabar/gateway/engineio"
)

// greeter answers every message.
type greeter struct{ socket *engineio.Socket }

func (g *greeter) OnMessage(data []byte, _ bool) {
	// NewMessage copies: data is valid only during the call.
	if _, err := g.socket.Send(false, engineio.NewMessage(append([]byte("hello "), data...))); err != nil {
		fmt.Println("send:", err)
	}
}

func (g *greeter) OnClose(reason engineio.Reason, _ error) { fmt.Println("closed:", reason) }

func Example() {
	srv := engineio.NewServer(engineio.Options{}, func(s *engineio.Socket) engineio.Session {
		return &greeter{s}
	})
	hs := httptest.NewServer(srv) // in earnest: engineio.HTTPServer(srv).ListenAndServe()

	// What a client does over long-polling.
	url := hs.URL + "/engine.io/?EIO=4&transport=polling"
	open := get(url)
	_, rest, _ := strings.Cut(open, `"sid":"`)
	sid, _, _ := strings.Cut(rest, `"`)
	resp, err := http.Post(url+"&sid="+sid, "text/plain", strings.NewReader("4world"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("post:", read(resp))
	fmt.Println("poll:", get(url+"&sid="+sid))

	if err := srv.Shutdown(context.Background()); err != nil {
		fmt.Println("shutdown:", err)
	}
	http.DefaultClient.CloseIdleConnections()
	hs.Close()
	// Output:
	// post: ok
	// poll: 4hello world
	// closed: server shutting down
}

func get(url string) string {
	resp, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	return read(resp)
}

func read(resp *http.Response) string {
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
