package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// contentSecurityPolicy lets the page run its own files and talk to its own origin,
// and nothing else. With Trusted Types no string becomes code or markup; the one
// policy, "xabar", names the service worker's address.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types xabar"

// hashed is where the build puts files whose name changes with their content.
const hashed = "assets/"

// Config is what the page is told of the server that serves it.
type Config struct {
	// Demo says that POST /demo/login is there, so that the page asks for a name
	// instead of a token.
	Demo bool
}

// file is one served file with its smaller forms.
type file struct {
	contentType string
	cache       string
	forms       []form // in the order of preference; the last is the file as it is
}

type form struct {
	encoding string // "" as it is
	etag     string
	body     []byte
}

// Mount serves the page at / and its files below, from memory. It answers GET and
// HEAD and leaves every other path and method to what else is on mux. Files whose
// name carries a hash may be kept for a year, all others are asked for again each time
// and answered with 304 if they are the same. The forms that the build has
// compressed go to clients that accept them.
//
// Error: the embedded files could not be read, which no correct build shows.
func Mount(mux *http.ServeMux, c Config) error {
	root, err := page()
	if err != nil {
		return fmt.Errorf("web: %w", err)
	}
	all, err := load(root, c)
	if err != nil {
		return fmt.Errorf("web: %w", err)
	}
	all.mount(mux)
	return nil
}

// site is all files by path, without the leading slash.
type site map[string]*file

func load(root fs.FS, c Config) (site, error) {
	all := site{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || isCompressed(name) {
			return err
		}
		f, err := loadFile(root, name, c)
		all[name] = f
		return err
	})
	return all, err
}

func (s site) mount(mux *http.ServeMux) {
	for name, f := range s {
		if name == "index.html" {
			name = "{$}"
		}
		mux.Handle("GET /"+name, f)
	}
}

func isCompressed(name string) bool {
	return strings.HasSuffix(name, ".br") || strings.HasSuffix(name, ".gz")
}

func loadFile(root fs.FS, name string, c Config) (*file, error) {
	body, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	f := &file{contentType: contentType(name), cache: "no-cache"}
	if strings.HasPrefix(name, hashed) {
		f.cache = "public, max-age=31536000, immutable"
	}
	if name == "index.html" {
		// What differs from the build has no compressed form; it is small.
		body = bytes.Replace(body, []byte(`data-demo=""`), []byte(`data-demo="`+strconv.FormatBool(c.Demo)+`"`), 1)
		f.forms = []form{newForm("", body)}
		return f, nil
	}
	for _, smaller := range []struct{ encoding, ending string }{{"br", ".br"}, {"gzip", ".gz"}} {
		if compressed, err := fs.ReadFile(root, name+smaller.ending); err == nil {
			f.forms = append(f.forms, newForm(smaller.encoding, compressed))
		}
	}
	f.forms = append(f.forms, newForm("", body))
	return f, nil
}

func newForm(encoding string, body []byte) form {
	sum := sha256.Sum256(body)
	return form{encoding, `"` + hex.EncodeToString(sum[:12]) + `"`, body}
}

// contentType doesn't depend on the machine's own table, which may lack types or
// have wrong ones.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".webmanifest":
		return "application/manifest+json"
	case ".png":
		return "image/png"
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

// ServeHTTP implements http.Handler, for GET and HEAD.
func (f *file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
	form := f.pick(r.Header.Get("Accept-Encoding"))
	h.Set("Content-Type", f.contentType)
	h.Set("Cache-Control", f.cache)
	h.Set("ETag", form.etag)
	if len(f.forms) > 1 {
		h.Set("Vary", "Accept-Encoding")
	}
	if matches(r.Header.Get("If-None-Match"), form.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if form.encoding != "" {
		h.Set("Content-Encoding", form.encoding)
	}
	h.Set("Content-Length", strconv.Itoa(len(form.body)))
	if r.Method == http.MethodHead {
		return
	}
	// A client that has gone needs no answer; net/http notes it by itself.
	_, _ = w.Write(form.body)
}

// pick takes the first form that the client accepts.
func (f *file) pick(accept string) form {
	for _, form := range f.forms {
		if form.encoding == "" || accepts(accept, form.encoding) {
			return form
		}
	}
	return f.forms[len(f.forms)-1]
}

// accepts reads Accept-Encoding (RFC 9110, 12.5.3), but for *: who doesn't name an
// encoding gets the file as it is.
func accepts(header, encoding string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(name), encoding) {
			continue
		}
		value, ok := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
		if !ok {
			return true
		}
		q, err := strconv.ParseFloat(value, 64)
		return err == nil && q > 0
	}
	return false
}

// matches reads If-None-Match (RFC 9110, 13.1.2): weak comparison.
func matches(header, etag string) bool {
	for part := range strings.SplitSeq(header, ",") {
		part = strings.TrimSpace(part)
		if part == "*" || strings.TrimPrefix(part, "W/") == etag {
			return true
		}
	}
	return false
}
