package check

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Kind names what went wrong.
type Kind string

// The kinds of faults.
const (
	Lost      Kind = "lost"      // somebody lacks a message that is stored, or a stored one is gone
	Doubled   Kind = "doubled"   // one message twice: in the database, or on one connection
	Reordered Kind = "reordered" // seq does not rise where it must
	Different Kind = "different" // two of those who hold a message, or a list, disagree
	Invented  Kind = "invented"  // a message, or a seq, that nobody has sent or stored
	Positions Kind = "positions" // delivered or read positions out of their bounds, or ahead of the truth
	Storage   Kind = "storage"   // the database contradicts itself, or keeps what it should have let go
	Presence  Kind = "presence"  // somebody counts as online or offline and is not
	Counters  Kind = "counters"  // what a node counts is not what clients did
	Growth    Kind = "growth"    // goroutines or heap that don't come back
	Refused   Kind = "refused"   // an answer that a correct client must not get
	Stuck     Kind = "stuck"     // something that did not get well in the time it has
	Crashed   Kind = "crashed"   // a process that ended, raced or panicked by itself
)

// examples is how many of a kind are kept.
const examples = 8

// Found is what was found of one kind.
type Found struct {
	Kind     Kind     `json:"kind"`
	Count    int      `json:"count"`
	Examples []string `json:"examples"`
}

// Faults collects faults. The zero value is empty. Safe for concurrent use.
type Faults struct {
	mu   sync.Mutex // guards list
	list []*Found
}

// Add adds a fault.
func (f *Faults) Add(kind Kind, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.IndexFunc(f.list, func(found *Found) bool { return found.Kind == kind })
	if at < 0 {
		at = len(f.list)
		f.list = append(f.list, &Found{Kind: kind})
	}
	found := f.list[at]
	found.Count++
	if len(found.Examples) < examples {
		found.Examples = append(found.Examples, fmt.Sprintf(format, args...))
	}
}

// List is what was found, in the order in which each kind was first.
func (f *Faults) List() []Found {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]Found, len(f.list))
	for i, found := range f.list {
		list[i] = *found
	}
	return list
}

// None says that nothing is wrong.
func (f *Faults) None() bool { return len(f.List()) == 0 }

// String is the list as text.
func (f *Faults) String() string {
	var b strings.Builder
	for _, found := range f.List() {
		fmt.Fprintf(&b, "WRONG, %s: %d times, for example\n", found.Kind, found.Count)
		for _, example := range found.Examples {
			fmt.Fprintf(&b, "  %s\n", example)
		}
	}
	return b.String()
}

// Join adds what another one has found.
func (f *Faults) Join(other *Faults) {
	for _, found := range other.List() {
		for i := range found.Count {
			f.Add(found.Kind, "%s", found.Examples[min(i, len(found.Examples)-1)])
		}
	}
}

// Total is how many there are.
func (f *Faults) Total() (n int) {
	for _, found := range f.List() {
		n += found.Count
	}
	return n
}
