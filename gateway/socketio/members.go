package socketio

import "sync"

// chunkSize is how many members a chunk holds: a change copies at most one chunk and the
// directory when a broadcast has looked at them, which costs well under a microsecond.
const chunkSize = 128

// member is one socket's place in one room.
type member struct {
	socket *Socket
	room   *room // nil in lists that are no room
	index  int   // in the list; guarded by its mutex
}

// entry is a member with its socket, so that a broadcast need not look at the member.
type entry struct {
	socket *Socket
	member *member
}

// chunk is a part of a memberList. It is copied before it is changed, if it has been seen.
type chunk struct {
	version uint64
	members []entry
}

// memberList is a dense list with snapshots that cost nothing: it is a directory of chunks,
// and what a snapshot has seen is copied before it is changed, a chunk at a time. A room of
// 20,000 is broadcast to without holding a lock or copying the room, while members come and go.
type memberList struct {
	mu      sync.Mutex // guards the rest
	n       int
	dir     []*chunk
	version uint64 // counts snapshots
	dirSeen uint64 // version at which dir was last copied
}

// snapshot is what a memberList held at one moment.
type snapshot struct {
	dir []*chunk
	n   int
}

func (l *memberList) snapshot() snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	return snapshot{dir: l.dir, n: l.n}
}

// each calls f for all members until it returns false, and says whether it never did.
func (s snapshot) each(f func(*Socket) bool) bool {
	for _, c := range s.dir {
		for i := range c.members {
			if !f(c.members[i].socket) {
				return false
			}
		}
	}
	return true
}

// add appends m. The caller holds mu.
func (l *memberList) add(m *member) {
	m.index = l.n
	if l.n == len(l.dir)*chunkSize {
		l.ownDir()
		l.dir = append(l.dir, &chunk{version: l.version})
	}
	c := l.ownChunk(l.n / chunkSize)
	c.members = append(c.members, entry{m.socket, m})
	l.n++
}

// remove takes m out and moves the last member to its place. The caller holds mu.
func (l *memberList) remove(m *member) {
	last := l.n - 1
	tail := l.ownChunk(last / chunkSize)
	moved := tail.members[len(tail.members)-1]
	if moved.member != m {
		l.ownChunk(m.index / chunkSize).members[m.index%chunkSize] = moved
		moved.member.index = m.index
	}
	tail.members[len(tail.members)-1] = entry{}
	tail.members = tail.members[:len(tail.members)-1]
	l.n = last
	if len(tail.members) == 0 {
		l.ownDir()
		l.dir[len(l.dir)-1] = nil
		l.dir = l.dir[:len(l.dir)-1]
	}
}

// ownDir makes the directory one that no snapshot has seen.
func (l *memberList) ownDir() {
	if l.dirSeen == l.version {
		return
	}
	l.dir = append(make([]*chunk, 0, len(l.dir)+1), l.dir...)
	l.dirSeen = l.version
}

// ownChunk makes chunk i one that no snapshot has seen.
func (l *memberList) ownChunk(i int) *chunk {
	c := l.dir[i]
	if c.version == l.version {
		return c
	}
	l.ownDir()
	c = &chunk{version: l.version, members: append(make([]entry, 0, min(len(c.members)+1, chunkSize)), c.members...)}
	l.dir[i] = c
	return c
}
