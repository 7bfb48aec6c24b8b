package engineio

import "sync"

// A flusher writes what SendLater left in the queues of sockets. While it works through its
// list, more is added to the queues behind it, so that under load one write carries many
// messages; nobody has to wait for that on purpose.
type flusher struct {
	mu    sync.Mutex // guards all below
	work  sync.Cond
	dirty []*Socket // each socket at most once, as Socket.dirty says
	stop  bool
}

func newFlusher() *flusher {
	f := &flusher{}
	f.work.L = &f.mu
	return f
}

// add is called with the socket's lock held, when its dirty flag went up.
func (f *flusher) add(s *Socket) {
	f.mu.Lock()
	f.dirty = append(f.dirty, s)
	first := len(f.dirty) == 1
	f.mu.Unlock()
	if first {
		f.work.Signal()
	}
}

// run works until close was called and the list is empty.
func (f *flusher) run() {
	var batch []*Socket
	for {
		f.mu.Lock()
		for len(f.dirty) == 0 && !f.stop {
			f.work.Wait()
		}
		if len(f.dirty) == 0 {
			f.mu.Unlock()
			return
		}
		batch, f.dirty = f.dirty, batch[:0]
		f.mu.Unlock()
		for i, s := range batch {
			s.flush()
			batch[i] = nil
		}
	}
}

func (f *flusher) close() {
	f.mu.Lock()
	f.stop = true
	f.mu.Unlock()
	f.work.Signal()
}
