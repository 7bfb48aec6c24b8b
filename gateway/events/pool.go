package events

import "sync"

// pool runs reads of the database, at most limit at a time, first come first
// served. Its queue is as long as what its users may ask for at once: each socket
// has maxClientReads requests and one window per conversation that it catches up.
// Goroutines exist only while there is work.
type pool struct {
	mu      sync.Mutex // guards the fields below
	queue   []func()
	running int
	closed  bool

	limit int
	wg    sync.WaitGroup
}

func newPool(limit int) *pool { return &pool{limit: limit} }

// run queues f. After close it is dropped.
func (p *pool) run(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.queue = append(p.queue, f)
	if p.running < p.limit {
		p.running++
		p.wg.Go(p.work)
	}
}

func (p *pool) work() {
	for {
		p.mu.Lock()
		if len(p.queue) == 0 || p.closed {
			p.running--
			p.mu.Unlock()
			return
		}
		f := p.queue[0]
		p.queue[0] = nil
		if p.queue = p.queue[1:]; len(p.queue) == 0 {
			p.queue = nil // gives a long queue's memory back
		}
		p.mu.Unlock()
		f()
	}
}

// waiting is how many wait for their turn.
func (p *pool) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue)
}

// close drops what waits and returns when what runs has ended.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.queue = nil
	p.mu.Unlock()
	p.wg.Wait()
}
