package socketio

import "sync"

const sinkShards = 16

// sinkTable finds the prepared event of an acknowledgement id. Ids are consecutive, so
// their low bits spread them over the shards.
type sinkTable struct {
	shards [sinkShards]struct {
		mu sync.RWMutex // guards m
		m  map[uint64]*Prepared
	}
}

func (t *sinkTable) put(id uint64, p *Prepared) {
	sh := &t.shards[id%sinkShards]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.m == nil {
		sh.m = make(map[uint64]*Prepared)
	}
	sh.m[id] = p
}

func (t *sinkTable) get(id uint64) *Prepared {
	sh := &t.shards[id%sinkShards]
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	return sh.m[id]
}

func (t *sinkTable) remove(id uint64) {
	sh := &t.shards[id%sinkShards]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	delete(sh.m, id)
}
