package engineio

import (
	"net/http"
	"time"
)

// HTTPServer returns an http.Server for h with the limits that a public server needs: headers
// of at most 32 KiB within 10 s, idle connections for 2 minutes. It sets no ReadTimeout and no
// WriteTimeout, which would cut long polls; Server bounds its own reads and writes
// (Options.BodyTimeout).
func HTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
	}
}
