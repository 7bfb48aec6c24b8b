package socketio

import (
	"hash/maphash"
	"slices"
	"sync"
)

const roomShards = 64

// directMembers is up to how many recipients a broadcast writes at once instead of queueing.
const directMembers = 8

// MemoryAdapter is the Adapter of a server that stands alone, and the local part of those that
// don't, which embed it. Joining and leaving are O(1); a broadcast takes no lock while it
// delivers and copies no member lists.
//
// A socket's own id is a room without a list of its own: an idle connection is one entry
// in the list of all sockets.
type MemoryAdapter struct {
	ns     *Namespace
	all    memberList
	seed   maphash.Seed
	shards [roomShards]roomShard
}

type roomShard struct {
	mu    sync.RWMutex // guards rooms; before the lists' mutexes
	rooms map[string]*room
}

type room struct {
	memberList
	name string
	dead bool // empty and taken off the map; guarded by mu
}

// places is what a socket's slot holds: its entries in the lists.
type places struct {
	all    member
	own    bool // it has not left the room of its own id
	rooms  []*member
	byName map[string]int // positions in rooms; nil while they are few
}

// fewRooms is up to how many rooms of a socket are searched one by one.
const fewRooms = 16

// NewMemoryAdapter is the default AdapterFactory.
func NewMemoryAdapter(ns *Namespace) Adapter { return NewMemory(ns) }

// NewMemory makes the in-process adapter of a namespace, for adapters that embed it.
func NewMemory(ns *Namespace) *MemoryAdapter {
	return &MemoryAdapter{ns: ns, seed: maphash.MakeSeed()}
}

func (a *MemoryAdapter) shard(name string) *roomShard {
	return &a.shards[maphash.String(a.seed, name)%roomShards]
}

func placesOf(s *Socket) *places {
	p, _ := (*s.AdapterSlot()).(*places)
	return p
}

func (p *places) find(name string) int {
	if p.byName != nil {
		if i, ok := p.byName[name]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(p.rooms, func(m *member) bool { return m.room.name == name })
}

func (p *places) add(m *member) {
	p.rooms = append(p.rooms, m)
	if p.byName != nil {
		p.byName[m.room.name] = len(p.rooms) - 1
		return
	}
	if len(p.rooms) > fewRooms {
		p.byName = make(map[string]int, 2*len(p.rooms))
		for i, m := range p.rooms {
			p.byName[m.room.name] = i
		}
	}
}

func (p *places) remove(i int) {
	last := len(p.rooms) - 1
	if p.byName != nil {
		delete(p.byName, p.rooms[i].room.name)
		if i != last {
			p.byName[p.rooms[last].room.name] = i
		}
	}
	p.rooms[i] = p.rooms[last]
	p.rooms[last] = nil
	p.rooms = p.rooms[:last]
}

// AddAll implements Adapter.
func (a *MemoryAdapter) AddAll(s *Socket, rooms []string) (added int) {
	p := placesOf(s)
	if p == nil {
		p = &places{all: member{socket: s}}
		*s.AdapterSlot() = p
		a.all.mu.Lock()
		a.all.add(&p.all)
		a.all.mu.Unlock()
	}
	for _, name := range rooms {
		switch {
		case name == s.id:
			if !p.own {
				p.own = true
				added++
			}
		case p.find(name) < 0:
			m := &member{socket: s}
			a.enter(name, m)
			p.add(m)
			added++
		}
	}
	return added
}

// enter adds m to a room, made if there is none.
func (a *MemoryAdapter) enter(name string, m *member) {
	sh := a.shard(name)
	for {
		r := sh.room(name)
		r.mu.Lock()
		if r.dead { // its last member left in between
			r.mu.Unlock()
			continue
		}
		m.room = r
		r.add(m)
		r.mu.Unlock()
		return
	}
}

func (sh *roomShard) find(name string) *room {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	return sh.rooms[name]
}

func (sh *roomShard) room(name string) *room {
	if r := sh.find(name); r != nil {
		return r
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	r := sh.rooms[name]
	if r == nil {
		if sh.rooms == nil {
			sh.rooms = make(map[string]*room)
		}
		r = &room{name: name}
		sh.rooms[name] = r
	}
	return r
}

// exit takes m out of its room; the last one removes the room.
func (a *MemoryAdapter) exit(m *member) {
	r := m.room
	r.mu.Lock()
	r.remove(m)
	empty := r.n == 0
	r.mu.Unlock()
	if !empty {
		return
	}
	sh := a.shard(r.name)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == 0 && !r.dead {
		r.dead = true
		delete(sh.rooms, r.name)
	}
}

// Del implements Adapter.
func (a *MemoryAdapter) Del(s *Socket, name string) bool {
	p := placesOf(s)
	if p == nil {
		return false
	}
	if name == s.id {
		had := p.own
		p.own = false
		return had
	}
	i := p.find(name)
	if i < 0 {
		return false
	}
	a.exit(p.rooms[i])
	p.remove(i)
	return true
}

// DelAll implements Adapter.
func (a *MemoryAdapter) DelAll(s *Socket) {
	p := placesOf(s)
	if p == nil {
		return
	}
	*s.AdapterSlot() = nil
	for _, m := range p.rooms {
		a.exit(m)
	}
	a.all.mu.Lock()
	a.all.remove(&p.all)
	a.all.mu.Unlock()
}

// SocketRooms implements Adapter.
func (a *MemoryAdapter) SocketRooms(s *Socket) []string {
	p := placesOf(s)
	if p == nil {
		return nil
	}
	list := make([]string, 0, len(p.rooms)+1)
	if p.own {
		list = append(list, s.id)
	}
	for _, m := range p.rooms {
		list = append(list, m.room.name)
	}
	return list
}

// RoomLen is the number of local members of a room: of a room of that name, ids aside.
func (a *MemoryAdapter) RoomLen(name string) int {
	r := a.shard(name).find(name)
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

// Rooms are the names of all rooms with local members, ids aside.
func (a *MemoryAdapter) Rooms() []string {
	var list []string
	for i := range a.shards {
		sh := &a.shards[i]
		sh.mu.RLock()
		for name := range sh.rooms {
			list = append(list, name)
		}
		sh.mu.RUnlock()
	}
	return list
}
