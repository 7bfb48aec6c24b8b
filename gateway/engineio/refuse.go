package engineio

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
)

// A refusal is the error answer to a request. Codes, messages and statuses are those of Node's
// server.
type refusal struct {
	code    int
	message string
	status  int
	cause   string
}

const (
	codeOwn  = -1 // Node does not know it
	codeNone = -2 // no body
)

var (
	refuseTransport = &refusal{0, "Transport unknown", http.StatusBadRequest, CauseUnknownTransport}
	refuseSID       = &refusal{1, "Session ID unknown", http.StatusBadRequest, CauseUnknownSID}
	refuseMethod    = &refusal{2, "Bad handshake method", http.StatusBadRequest, CauseBadMethod}
	refuseRequest   = &refusal{3, "Bad request", http.StatusBadRequest, CauseBadRequest}
	refuseForbidden = &refusal{4, "Forbidden", http.StatusForbidden, CauseForbidden}
	refuseOrigin    = &refusal{4, "Forbidden", http.StatusForbidden, CauseOrigin}
	refuseProtocol  = &refusal{5, "Unsupported protocol version", http.StatusBadRequest, CauseProtocolVersion}

	// Node answers these with an empty body.
	refuseOverlap = &refusal{codeNone, "", http.StatusBadRequest, CauseOverlap}
	refuseContent = &refusal{codeNone, "", http.StatusBadRequest, CauseBadRequest}

	refuseRate     = &refusal{codeOwn, "Too many requests", http.StatusTooManyRequests, CauseRateLimited}
	refuseSessions = &refusal{codeOwn, "Too many sessions", http.StatusServiceUnavailable, CauseTooManySessions}
	refuseShutdown = &refusal{codeOwn, "Server shutting down", http.StatusServiceUnavailable, CauseShutdown}
)

// refusalOf translates what AllowRequest returned.
func refusalOf(err error) *refusal {
	f := *refuseForbidden
	var own *RefuseError
	if errors.As(err, &own) {
		if own.Status != 0 {
			f.status = own.Status
		}
		if own.Message != "" {
			f.message = own.Message
		}
		return &f
	}
	if text := err.Error(); text != "" {
		f.message = text
	}
	return &f
}

// write answers a request. As in Node, an upgrade gets the message as text and status 400 where
// the protocol has a code, and polling a JSON body.
func (f *refusal) write(w http.ResponseWriter, upgrade bool) {
	h := w.Header()
	status := f.status
	body := []byte(f.message)
	switch {
	case f.code == codeNone:
		body = nil
	case upgrade:
		if f.code >= 0 && status == http.StatusForbidden {
			status = http.StatusBadRequest
		}
		h.Set("Content-Type", "text/html")
		h.Set("Connection", "close")
	default:
		h.Set("Content-Type", "application/json")
		body = f.json()
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone; there is nobody else to tell
}

func (f *refusal) json() []byte {
	body, err := json.Marshal(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{f.code, f.message})
	if err != nil { // cannot be: an int and a string
		panic(err)
	}
	return body
}
