package notifytest

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"sync"
)

// Far is the part that all far ends share: it counts, behaves, and remembers. Handle
// it in a server's handler:
//
//	if far.Attempt(w, r) { decode the request; far.Arrived(text); answer }
type Far struct {
	// Status is what a behaviour answers; those that it lacks are not this channel's.
	Status map[Behaviour]int
	// Answer writes a refusal; nil: the status alone, with Retry-After for RefuseFlood.
	Answer func(w http.ResponseWriter, status int, b Behaviour)

	mu       sync.Mutex // guards what follows
	behave   Behaviour
	attempts int
	arrived  []string
}

// Behave sets what comes of attempts from now on.
func (f *Far) Behave(b Behaviour) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.behave = b
}

// Attempts counts them.
func (f *Far) Attempts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.attempts
}

// Received are the texts that arrived.
func (f *Far) Received() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.arrived)
}

// Arrived notes a text.
func (f *Far) Arrived(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.arrived = append(f.arrived, text)
}

// Attempt counts a request and does what was set; true: the request is to be taken.
func (f *Far) Attempt(w http.ResponseWriter, r *http.Request) bool {
	// A server hears that its client has gone only when it has read everything.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.mu.Lock()
	f.attempts++
	b := f.behave
	f.mu.Unlock()
	switch b {
	case "", Accept:
		return true
	case Hang:
		<-r.Context().Done()
	case HangUp:
		panic(http.ErrAbortHandler)
	default:
		f.refuse(w, b)
	}
	return false
}

func (f *Far) refuse(w http.ResponseWriter, b Behaviour) {
	status := f.Status[b]
	if f.Answer != nil {
		f.Answer(w, status, b)
		return
	}
	if b == RefuseFlood {
		w.Header().Set("Retry-After", "3")
	}
	w.WriteHeader(status)
}
