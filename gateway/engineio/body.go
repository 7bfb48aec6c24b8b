package engineio

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// keepBody is the largest body buffer that is kept for the next request.
const keepBody = 64 << 10

// bodyBuffer is a pooled buffer for the body of a POST.
type bodyBuffer struct{ bytes.Buffer }

var bodyBuffers = sync.Pool{New: func() any { return new(bodyBuffer) }}

func newBodyBuffer() *bodyBuffer { return bodyBuffers.Get().(*bodyBuffer) }

func (b *bodyBuffer) bytes() []byte { return b.Buffer.Bytes() }

func (b *bodyBuffer) free() {
	if b.Cap() <= keepBody {
		b.Reset()
		bodyBuffers.Put(b)
	}
}

// compresses decides whether the answer to a GET goes out compressed.
func (s *Server) compresses(r *http.Request, body []byte, msgs []*Message) bool {
	if s.opts.NoHTTPCompression || len(body) < s.opts.CompressionThreshold || !acceptsGzip(r) {
		return false
	}
	for _, m := range msgs {
		if !m.plain {
			return true
		}
	}
	return false
}

func acceptsGzip(r *http.Request) bool {
	for _, part := range strings.Split(strings.Join(r.Header["Accept-Encoding"], ","), ",") {
		name, params, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q := strings.TrimSpace(params)
			return q != "q=0" && q != "q=0.0" && q != "q=0.00" && q != "q=0.000"
		}
	}
	return false
}

var gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

func gzipped(body []byte) []byte {
	var out bytes.Buffer
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	w.Reset(&out)
	_, err := w.Write(body)
	if err == nil {
		err = w.Close()
	}
	if err != nil { // a bytes.Buffer does not fail
		panic(err)
	}
	return out.Bytes()
}

// jsonpHead is the start of the script that answers a JSONP request with index j.
func jsonpHead(j string) string {
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, j)
	return "___eio[" + digits + "]("
}

// wrapJSONP makes a script of a text body.
func wrapJSONP(head string, body []byte) []byte {
	text, err := json.Marshal(string(body))
	if err != nil { // cannot be: a string
		panic(err)
	}
	return append(append([]byte(head), text...), ");"...)
}

// escapedNewline finds what the JSONP client makes of newlines, which forms would change: a
// newline becomes \n, and what was written as \n becomes \\n.
var escapedNewline = regexp.MustCompile(`(\\)?\\n`)

// unwrapJSONP returns the payload in the form that a JSONP client posts.
func unwrapJSONP(body []byte) ([]byte, bool) {
	form, err := url.ParseQuery(string(body))
	if err != nil || !form.Has("d") {
		return nil, false
	}
	data := escapedNewline.ReplaceAllStringFunc(form.Get("d"), func(m string) string {
		if m == `\n` {
			return "\n"
		}
		return m
	})
	return []byte(strings.ReplaceAll(data, `\\n`, `\n`)), true
}
