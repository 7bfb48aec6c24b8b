package httpapi

import (
	"net/http"
	"net/http/pprof"
)

// profilesPath is where `go tool pprof` looks.
const profilesPath = "/debug/pprof/"

// withProfiles adds the profiles to the admin address, for `go tool pprof`. They are
// not among the routes of next: a profile takes longer than an answer may. The
// command line is not shown: keys may stand in it.
func withProfiles(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", next)
	mux.HandleFunc("GET "+profilesPath, pprof.Index)
	mux.HandleFunc("GET "+profilesPath+"profile", pprof.Profile)
	mux.HandleFunc("GET "+profilesPath+"trace", pprof.Trace)
	mux.HandleFunc("GET "+profilesPath+"symbol", pprof.Symbol)
	mux.HandleFunc("POST "+profilesPath+"symbol", pprof.Symbol)
	mux.HandleFunc("GET "+profilesPath+"cmdline", http.NotFound)
	return mux
}
