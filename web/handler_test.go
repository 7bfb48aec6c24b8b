package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func testSite(t *testing.T, demo bool) http.Handler {
	t.Helper()
	s, err := load(fstest.MapFS{
		"index.html":         {Data: []byte(`<html lang="en" data-demo=""><body>page</body>`)},
		"index.html.br":      {Data: []byte("stale")},
		"assets/app-1.js":    {Data: []byte("let plain")},
		"assets/app-1.js.br": {Data: []byte("br")},
		"assets/app-1.js.gz": {Data: []byte("gz")},
		"sw.js":              {Data: []byte("worker")},
	}, Config{Demo: demo})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	s.mount(mux)
	return mux
}

func get(h http.Handler, path string, headers ...string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, res *http.Response) string {
	t.Helper()
	var b strings.Builder
	if err := res.Write(&b); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(b.String(), "\r\n\r\n")
	return text
}

func TestIndexSaysWhetherTheServerIsInDemoMode(t *testing.T) {
	for demo, want := range map[bool]string{true: `data-demo="true"`, false: `data-demo="false"`} {
		res := get(testSite(t, demo), "/", "Accept-Encoding", "br")
		if got := body(t, res); !strings.Contains(got, want) {
			t.Errorf("demo %v: %q has no %s", demo, got, want)
		}
		if got := res.Header.Get("Cache-Control"); got != "no-cache" {
			t.Errorf("Cache-Control: %q", got)
		}
	}
}

func TestSecurityHeadersAreEverywhere(t *testing.T) {
	s := testSite(t, true)
	for _, path := range []string{"/", "/sw.js", "/assets/app-1.js"} {
		res := get(s, path)
		csp := res.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "require-trusted-types-for 'script'", "frame-ancestors 'none'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: the policy %q lacks %s", path, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") {
			t.Errorf("%s: the policy allows something unsafe: %q", path, csp)
		}
		if res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: no nosniff", path)
		}
	}
}

func TestAssetsAreCompressedAndKept(t *testing.T) {
	s := testSite(t, true)
	for _, tc := range []struct{ accept, encoding, body string }{
		{"gzip, deflate, br, zstd", "br", "br"},
		{"gzip", "gzip", "gz"},
		{"br;q=0, gzip;q=0.5", "gzip", "gz"},
		{"GZIP", "gzip", "gz"},
		{"*", "", "let plain"},
		{"", "", "let plain"},
		{"identity, brotli", "", "let plain"},
	} {
		res := get(s, "/assets/app-1.js", "Accept-Encoding", tc.accept)
		if got := res.Header.Get("Content-Encoding"); got != tc.encoding {
			t.Errorf("%q: encoding %q, want %q", tc.accept, got, tc.encoding)
		}
		if got := body(t, res); got != tc.body {
			t.Errorf("%q: body %q, want %q", tc.accept, got, tc.body)
		}
		if got := res.Header.Get("Cache-Control"); !strings.Contains(got, "immutable") {
			t.Errorf("Cache-Control: %q", got)
		}
		if res.Header.Get("Vary") != "Accept-Encoding" {
			t.Error("no Vary")
		}
		if got := res.Header.Get("Content-Type"); got != "text/javascript; charset=utf-8" {
			t.Errorf("Content-Type: %q", got)
		}
	}
}

func TestWhatIsTheSameIsNotSentAgain(t *testing.T) {
	s := testSite(t, true)
	etag := get(s, "/sw.js").Header.Get("ETag")
	for header, want := range map[string]int{etag: 304, `"x", W/` + etag: 304, "*": 304, `"x"`: 200} {
		if got := get(s, "/sw.js", "If-None-Match", header).StatusCode; got != want {
			t.Errorf("If-None-Match %s: %d, want %d", header, got, want)
		}
	}
	if get(s, "/assets/app-1.js", "Accept-Encoding", "br").Header.Get("ETag") ==
		get(s, "/assets/app-1.js").Header.Get("ETag") {
		t.Error("two forms have one ETag")
	}
}

func TestOnlyTheFilesAreServed(t *testing.T) {
	s := testSite(t, true)
	for _, path := range []string{"/nothing", "/assets/", "/assets/app-1.js.br", "/index.html", "/index.html/"} {
		if got := get(s, path).StatusCode; got != http.StatusNotFound {
			t.Errorf("%s: %d", path, got)
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d %v", w.Code, w.Header())
	}
	w = httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/sw.js", nil))
	if w.Code != http.StatusOK || w.Body.Len() != 0 || w.Header().Get("Content-Length") != "6" {
		t.Errorf("HEAD: %d %d %v", w.Code, w.Body.Len(), w.Header())
	}
}

func TestThePageIsServedOrANoteHowToBuildIt(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	if err := Mount(mux, Config{Demo: true}); err != nil {
		t.Fatal(err)
	}
	text := body(t, get(mux, "/"))
	if Built() && !strings.Contains(text, `data-demo="true"`) {
		t.Errorf("the page is not told of demo mode: %s", text)
	}
	if !Built() && !strings.Contains(text, "npm ci") {
		t.Errorf("the note does not say how to build the page: %s", text)
	}
	if got := get(mux, "/me").StatusCode; got != http.StatusTeapot {
		t.Errorf("a path of others: %d", got)
	}
}
