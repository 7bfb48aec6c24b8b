package socketio

import (
	"context"
	"sync"
)

// selection is the snapshots of what BroadcastOptions select.
type selection struct {
	lists  []snapshot
	own    []*Socket // sockets selected by their id
	except map[*Socket]struct{}
	total  int // members of all lists: at least the number of sockets
}

func (sel *selection) addRoom(a *MemoryAdapter, name string) {
	if r := a.shard(name).find(name); r != nil {
		s := r.snapshot()
		sel.lists = append(sel.lists, s)
		sel.total += s.n
	}
	if s := a.ownRoom(name); s != nil {
		sel.own = append(sel.own, s)
		sel.total++
	}
}

// ownRoom is the socket whose id name is, unless it has left its own room.
func (a *MemoryAdapter) ownRoom(name string) *Socket {
	s := a.ns.Socket(name)
	if s == nil {
		return nil
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	if p := placesOf(s); p == nil || !p.own {
		return nil
	}
	return s
}

func (a *MemoryAdapter) selectSockets(opts *BroadcastOptions) selection {
	var sel selection
	if len(opts.Rooms) == 0 {
		s := a.all.snapshot()
		sel.lists, sel.total = append(sel.lists, s), s.n
	}
	for _, name := range opts.Rooms {
		sel.addRoom(a, name)
	}
	if len(opts.Except) == 0 || sel.total == 0 {
		return sel
	}
	var out selection
	for _, name := range opts.Except {
		out.addRoom(a, name)
	}
	sel.except = make(map[*Socket]struct{}, out.total)
	out.eachWithRepeats(func(s *Socket) bool {
		sel.except[s] = struct{}{}
		return true
	})
	return sel
}

func (sel *selection) eachWithRepeats(f func(*Socket) bool) {
	for _, s := range sel.own {
		if !f(s) {
			return
		}
	}
	for _, list := range sel.lists {
		if !list.each(f) {
			return
		}
	}
}

// each calls f once for each selected socket.
func (sel *selection) each(f func(*Socket) bool) {
	if sel.except == nil && len(sel.lists)+len(sel.own) <= 1 {
		sel.eachWithRepeats(f)
		return
	}
	seen := sel.except // what is excluded and what has been seen are skipped alike
	if seen == nil {
		seen = make(map[*Socket]struct{}, sel.total)
	}
	once := len(sel.lists)+len(sel.own) <= 1
	sel.eachWithRepeats(func(s *Socket) bool {
		if _, skip := seen[s]; skip {
			return true
		}
		if !once {
			seen[s] = struct{}{}
		}
		return f(s)
	})
}

// Range implements Adapter. Sockets that are not connected, or no longer, are left out.
func (a *MemoryAdapter) Range(opts *BroadcastOptions, f func(s *Socket) bool) {
	sel := a.selectSockets(opts)
	sel.each(func(s *Socket) bool {
		if st := s.settledState(); st != stateConnected && st != stateDisconnecting {
			return true
		}
		return f(s)
	})
}

// Broadcast implements Adapter.
func (a *MemoryAdapter) Broadcast(p *Prepared, opts *BroadcastOptions) error {
	sel := a.selectSockets(opts)
	many := sel.total > directMembers
	sel.each(func(s *Socket) bool {
		s.Deliver(p, opts.Flags.Volatile, many)
		return true
	})
	return nil
}

// BroadcastWithAck implements Adapter.
func (a *MemoryAdapter) BroadcastWithAck(ctx context.Context, p *Prepared, opts *BroadcastOptions, onServer func(int), onAck func(Args)) error {
	sel := a.selectSockets(opts)
	many := sel.total > directMembers
	var expected []*pendingAck
	sel.each(func(s *Socket) bool {
		ack, err := s.expectAckID(p.packet.ID, 0, func(args Args, err error) {
			if err == nil {
				onAck(args)
			}
		})
		if err != nil {
			return true // it is gone, or owes too many already
		}
		expected = append(expected, ack)
		s.Deliver(p, opts.Flags.Volatile, many)
		return true
	})
	onServer(len(expected))
	if len(expected) > 0 {
		context.AfterFunc(ctx, sync.OnceFunc(func() {
			for _, ack := range expected {
				ack.cancel()
			}
		}))
	}
	return nil
}

// Sockets implements Adapter.
func (a *MemoryAdapter) Sockets(_ context.Context, opts *BroadcastOptions) ([]string, error) {
	var ids []string
	a.Range(opts, func(s *Socket) bool {
		ids = append(ids, s.id)
		return true
	})
	return ids, nil
}

// ServerCount implements Adapter.
func (a *MemoryAdapter) ServerCount(context.Context) (int, error) { return 1, nil }

// FetchSockets implements Adapter.
func (a *MemoryAdapter) FetchSockets(_ context.Context, opts *BroadcastOptions) ([]SocketDetails, error) {
	return a.ns.RangeDetails(opts)
}

// AddSockets implements Adapter. The first error (ErrTooManyRooms) is returned; the other
// sockets join all the same.
func (a *MemoryAdapter) AddSockets(opts *BroadcastOptions, rooms []string) error {
	var first error
	a.Range(opts, func(s *Socket) bool {
		if err := s.Join(rooms...); err != nil && err != ErrDisconnected && first == nil {
			first = err
		}
		return true
	})
	return first
}

// DelSockets implements Adapter.
func (a *MemoryAdapter) DelSockets(opts *BroadcastOptions, rooms []string) error {
	a.Range(opts, func(s *Socket) bool {
		for _, r := range rooms {
			s.Leave(r)
		}
		return true
	})
	return nil
}

// DisconnectSockets implements Adapter.
func (a *MemoryAdapter) DisconnectSockets(opts *BroadcastOptions, close bool) error {
	a.Range(opts, func(s *Socket) bool {
		s.Disconnect(close)
		return true
	})
	return nil
}

// ServerSideEmit implements Adapter: there are no other servers.
func (a *MemoryAdapter) ServerSideEmit(string, Args) error { return nil }

// ServerSideEmitWithAck implements Adapter: there are no other servers.
func (a *MemoryAdapter) ServerSideEmitWithAck(context.Context, string, Args) ([]Args, error) {
	return nil, nil
}

// Close implements Adapter.
func (a *MemoryAdapter) Close() error { return nil }
