package socketio

import (
	"crypto/sha256"
	"encoding/base64"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
)

// clientFiles are the builds that are served, as in Node; each with its .map.
var clientFiles = []string{
	"socket.io.js", "socket.io.min.js", "socket.io.esm.min.js", "socket.io.msgpack.min.js",
}

// staticFiles serves the builds of the JavaScript client, read once.
type staticFiles struct {
	prefix string
	files  map[string]staticFile
}

type staticFile struct {
	content     []byte
	contentType string
	etag        string
}

func newStaticFiles(fsys fs.FS, path string) *staticFiles {
	s := &staticFiles{prefix: strings.TrimSuffix(path, "/") + "/", files: make(map[string]staticFile)}
	if fsys == nil {
		return s
	}
	for _, name := range clientFiles {
		s.read(fsys, name, "application/javascript; charset=utf-8")
		s.read(fsys, name+".map", "application/json; charset=utf-8")
	}
	return s
}

func (s *staticFiles) read(fsys fs.FS, name, contentType string) {
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		return // a build that is not there is answered with 404 like anything unknown
	}
	sum := sha256.Sum256(b)
	etag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	s.files[name] = staticFile{content: b, contentType: contentType, etag: etag}
}

// serve answers requests for the builds and says whether it did.
func (s *staticFiles) serve(w http.ResponseWriter, r *http.Request) bool {
	name, ok := strings.CutPrefix(r.URL.Path, s.prefix)
	if !ok {
		return false
	}
	f, ok := s.files[name]
	if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=0")
	h.Set("ETag", f.etag)
	if match := r.Header.Get("If-None-Match"); match == f.etag || match == "W/"+f.etag {
		w.WriteHeader(http.StatusNotModified)
		return true
	}
	h.Set("Content-Type", f.contentType)
	h.Set("Content-Length", strconv.Itoa(len(f.content)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(f.content) // fails only when the client is gone
	}
	return true
}
