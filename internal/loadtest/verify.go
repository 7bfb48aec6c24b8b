package loadtest

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// maxExamples of each kind of fault are kept.
const maxExamples = 5

// Fault is something that a server must not do.
type Fault struct {
	Kind     string   `json:"kind"`
	Count    int64    `json:"count"`
	Examples []string `json:"examples"`
}

// The kinds of faults.
const (
	faultLost        = "lost"             // answered with success, and a recipient never got it
	faultDoubled     = "doubled"          // a recipient got it again
	faultSeq         = "seq not rising"   // at a recipient, within a conversation
	faultOrder       = "out of order"     // of one sender's messages, at a recipient
	faultSendOrder   = "seq out of order" // the answers' seqs don't follow the order of the sends
	faultUnanswered  = "unanswered"       // a send without an answer
	faultUndelivered = "not delivered"    // the sender never heard of it
	faultUnread      = "not read"
	faultBroken      = "connection lost"
	faultForeign     = "malformed" // what came has not the described fields
)

// faults gathers them. Safe for concurrent use.
type faults struct {
	mu     sync.Mutex
	byKind map[string]*Fault // guarded by mu
}

func (f *faults) add(kind, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byKind == nil {
		f.byKind = map[string]*Fault{}
	}
	fault := f.byKind[kind]
	if fault == nil {
		fault = &Fault{Kind: kind}
		f.byKind[kind] = fault
	}
	fault.Count++
	if len(fault.Examples) < maxExamples {
		fault.Examples = append(fault.Examples, fmt.Sprintf(format, args...))
	}
}

func (f *faults) list() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Fault
	for _, kind := range slices.Sorted(maps.Keys(f.byKind)) {
		all = append(all, *f.byKind[kind])
	}
	return all
}

// inbox is what one user has received of one conversation. It belongs to the goroutine
// that reads the user's connection.
type inbox struct {
	room    *room
	lastSeq int64
	// synced is what the user held after the last sync, up to this seq. A message up to it
	// may come live once more, when its node is not sure of it: clients keep messages by seq.
	synced  int64
	read    int64 // up to this seq the user has said that it was read
	senders []received
}

// received is what has come of one stream.
type received struct {
	stream int
	next   int64 // the lowest number that is higher than all that came
	holes  map[int64]bool
}

func (b *inbox) from(stream int) *received {
	for i := range b.senders {
		if b.senders[i].stream == stream {
			return &b.senders[i]
		}
	}
	b.senders = append(b.senders, received{stream: stream})
	return &b.senders[len(b.senders)-1]
}

// accept checks a message and says whether it is new.
func (b *inbox) accept(f *faults, who string, m marker, seq int64) bool {
	if seq <= b.synced {
		return false
	}
	if seq <= b.lastSeq {
		f.add(faultSeq, "%s heard seq %d of conversation %s behind seq %d", who, seq, b.room.id, b.lastSeq)
	}
	b.lastSeq = max(b.lastSeq, seq)
	r := b.from(m.stream)
	if m.n >= r.next {
		for hole := r.next; hole < m.n; hole++ {
			if r.holes == nil {
				r.holes = map[int64]bool{}
			}
			r.holes[hole] = true
		}
		r.next = m.n + 1
		return true
	}
	if r.holes[m.n] {
		delete(r.holes, m.n)
		f.add(faultOrder, "%s heard message %d of sender %d in conversation %s (seq %d) behind message %d",
			who, m.n, m.stream, b.room.id, seq, r.next-1)
		return true
	}
	f.add(faultDoubled, "%s heard message %d of sender %d in conversation %s (seq %d) again", who, m.n, m.stream, b.room.id, seq)
	return false
}
