package outbound

import "sync"

// gate bounds what is in flight to each server. Whoever finds it full does not wait:
// a slow server would hold up those who wait, and with them everybody else's
// notifications.
type gate struct {
	limit int

	mu     sync.Mutex
	inside map[string]int // guarded by mu; only servers with something in flight
}

func newGate(limit int) *gate { return &gate{limit: limit, inside: make(map[string]int)} }

// enter takes a place, which leave gives back; false: there is none.
func (g *gate) enter(server string) (leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside[server] >= g.limit {
		return nil, false
	}
	g.inside[server]++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.inside[server]--; g.inside[server] == 0 {
			delete(g.inside, server)
		}
	}, true
}
