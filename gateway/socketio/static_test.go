package socketio_test

import (
	"io"
	"net/http"
	"testing"
	"testing/fstest"

	"xabar/gateway/socketio"
)

func TestClientFiles(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"socket.io.js":         {Data: []byte("full")},
		"socket.io.min.js":     {Data: []byte("min")},
		"socket.io.min.js.map": {Data: []byte(`{"version":3}`)},
		"secret.txt":           {Data: []byte("secret")},
	}
	_, url := start(t, socketio.Options{ClientFiles: files})
	get := func(method, path, ifNoneMatch string) (*http.Response, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, url+path, nil)
		must(t, err)
		if ifNoneMatch != "" {
			req.Header.Set("If-None-Match", ifNoneMatch)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		must(t, err)
		body, err := io.ReadAll(res.Body)
		must(t, err)
		must(t, res.Body.Close())
		return res, string(body)
	}
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	res, body := get("GET", "/socket.io/socket.io.js", "")
	if res.StatusCode != 200 || body != "full" || res.Header.Get("Content-Type") != "application/javascript; charset=utf-8" {
		t.Errorf("socket.io.js: %d %q %v", res.StatusCode, body, res.Header)
	}
	etag := res.Header.Get("ETag")
	for _, match := range []string{etag, "W/" + etag} {
		if res, body := get("GET", "/socket.io/socket.io.js", match); res.StatusCode != 304 || body != "" {
			t.Errorf("If-None-Match %s: %d %q", match, res.StatusCode, body)
		}
	}
	if res, body := get("GET", "/socket.io/socket.io.min.js?v=1", etag); res.StatusCode != 200 || body != "min" {
		t.Errorf("socket.io.min.js: %d %q", res.StatusCode, body)
	}
	if res, body := get("GET", "/socket.io/socket.io.min.js.map", ""); res.StatusCode != 200 || body != `{"version":3}` || res.Header.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Errorf("the map: %d %q %v", res.StatusCode, body, res.Header)
	}
	if res, body := get("HEAD", "/socket.io/socket.io.js", ""); res.StatusCode != 200 || body != "" || res.ContentLength != 4 {
		t.Errorf("HEAD: %d %q %d", res.StatusCode, body, res.ContentLength)
	}
	for _, path := range []string{"/socket.io/secret.txt", "/socket.io/socket.io.esm.min.js", "/socket.io/../secret.txt", "/socket.io.js"} {
		if res, body := get("GET", path, ""); res.StatusCode == 200 || body == "secret" {
			t.Errorf("%s: %d %q", path, res.StatusCode, body)
		}
	}
}
