// Package web serves the demo page, a chat built on the client library in client/.
//
// The page is TypeScript, built by Vite into dist/ (npm ci && npm run build), which is
// not committed. A binary that was built without it serves dist-missing/ instead,
// which says so and how to build it: the pattern below matches whichever folders
// are there, so that no build tag is needed and `go build` always works.
//
// The tests in browser_test.go drive the page in a real browser against the real
// binary; see e2e/.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist*
var files embed.FS

// Built says whether this binary has the page.
func Built() bool {
	_, err := fs.Stat(files, "dist/index.html")
	return err == nil
}

// page is what is served: the built page, or the note that it is missing.
func page() (fs.FS, error) {
	if Built() {
		return fs.Sub(files, "dist")
	}
	return fs.Sub(files, "dist-missing")
}
